"""Measures speed and writes one JSON file for each measurement.

    python -m experiments.bench KIND --config=FILE [--config.X.Y=V ...]

sampler   decoding on one device: milliseconds a step, share of the roofline,
          useful slots (experiments/bench/sampler.py)
update    one update: tokens a second, share of the peak in operations
          (experiments/bench/update.py)
step      whole LEAP iterations of config.policy.source: where the time goes,
          idle time of accelerator and harness (experiments/bench/step.py)
peers     the same decoding by other libraries (experiments/bench/peers.py)
table     the README's table of all of them (experiments/bench/table.py)

But for `step`, weights are random, of config.policy.size. The batch is all rows
of a rollout (num_problems * group_size). Settings and their meaning:
experiments/configs/base.py.
"""

import json
import pathlib
import sys

from absl import flags

from experiments import settings as settings_lib
from experiments.settings import UsageError

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def _sampler(config, values):
  from experiments.bench import sampler

  return sampler.measure(config, values.repeats)


def _update(config, values):
  from experiments.bench import update

  return update.measure(config, values.repeats)


def _step(config, values):
  from experiments.bench import step

  return step.measure(config, values.repeats)


def _peers(config, values):
  from experiments.bench import peers

  return peers.measure(config, values.repeats, values.peers)


KINDS = {
  "sampler": _sampler,
  "update": _update,
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
  found = KINDS[kind](config, values)
  folder = pathlib.Path(values.out) if values.out else record.RESULTS
  name = name.removeprefix(f"{kind}_")
  path = record.write(folder, f"{kind}_{name}_b{found['batch']}", found)
  print(json.dumps(json.loads(path.read_text()), indent=2))
  print(path, file=sys.stderr)


def _line_of(error: Exception) -> str | None:
  """What an error says, if that is all there is to say."""
  from experiments.state import NonFinite
  from kernels_eval.client import HarnessError
  from leap_jax import fitting, sharding
  from leap_jax.policy_error import PolicyError

  known = (
    HarnessError
    | NonFinite
    | PolicyError
    | fitting.DoesNotFit
    | sharding.MeshError
  )
  if isinstance(error, known):
    return str(error)
  return fitting.out_of_memory(error)


def main(argv: list[str]) -> int:
  """Measures from the command line; returns the exit status."""
  if {"--help", "-h", "-help", "--helpfull"} & set(argv[1:]):
    print(__doc__)
    print("  --repeats=3      counted repetitions")
    print("  --out=FOLDER     where the JSON file goes")
    print("  --peers=NAMES    google-tunix,transformers (peers)")
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
    line = _line_of(error)
    if line is None:
      raise
    print(f"experiments.bench: {line}", file=sys.stderr)
    return EXIT_FAILED
  return EXIT_OK


if __name__ == "__main__":
  sys.exit(main(sys.argv))
