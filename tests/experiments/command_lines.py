"""Command lines of a run, parsed and not run."""

import pathlib

from absl import flags

from experiments import settings

ROOT = pathlib.Path(__file__).parents[2]


QUICKSTART = "experiments/configs/quickstart.py"


CONFIGS = sorted(
  p
  for p in (ROOT / "experiments" / "configs").glob("*.py")
  if p.name != "__init__.py"
)


def parse(*arguments, config=QUICKSTART):
  def define(values):
    flags.DEFINE_string("workdir", None, "", flag_values=values)

  argv = ["run", f"--config={ROOT / config}", *arguments]
  return settings.parse(argv, define)
