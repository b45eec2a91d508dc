"""Measures speed and writes one JSON file for each measurement.

    python -m experiments.bench KIND --config=FILE [--config.X.Y=V ...]

sampler   decoding on one device: milliseconds a step, share of the roofline,
          useful slots (experiments/bench/sampler.py)
update    one update: tokens a second, share of the peak in operations
          (experiments/bench/update.py)
devices   sampling and update on one device, and on all of them
          (experiments/bench/devices.py)
step      whole LEAP iterations of config.policy.source: where the time goes,
          idle time of accelerator and harness (experiments/bench/step.py)
peers     the same decoding by other libraries (experiments/bench/peers.py)
table     the README's table of all of them (experiments/bench/table.py)

But for `step`, weights are random, of config.policy.size. The batch is all rows
of a rollout (num_problems * group_size); where decoding is measured, at most
config.sampler.max_slots of them at a time. Settings and their meaning:
experiments/configs/base.py.
"""

import json
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from absl import flags

from experiments import settings as settings_lib
from experiments.config_file import asks_for_help
from experiments.settings import UsageError

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


# Each yields its records as they come: what one of them costs is not lost when
# the next one fails.


def _sampler(config, values) -> Iterable[dict[str, Any]]:
  from experiments.bench import sampler

  return sampler.measure(config, values.repeats, values.prompts)


def _update(config, values) -> Iterable[dict[str, Any]]:
  from experiments.bench import update

  yield update.measure(config, values.repeats)


def _devices(config, values) -> Iterable[dict[str, Any]]:
  from experiments.bench import devices

  yield devices.measure(config, values.repeats)


def _step(config, values) -> Iterable[dict[str, Any]]:
  from experiments.bench import step

  yield step.measure(config, values.repeats)


def _peers(config, values) -> Iterable[dict[str, Any]]:
  from experiments.bench import peers

  effort = peers.Effort(values.peer_repeats, values.peer_limit_s)
  return peers.measure(
    config, values.repeats, values.prompts, values.peers, effort
  )


KINDS = {
  "sampler": _sampler,
  "update": _update,
  "devices": _devices,
  "step": _step,
  "peers": _peers,
}


def _define(values: flags.FlagValues) -> None:
  flags.DEFINE_integer(
    "repeats", 3, "counted repetitions", lower_bound=1, flag_values=values
  )
  flags.DEFINE_list(
    "peers",
    ["google-tunix", "transformers"],
    "libraries to compare with",
    flag_values=values,
  )
  flags.DEFINE_integer(
    "peer_repeats",
    1,
    "their counted repetitions",
    lower_bound=1,
    flag_values=values,
  )
  flags.DEFINE_float(
    "peer_limit_s",
    600.0,
    "seconds after which one of them is given up",
    lower_bound=1.0,
    flag_values=values,
  )
  flags.DEFINE_list(
    "prompts",
    [],
    "own, shared, or both, one after the other",
    flag_values=values,
  )
  flags.DEFINE_string(
    "out",
    None,
    "folder of the JSON file (default: experiments/results/bench)",
    flag_values=values,
  )


def _run(kind, config, values, name) -> None:
  from experiments import compile_cache
  from experiments.bench import record

  if config.run.compilation_cache is not None:
    compile_cache.use(config.run.compilation_cache)
  folder = pathlib.Path(values.out) if values.out else record.RESULTS
  for found in KINDS[kind](config, values):
    path = record.write(folder, _file_name(kind, name, found), found)
    print(json.dumps(json.loads(path.read_text()), indent=2), flush=True)
    print(path, file=sys.stderr)


def _file_name(kind: str, name: str, found: Mapping[str, Any]) -> str:
  """Of one measurement: what else of its config's differ in goes into it."""
  parts = [kind, name.removeprefix(f"{kind}_")]
  if found.get("shared_prompts"):
    parts.append("shared")
  parts.append(f"b{found['batch']}")
  if found.get("rows", found["batch"]) != found["batch"]:
    parts.append(f"of{found['rows']}")
  if found["devices"] > 1:
    parts.append(f"x{found['devices']}")
  return "_".join(parts)


def _end_of(error: Exception) -> tuple[str | None, int]:
  """What an error says, None if that is not all there is to say; the status."""
  from experiments.state import NonFinite
  from kernels_eval.client import HarnessError
  from leap_jax import fitting, sharding
  from leap_jax.policy_error import PolicyError

  if isinstance(error, PolicyError):
    return str(error), EXIT_USAGE
  known = HarnessError | NonFinite | fitting.DoesNotFit | sharding.MeshError
  if isinstance(error, known):
    return str(error), EXIT_FAILED
  return fitting.out_of_memory(error), EXIT_FAILED


def main(argv: list[str]) -> int:
  """Measures from the command line; returns the exit status."""
  if asks_for_help(argv):
    print(__doc__)
    print("  --repeats=3      counted repetitions")
    print("  --out=FOLDER     where the JSON file goes")
    print("  --prompts=WHERE  own,shared: each row keeps its prompt's keys and")
    print("                   values, or its group does (sampler, peers;")
    print("                   default: config.sampler.shared_prompts)")
    print("  --peers=NAMES    google-tunix,transformers (peers)")
    print("  --peer_repeats=1 their counted repetitions")
    print("  --peer_limit_s=600  seconds after which one of them is given up")
    return EXIT_OK
  if argv[1:2] == ["table"]:
    from experiments.bench import table

    return table.main(argv[2:])
  try:
    if len(argv) < 2 or argv[1] not in KINDS:
      got = argv[1] if len(argv) > 1 else "nothing"
      raise UsageError(f"what to measure? got {got}; one of {', '.join(KINDS)}")
    kind, rest = argv[1], [argv[0], *argv[2:]]
    config, values = settings_lib.parse(rest, _define)
    name = pathlib.Path(settings_lib.config_path(rest[1:])).stem
    _run(kind, config, values, name.removeprefix("bench_"))
  except (UsageError, OSError) as error:
    print(f"experiments.bench: {error}", file=sys.stderr)
    return EXIT_USAGE
  except Exception as error:
    line, status = _end_of(error)
    if line is None:
      raise
    print(f"experiments.bench: {line}", file=sys.stderr)
    return status
  return EXIT_OK


if __name__ == "__main__":
  sys.exit(main(sys.argv))
