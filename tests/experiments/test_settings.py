"""Mistakes on the command line: one clear line before anything is loaded."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from experiments import gathering, run, settings, state
from experiments.configs import base
from leap_jax import choices, corrections, head, lora, losses, methods
from leap_jax.models import attention, sizes, whole_rows

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
    (
      "--config.method.gate=hrad",
      ["method.gate=hrad", "own, open, closed, difficulty", "mean hard?"],
    ),
    ("--config.method.reward=rnak", ["reward=rnak", "did you mean rank"]),
    ("--config.method.credit=last", ["credit=last", "discounted_last"]),
    ("--config.method.reward=rank_speed", ["needs config.harness.timing=true"]),
    (
      "--config.problems.source=functions --config.warm_start.num_steps=1",
      ["config.warm_start is for config.problems.source=kernels"],
    ),
    (
      "--config.problems.source=functions --config.problems.max_operators=7",
      ["max_operators=7: Python functions have at most 6"],
    ),
    ("--config.method.correction=TIS", ["correction=TIS", "none, tis"]),
    ("--config.method.gamma=1.5", ["gamma=1.5", "from 0.0 to 1.0"]),
    ("--config.run.save_trajectories=maybe", ["save_trajectories=maybe"]),
    ("--config.rollout.row_buckets=(64,32)", ["row_buckets", "ascending"]),
    ("--config.learner.bucket_tokens=(100,)", ["bucket_tokens ends at 100"]),
    (
      "--config.rollout.max_context_tokens=159",
      ["max_context_tokens=159", "no room for a prompt and an answer"],
    ),
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
@pytest.mark.covers("P16")
def test_a_mistake_names_the_setting_and_what_is_allowed(argument, words):
  with pytest.raises(settings.UsageError) as error:
    parse(*argument.split(" "))
  text = str(error.value)
  assert "\n" not in text
  for word in words:
    assert word in text


def advertised():
  """Overrides that the README and the configs show."""
  texts = [ROOT / "README.md", *CONFIGS]
  found = [
    flag
    for path in texts
    for flag in re.findall(
      r"--config\.[\w.]+=[\w.()+,-]*\w\)?", path.read_text()
    )
  ]
  return sorted({f for f in found if "config.X.Y" not in f})


@pytest.mark.parametrize("flag", advertised())
def test_what_we_advertise_is_accepted(flag):
  name, value = flag.removeprefix("--config.").split("=")
  config, _ = parse(flag)
  assert str(settings.flat(config)[name]) == value


@pytest.mark.parametrize("num_problems", [1, 2, 8, 16, 24])
@pytest.mark.parametrize("group_size", [2, 8, 16])
@pytest.mark.parametrize("buckets", ["(32,128)", "(7,)", "(32,256)"])
def test_any_sizes_of_a_rollout_are_accepted(num_problems, group_size, buckets):
  # Whatever is accepted here runs: see the batches in test_rollout_shape.py.
  config, _ = parse(
    f"--config.rollout.num_problems={num_problems}",
    f"--config.rollout.group_size={group_size}",
    f"--config.rollout.row_buckets={buckets}",
  )
  assert state.rollout_shape(config).bucket_for(num_problems * group_size)


# For every setting at least one value that it must not have.
BAD = {
  "seed": ["-1", "4294967296", "99999999999999999999999"],
  "policy.source": ["", " "],
  "policy.system_prompt": ["", " "],
  "policy.chat_template": ["", " "],
  "policy.thinking": ["maybe"],
  "policy.size": ["huge"],
  "policy.vocab_size": ["299"],
  "policy.remat": ["all"],
  "policy.dtype": ["float16"],
  "policy.layers": ["loop"],
  "policy.lora_rank": ["-1"],
  "policy.lora_alpha": ["0", "nan"],
  "policy.lora_targets": ["()", "('q',)", "('up','up')"],
  "harness.backend": ["rey"],
  "harness.executor": ["gpu"],
  "harness.timing": ["maybe"],
  "harness.ray_address": ["", " "],
  "problems.source": ["haskell"],
  "problems.min_operators": ["0"],
  "problems.max_operators": ["0", "9"],
  "problems.reduced": ["-0.1", "1.1", "nan"],
  "problems.num_train": ["0"],
  "problems.num_heldout": ["0"],
  "problems.heldout_split": ["train"],
  "problems.long_prompts": ["cut"],
  "problems.seed": ["-1", "99999999999999999999999"],
  "harness.num_workers": ["-1"],
  "harness.seed": ["-1", "4294967296"],
  "harness.run_cpu_s": ["0", "inf", "nan"],
  "harness.compile_cpu_s": ["0", "-1", "inf"],
  "rollout.num_problems": ["0"],
  "rollout.group_size": ["1"],
  "rollout.num_turns": ["0", "17"],
  "rollout.temperature": ["0", "inf", "nan"],
  "rollout.max_prompt_tokens": ["7"],
  "rollout.max_feedback_tokens": ["11"],
  "rollout.max_new_tokens": ["0"],
  "rollout.max_context_tokens": ["0", "90", "231"],
  "rollout.row_buckets": ["()", "(64,32)", "(0,128)"],
  "rollout.min_spread_groups": ["-1"],
  "rollout.max_refill_rounds": ["-1"],
  "method.name": ["ppo"],
  "method.gate": ["shut"],
  "method.reward": ["points"],
  "method.credit": ["all"],
  "method.fail_rate_decay": ["1", "-0.1", "nan"],
  "method.correction": ["mis"],
  "method.mirror_pop_delta": ["0", "inf"],
  "method.sampling": ["greedy"],
  "method.f_lo": ["-0.1", "nan"],
  "method.f_hi": ["1.1"],
  "method.gamma": ["1.1"],
  "learner.learning_rate": ["0", "inf", "nan"],
  "learner.warmup_updates": ["-1"],
  "learner.max_grad_norm": ["0", "inf"],
  "learner.weight_decay": ["-1", "inf"],
  "learner.b1": ["1.5", "1", "-0.1"],
  "learner.b2": ["1", "nan"],
  "learner.updates_per_iteration": ["0"],
  "learner.clip_low": ["-0.1", "1.1"],
  "learner.clip_high": ["-0.1", "inf"],
  "learner.kl_coef": ["-1", "inf"],
  "learner.normalization": ["mean"],
  "learner.bucket_tokens": ["()", "(100,)"],
  "learner.micro_tokens": ["0"],
  "learner.head": ["half"],
  "learner.head_tokens": ["0"],
  "learner.max_log_ratio": ["-1", "0", "inf"],
  "learner.stop_log_ratio": ["-1", "0", "nan", "tight"],
  "sampler.top_k": ["-1"],
  "sampler.top_p": ["0", "1.1", "nan"],
  "sampler.min_p": ["-0.1", "1"],
  "sampler.dtype": ["float16", "int8"],
  "sampler.attention": ["flash"],
  "sampler.max_slots": ["-1"],
  "sampler.slot_ratio": ["0", "1.5"],
  "sampler.least_slots": ["0"],
  "sampler.idle_fraction": ["0", "2"],
  "sampler.prefix_step": ["-1"],
  "sampler.prompts_per_call": ["-1"],
  "sampler.shared_prompts": ["perhaps"],
  "warm_start.num_steps": ["-1"],
  "warm_start.num_conversations": ["0"],
  "warm_start.first_right": ["-0.1", "1.1"],
  "warm_start.repair_right": ["-0.1", "1.1"],
  "warm_start.batch_rows": ["0"],
  "warm_start.learning_rate": ["0", "inf"],
  "warm_start.warmup_steps": ["-4"],
  "warm_start.log_every": ["0"],
  "warm_start.checkpoint_every": ["0"],
  "eval.every": ["-1"],
  "eval.ks": ["()", "(4,1)"],
  "eval.random_feedback": ["maybe"],
  "run.num_iterations": ["-1"],
  "run.max_training_s": ["0", "-1", "inf", "long"],
  "run.checkpoint_every": ["0"],
  "run.keep_checkpoints": ["1"],
  "run.save_trajectories": ["maybe"],
  "harness.cpu_first": ["maybe"],
  "run.compilation_cache": [" "],
  "run.model_devices": ["0"],
}


@pytest.mark.parametrize("key", settings.flat(base.get_config()))
def test_every_setting_refuses_what_it_must_not_be(key):
  for value in BAD[key]:
    with pytest.raises(settings.UsageError) as error:
      parse(f"--config.{key}={value}")
    text = str(error.value)
    assert key.split(".")[-1] in text and "\n" not in text
    assert "None" not in text, text


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
@pytest.mark.covers("P16")
def test_a_mistake_in_a_file_is_found_too(tmp_path, body, words):
  path = tmp_path / "mine.py"
  path.write_text(
    "from experiments.configs import base\n"
    f"def get_config():\n  c = base.get_config()\n  {body}\n  return c\n"
  )
  with pytest.raises(settings.UsageError, match=words) as error:
    parse(config=str(path))
  assert "\n" not in str(error.value)


START = "from experiments.configs import base\n"


@pytest.mark.parametrize(
  "text,words",
  [
    ("def get_config(:\n", [":1: SyntaxError"]),
    ("\nimport no_such_module\n", [":2: ModuleNotFoundError", "no_such_mod"]),
    ("\n\n1 / 0\n", [":3: ZeroDivisionError: division by zero"]),
    ("def get_config():\n  return base\n", [":2: NameError", "base"]),
    ("def get_config():\n  raise RuntimeError\n", [":2: RuntimeError"]),
    ("def get_config():\n  assert False\n", [":2: AssertionError"]),
    ("def get_config(argument):\n  pass\n", ["TypeError", "argument"]),
    ("config = 3\n", ["no function get_config"]),
    ("get_config = 3\n", ["TypeError", "not callable"]),
    ("def get_config():\n  return {}\n", ["returns dict", "ConfigDict"]),
    ("def get_config():\n  pass\n", ["returns NoneType", "ConfigDict"]),
    (
      "from ml_collections import ConfigDict\n"
      "def get_config():\n  return ConfigDict({'seed': 1})\n",
      ["config.eval.every is missing", "base.get_config()"],
    ),
    (
      START + "def get_config():\n  c = base.get_config()\n"
      "  with c.unlocked():\n    c.sead = 1\n  return c\n",
      ["no setting config.sead; did you mean seed?"],
    ),
    (
      START + "def get_config():\n  c = base.get_config()\n"
      "  c.learner.learning_rat = 1.0\n  return c\n",
      [":4: AttributeError", "learning_rat"],
    ),
    ("\0", ["SyntaxError"]),
    (
      START + "def get_config():\n  c = base.get_config()\n"
      "  with c.ignore_type():\n    c.seed = 'one'\n  return c\n",
      ["config.seed='one': expected a whole number"],
    ),
  ],
)
@pytest.mark.parametrize("flags", [[], ["--help"]], ids=["run", "help"])
@pytest.mark.covers("P16")
def test_a_config_that_fails_is_one_line_with_its_place(
  tmp_path, capsys, text, words, flags
):
  path = tmp_path / "mine.py"
  path.write_text(text)
  folder = tmp_path / "run"
  argv = ["run", f"--config={path}", f"--workdir={folder}", *flags]
  assert run.main(argv) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith(f"experiments.run: {path}")
  for word in words:
    assert word in line
  assert not folder.exists()


def test_a_config_of_another_kind_of_file_is_one_line(tmp_path):
  path = tmp_path / "notes.md"
  path.write_text("# Notes\n\nwords of a language\n")
  with pytest.raises(settings.UsageError, match="notes.md:3: SyntaxError"):
    settings.load_file(str(path))


def test_help_on_a_config_that_is_not_there_is_one_line(capsys):
  assert run.main(["run", "--config=nonexist.py", "--help"]) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert "no config file nonexist.py" in line


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
  parse(config=str(path.relative_to(ROOT))) if path.stem != "base" else None
  text = path.read_text()
  if path.stem != "base":
    command = (
      r"python -m experiments\.(run|bench \w+) "
      rf"--config=experiments/configs/{path.name}\b"
    )
    assert re.search(command, re.sub(r"[\s\\]+", " ", text))


@pytest.mark.parametrize(
  "arguments,code,words",
  [
    (["--config.learner.learning_rat=1"], 2, "learning_rate"),
    (["--config.policy.source=/nowhere"], 2, "no policy in /nowhere"),
    (
      ["--config.harness.backend=ray", "--config.harness.ray_address=nowhere"],
      4,
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


@pytest.mark.parametrize(
  "table,names",
  [
    (sizes.SIZES, choices.SIZES),
    (whole_rows.REMAT, choices.REMAT),
    (whole_rows.LAYERS, choices.LAYERS),
    (head.HEADS, choices.HEADS),
    (dict.fromkeys(lora.TARGETS), choices.LORA_TARGETS),
    (attention.IMPLEMENTATIONS, choices.ATTENTION),
    (methods.METHODS, choices.METHODS),
    (methods.TURN_ADVANTAGES, choices.TURN_LEVEL_METHODS),
    (methods.GATES, choices.GATES),
    (methods.REWARDS, choices.REWARDS),
    (methods.CREDITS, choices.CREDITS),
    (corrections.CORRECTIONS, choices.CORRECTIONS),
    (gathering.SAMPLINGS, choices.SAMPLINGS),
    (losses.NORMALIZATIONS, choices.NORMALIZATIONS),
  ],
)
def test_choices_are_the_keys_of_their_tables(table, names):
  assert tuple(table) == names


_MISTAKE = """
import sys
from experiments import run
code = run.main(["run", *sys.argv[1:]])
print(code, [m for m in ("jax", "flax", "orbax", "optax") if m in sys.modules])
"""


@pytest.mark.parametrize(
  "argument",
  [
    "--config.learner.learning_rat=1e-5",
    "--config.method.name=leep",
    "--config.policy.size=huge",
    "--config.rollout.group_size=8.5",
    "--config.method.f_lo=0.95",
    "--no_such_flag=1",
    "--help",
  ],
)
@pytest.mark.covers("P16")
def test_a_mistake_is_answered_before_jax_is_loaded(argument):
  done = subprocess.run(
    [sys.executable, "-c", _MISTAKE, f"--config={QUICKSTART}", argument],
    cwd=ROOT,
    capture_output=True,
    text=True,
  )
  code = 0 if argument == "--help" else 2
  assert done.stdout.splitlines()[-1] == f"{code} []", done.stderr


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


@pytest.mark.parametrize("name", choices.TURN_LEVEL_METHODS)
@pytest.mark.parametrize("part", ["reward=rank", "credit=shared"])
def test_a_method_that_pays_turns_takes_no_part_of_another_one(name, part):
  with pytest.raises(settings.UsageError) as error:
    parse(f"--config.method.name={name}", f"--config.method.{part}")
  text = str(error.value)
  assert f"config.method.name={name} pays turns" in text and "leap" in text
  with pytest.raises(ValueError, match="no reward, no credit"):
    methods.make_method(
      name,
      **dict([part.split("=")]),
      f_lo=0.5,
      f_hi=0.875,
      gamma=0.4,
    )
  # Its gate may be another one.
  parse(f"--config.method.name={name}", "--config.method.gate=difficulty")
