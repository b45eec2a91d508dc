"""Mistakes on the command line: one clear line before anything is loaded."""

import os
import pathlib
import subprocess
import sys

import pytest

from experiments import settings

ROOT = pathlib.Path(__file__).parents[2]
QUICKSTART = "experiments/configs/quickstart.py"
CONFIGS = sorted(
  p
  for p in (ROOT / "experiments" / "configs").glob("*.py")
  if p.name != "__init__.py"
)


def parse(*arguments, config=QUICKSTART):
  from absl import flags

  def define(values):
    flags.DEFINE_string("workdir", None, "", flag_values=values)

  argv = ["run", f"--config={ROOT / config}", *arguments]
  return settings.parse(argv, define)


@pytest.mark.parametrize(
  "argument,words",
  [
    (
      "--config.learner.learning_rat=1e-5",
      ["learner.learning_rat", "did you mean config.learner.learning_rate"],
    ),
    ("--config.lerner.clip_low=0.1", ["config.learner.clip_low"]),
    (
      "--config.rollout.group_size=8.5",
      ["rollout.group_size=8.5", "whole number", "8"],
    ),
    ("--config.rollout.group_size=eight", ["group_size=eight", "whole number"]),
    ("--config.rollout.group_size=-1", ["group_size=-1", "at least 2"]),
    ("--config.learner.learning_rate=fast", ["learning_rate=fast", "a number"]),
    ("--config.learner.learning_rate=0", ["learning_rate=0.0", "above 0"]),
    ("--config.method.name=leep", ["method.name=leep", "did you mean leap"]),
    ("--config.method.gamma=1.5", ["gamma=1.5", "from 0.0 to 1.0"]),
    ("--config.run.save_trajectories=maybe", ["save_trajectories=maybe"]),
    ("--config.rollout.row_buckets=(64,32)", ["row_buckets", "ascending"]),
    ("--config.rollout.row_buckets=(32,64)", ["row_buckets ends at 64", "128"]),
    ("--config.learner.bucket_tokens=(100,)", ["bucket_tokens ends at 100"]),
    ("--config.rollout=3", ["section"]),
    ("--config.harness.backend=rai", ["backend=rai", "did you mean ray"]),
    ("--config.harness.backnd=ray", ["did you mean config.harness.backend"]),
    ("--config.harness.ray_address=h:1", ["ray_address=h:1", "backend=ray"]),
    ("--config.learner.stop_log_ratio=tight", ["stop_log_ratio=tight"]),
    ("--no_such_flag=1", ["no flag --no_such_flag"]),
    ("--workdirr=x", ["--workdirr", "did you mean workdir"]),
    ("stray", ["unexpected argument stray"]),
    ("--config.policy.source=random", ["warm_start.num_steps"]),
    ("--config.method.f_lo=0.95", ["f_lo is above f_hi"]),
  ],
)
def test_a_mistake_names_the_setting_and_what_is_allowed(argument, words):
  with pytest.raises(settings.UsageError) as error:
    parse(argument)
  text = str(error.value)
  assert "\n" not in text
  for word in words:
    assert word in text


def test_a_missing_config_is_named_with_its_neighbour():
  with pytest.raises(settings.UsageError, match="quickstart.py"):
    parse(config="experiments/configs/quickstrat.py")
  with pytest.raises(settings.UsageError, match="no config: add --config="):
    settings.parse(["run"], lambda values: None)


@pytest.mark.parametrize(
  "body,words",
  [
    ("c.learner.learning_rat = 1.0", "learning_rat"),
    ('c.update({"learner": {"learning_rat": 1.0}})', "learning_rat"),
    ('c.rollout.group_size = "eight"', "eight"),
  ],
)
def test_a_mistake_in_a_file_is_found_too(tmp_path, body, words):
  path = tmp_path / "mine.py"
  path.write_text(
    "from experiments.configs import base\n"
    f"def get_config():\n  c = base.get_config()\n  {body}\n  return c\n"
  )
  with pytest.raises(settings.UsageError, match=words) as error:
    parse(config=str(path))
  assert "\n" not in str(error.value)


def test_an_unset_number_takes_a_number():
  config, _ = parse()
  assert config.learner.stop_log_ratio is None
  config, _ = parse("--config.learner.stop_log_ratio=0.1")
  assert config.learner.stop_log_ratio == 0.1


def test_overrides_and_types():
  config, values = parse(
    "--config.seed=7",
    "--config.rollout.row_buckets=(16,64,128)",
    "--config.method.name=grpo_multi_turn",
    "--workdir=somewhere",
  )
  assert config.seed == 7
  assert config.rollout.row_buckets == (16, 64, 128)
  assert config.method.name == "grpo_multi_turn"
  assert values.workdir == "somewhere"
  with pytest.raises((AttributeError, KeyError)):
    config.rollout.typo = 1


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_config_is_valid_and_says_how_to_run_it(path):
  import re

  parse(config=str(path.relative_to(ROOT))) if path.stem != "base" else None
  text = path.read_text()
  if path.stem != "base":
    command = (
      f"python -m experiments.run --config=experiments/configs/{path.name}"
    )
    assert command in re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
  "arguments,code,words",
  [
    (["--config.learner.learning_rat=1"], 2, "learning_rate"),
    (["--config.policy.source=/nowhere"], 2, "no policy in /nowhere"),
    (
      ["--config.harness.backend=ray", "--config.harness.ray_address=nowhere"],
      2,
      "infrastructure_error: the Ray address nowhere is not of the form",
    ),
  ],
)
def test_the_program_exits_with_one_line(tmp_path, arguments, code, words):
  done = subprocess.run(
    [
      sys.executable,
      "-m",
      "experiments.run",
      f"--config={QUICKSTART}",
      f"--workdir={tmp_path / 'run'}",
      *arguments,
    ],
    cwd=ROOT,
    capture_output=True,
    text=True,
    env={**os.environ, "JAX_PLATFORMS": "cpu"},
  )
  assert done.returncode == code
  last = done.stderr.strip().splitlines()[-1]
  assert last.startswith("experiments.run: ") and words in last
  assert "Traceback" not in done.stderr


def test_help_shows_every_setting():
  done = subprocess.run(
    [sys.executable, "-m", "experiments.run", "--help"],
    cwd=ROOT,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0
  assert "--config.method.gamma=0.4" in done.stdout
  assert "--workdir" in done.stdout
