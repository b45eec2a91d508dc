"""Several processes of one run: their flags, and that they are alike."""

from typing import Any

from absl import flags

from experiments.config_file import UsageError


def define(values: flags.FlagValues) -> None:
  """The flags."""
  flags.DEFINE_string(
    "coordinator",
    None,
    "host:port of the first of several processes (docs/devices.md)",
    flag_values=values,
  )
  flags.DEFINE_integer(
    "num_processes", 1, "of one run", lower_bound=1, flag_values=values
  )
  flags.DEFINE_integer(
    "process_id", 0, "of this one, from 0", lower_bound=0, flag_values=values
  )


def check(values: flags.FlagValues) -> None:
  """Before anything is waited for.

  Raises:
    UsageError: the flags do not go together.
  """
  if values.process_id >= values.num_processes:
    raise UsageError(
      f"--process_id={values.process_id}: must be below --num_processes="
      f"{values.num_processes}"
    )
  if (values.coordinator is None) != (values.num_processes == 1):
    raise UsageError(
      f"--num_processes={values.num_processes} with --coordinator="
      f"{values.coordinator}: several processes need host:port of the first, "
      "one process needs none"
    )
  if values.coordinator is None:
    return
  host, _, port = values.coordinator.rpartition(":")
  if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
    raise UsageError(
      f"--coordinator={values.coordinator}: must be host:port of the first "
      "process"
    )


def connect(values: flags.FlagValues, settings: dict[str, Any]) -> None:
  """Joins the other processes of a run.

  Raises:
    UsageError: they have other devices, settings or another commit.
    Unreachable: they are not found.
  """
  from experiments import provenance
  from leap_jax import hosts

  try:
    hosts.connect(values.coordinator, values.num_processes, values.process_id)
    hosts.check_alike(
      {f"config.{key}": value for key, value in settings.items()}
      | {"commit": provenance.commit()}
    )
  except hosts.Unlike as error:
    raise UsageError(str(error)) from None
