"""Single settings: what each may be, and one clear line for the rest."""

import re

import pytest

from experiments import settings, state
from experiments.configs import base
from tests.experiments.command_lines import CONFIGS, ROOT, parse


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
      "--config.method.reward=rank_speed --config.harness.timing=true",
      ["harness.timing=true needs a GPU", "harness.executor=cuda or auto"],
    ),
    (
      "--config.harness.backend=ray --config.harness.devices=(1,)",
      ["harness.devices=(1,) needs config.harness.backend=local", "asks for"],
    ),
    (
      "--config.harness.num_workers=1 --config.harness.devices=(0,1)",
      ["num_workers=1 judges for config.harness.devices=(0, 1)", "needs one"],
    ),
    (
      "--config.harness.sanitizer=true",
      ["harness.sanitizer=true needs a GPU", "harness.executor=cuda or auto"],
    ),
    (
      "--config.policy.source=random --config.warm_start.num_steps=1 "
      "--config.policy.system_prompt=x",
      ["policy.source=random has a chat format", "unset"],
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
  "harness.sanitizer": ["maybe"],
  "harness.devices": ["()", "(-1,)", "(0,0)", "one"],
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
  "learner.denominator": ["all"],
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
  "eval.growth": ["-0.1", "1.5", "inf", "nan"],
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
