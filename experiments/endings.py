"""How a run that fails ends: one line and an exit status."""

import pathlib

from experiments.config_file import Occupied, UsageError

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_NON_FINITE = 0, 1, 2, 3
EXIT_MACHINE = 4  # the request is right: the same command may do later


def of(
  error: BaseException, run_folder: pathlib.Path
) -> tuple[str, int] | None:
  """The line and the exit status of an error; None if it is the program's.

  Args:
    error: that ended a run.
    run_folder: that all of its processes see.
  """
  if isinstance(error, Occupied):
    return str(error), EXIT_MACHINE
  if isinstance(error, UsageError):
    return str(error), EXIT_USAGE

  from experiments import state, workdir
  from kernels_eval import client
  from leap_jax import (
    checkpoint,
    fitting,
    hosts,
    joint_end,
    policy_io,
    sharding,
  )

  last_checkpoint = workdir.last_checkpoint(run_folder)
  match error:
    case policy_io.PolicyError() | fitting.DoesNotFit() | sharding.MeshError():
      return str(error), EXIT_USAGE
    case hosts.Unreachable():
      return str(error), EXIT_MACHINE
    case client.HarnessError():
      return f"infrastructure_error: {error}", EXIT_MACHINE
    case state.NonFinite():
      return f"{error}; {last_checkpoint}", EXIT_NON_FINITE
    case checkpoint.CheckpointError():
      return f"{error}; {last_checkpoint}", EXIT_FAILED
    case OSError():
      where = f" ({error.filename})" if error.filename else ""
      line = f"{error.strerror or error}{where}; {last_checkpoint}"
      return line, EXIT_FAILED
    case KeyboardInterrupt():
      line = f"interrupted; {last_checkpoint}; the same command goes on"
      return line, EXIT_FAILED
  line = fitting.out_of_memory(error) or joint_end.lost(error)
  return None if line is None else (f"{line}; {last_checkpoint}", EXIT_FAILED)
