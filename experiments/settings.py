"""The command line: a config file, single overrides, one clear line for a
mistake. JAX is not loaded before all of it is right."""

import math
import os
import sys
from collections.abc import Callable, Sequence

from absl import flags
from ml_collections import config_dict, config_flags

from experiments import pools
from experiments.config_file import (
  TYPE_NAMES,
  UsageError,
  config_path,
  flat,
  load_file,
  near,
)
from kernels_eval.executors import EXECUTORS
from leap_jax import choices
from leap_jax.problems import SPLITS


def _without_config(argv):
  """The arguments without --config=FILE, which has been read already."""
  kept, skip = [], False
  for argument in argv:
    if skip:
      skip = False
    elif argument in ("--config", "-config"):
      skip = True
    elif not argument.startswith(("--config=", "-config=")):
      kept.append(argument)
  return kept


def _check_names(argv, config):
  known = [f"config.{key}" for key in flat(config)]
  for argument in argv:
    name = argument.lstrip("-").split("=", 1)[0]
    if not name.startswith("config."):
      continue
    if name not in known:
      sections = [f"config.{key}" for key in config]
      if name in sections:
        raise UsageError(f"--{name} is a section; set one of its fields")
      raise UsageError(f"no setting {name}{near(name, known)}")


def _explain(error, config):
  """One line for a value that the parser refused."""
  text = str(error)
  name = text.removeprefix("flag --").split("=", 1)[0]
  value = text.split("=", 1)[1].split(":", 1)[0] if "=" in text else "?"
  key = name.removeprefix("config.")
  settings = flat(config)
  if name.startswith("config.") and key in settings:
    wanted = config
    *sections, last = key.split(".")
    for section in sections:
      wanted = wanted[section]
    kind = wanted.get_type(last)
    now = settings[key]
    example = ", or no flag at all" if now is None else f", such as {now}"
    return (
      f"{name}={value}: expected {TYPE_NAMES.get(kind, kind.__name__)}{example}"
    )
  return text


def parse(
  argv: Sequence[str], define: Callable[[flags.FlagValues], None]
) -> tuple[config_dict.ConfigDict, flags.FlagValues]:
  """Reads the command line.

  Args:
    argv: with the program's name first.
    define: adds the program's own flags.

  Returns:
    The locked, validated config, and the other flags.

  Raises:
    UsageError: with the nearest valid name, or the expected type and range.
  """
  path = config_path(argv[1:])
  if path is None:
    raise UsageError(
      "no config: add --config=experiments/configs/quickstart.py"
    )
  config = load_file(path)
  _check_names(argv[1:], config)
  values = flags.FlagValues()
  define(values)
  argv = _without_config(argv)
  # ml_collections finds the overrides in sys.argv.
  before, sys.argv = sys.argv, argv
  try:
    config_flags.DEFINE_config_dict(
      "config", config, lock_config=True, flag_values=values
    )
    rest = values(argv)
  except flags.UnrecognizedFlagError as error:
    names = [name for name in values if not name.startswith("config.")]
    raise UsageError(
      f"no flag --{error.flagname}{near(error.flagname, names)}"
    ) from None
  except flags.IllegalFlagValueError as error:
    raise UsageError(_explain(error, config)) from None
  except (flags.Error, AttributeError, KeyError, TypeError) as error:
    raise UsageError(str(error).strip("'").split("\\n")[0]) from None
  finally:
    sys.argv = before
  if len(rest) > 1:
    raise UsageError(f"unexpected argument {rest[1]}; flags start with --")
  config = values.config
  validate(config)
  return config, values


def _choice(names: Sequence[str]):
  def check(value):
    if value not in names:
      return f"one of {', '.join(names)}{near(str(value), names)}"
    return None

  return check


def _some_of(names: Sequence[str]):
  def check(values):
    wrong = [str(v) for v in values if v not in names]
    if wrong:
      return f"some of {', '.join(names)}{near(wrong[0], names)}"
    if not values or len(set(values)) < len(values):
      return "at least one name, none twice"
    return None

  return check


def _anything(value):
  del value
  return None


def _unset_or(check):
  return lambda v: None if v is None else check(v)


def _below_one(value):
  return None if 0.0 <= value < 1.0 else "at least 0 and below 1"


def _share(value):
  return None if 0.0 < value <= 1.0 else "above 0 and at most 1"


def _named(value):
  return None if value.strip() else "a name or a folder, not empty"


def _text(value):
  return None if value.strip() else "a text, not empty"


def _at_least(least):
  return lambda v: None if v >= least else f"at least {least}"


def _between(low, high):
  return lambda v: None if low <= v <= high else f"from {low} to {high}"


def _above(limit):
  return lambda v: None if v > limit else f"above {limit}"


def _ascending(values):
  good = (
    len(values) > 0
    and all(isinstance(v, int) and v > 0 for v in values)
    and list(values) == sorted(set(values))
  )
  return None if good else "ascending whole numbers above 0"


# More would be cut to 32 bits by JAX: two seeds, one run.
_SEED = _between(0, 2**32 - 1)

# Every setting stands here; `validate` insists on it.
_CHECKS = {
  "seed": _SEED,
  "policy.source": _named,
  "policy.system_prompt": _unset_or(_text),
  "policy.chat_template": _unset_or(_named),
  "policy.thinking": _anything,
  "policy.size": _choice(choices.SIZES),
  "policy.vocab_size": _at_least(300),
  "policy.remat": _choice(("auto", *choices.REMAT)),
  "policy.dtype": _choice(choices.DTYPES),
  "policy.layers": _choice(choices.LAYERS),
  "policy.lora_rank": _at_least(0),
  "policy.lora_alpha": _above(0.0),
  "policy.lora_targets": _some_of(choices.LORA_TARGETS),
  "problems.min_operators": _at_least(1),
  "problems.max_operators": _between(1, 8),
  "problems.reduced": _between(0.0, 1.0),
  "problems.source": _choice(("kernels", "functions")),
  "problems.num_train": _at_least(1),
  "problems.num_heldout": _at_least(1),
  "problems.heldout_split": _choice(SPLITS[1:]),
  "problems.long_prompts": _choice(("skip", "refuse")),
  "problems.seed": _SEED,
  "harness.backend": _choice(pools.BACKENDS),
  "harness.executor": _choice(EXECUTORS),
  "harness.cpu_first": _anything,
  "harness.timing": _anything,
  "harness.ray_address": _unset_or(_named),
  "harness.num_workers": _at_least(0),
  "harness.seed": _SEED,
  "harness.run_cpu_s": _above(0.0),
  "harness.compile_cpu_s": _above(0.0),
  "rollout.num_problems": _at_least(1),
  "rollout.group_size": _at_least(2),
  "rollout.num_turns": _between(1, 16),
  "rollout.temperature": _above(0.0),
  "rollout.max_prompt_tokens": _at_least(8),
  "rollout.max_feedback_tokens": _at_least(12),
  "rollout.max_new_tokens": _at_least(1),
  "rollout.max_context_tokens": _at_least(1),
  "rollout.row_buckets": _ascending,
  "rollout.max_refill_rounds": _at_least(0),
  "rollout.min_spread_groups": _at_least(0),
  "sampler.top_k": _at_least(0),
  "sampler.top_p": _share,
  "sampler.min_p": _below_one,
  "sampler.dtype": _choice(("float32", "bfloat16")),
  "sampler.attention": _choice(("auto", *choices.ATTENTION)),
  "sampler.max_slots": _at_least(0),
  "sampler.slot_ratio": _between(0.25, 1.0),
  "sampler.least_slots": _at_least(1),
  "sampler.idle_fraction": _share,
  "sampler.prefix_step": _at_least(0),
  "sampler.prompts_per_call": _at_least(0),
  "sampler.shared_prompts": _anything,
  "method.name": _choice(choices.METHODS),
  "method.gate": _choice(("own", *choices.GATES)),
  "method.reward": _choice(("own", *choices.REWARDS)),
  "method.credit": _choice(("own", *choices.CREDITS)),
  "method.fail_rate_decay": _below_one,
  "method.correction": _choice(choices.CORRECTIONS),
  "method.mirror_pop_delta": _above(0.0),
  "method.sampling": _choice(choices.SAMPLINGS),
  "method.f_lo": _between(0.0, 1.0),
  "method.f_hi": _between(0.0, 1.0),
  "method.gamma": _between(0.0, 1.0),
  "learner.learning_rate": _above(0.0),
  "learner.warmup_updates": _at_least(0),
  "learner.max_grad_norm": _above(0.0),
  "learner.weight_decay": _at_least(0.0),
  "learner.b1": _below_one,
  "learner.b2": _below_one,
  "learner.updates_per_iteration": _at_least(1),
  "learner.clip_low": _between(0.0, 1.0),
  "learner.clip_high": _at_least(0.0),
  "learner.kl_coef": _at_least(0.0),
  "learner.normalization": _choice(choices.NORMALIZATIONS),
  "learner.bucket_tokens": _ascending,
  "learner.micro_tokens": _at_least(1),
  "learner.head": _choice(choices.HEADS),
  "learner.head_tokens": _at_least(1),
  "learner.max_log_ratio": _above(0.0),
  "learner.stop_log_ratio": _unset_or(_above(0.0)),
  "warm_start.num_steps": _at_least(0),
  "warm_start.num_conversations": _at_least(1),
  "warm_start.first_right": _between(0.0, 1.0),
  "warm_start.repair_right": _between(0.0, 1.0),
  "warm_start.batch_rows": _at_least(1),
  "warm_start.learning_rate": _above(0.0),
  "warm_start.warmup_steps": _at_least(0),
  "warm_start.log_every": _at_least(1),
  "warm_start.checkpoint_every": _at_least(1),
  "eval.every": _at_least(0),
  "eval.ks": _ascending,
  "eval.random_feedback": _anything,
  "run.num_iterations": _at_least(0),
  "run.max_training_s": _unset_or(_above(0.0)),
  "run.checkpoint_every": _at_least(1),
  "run.keep_checkpoints": _at_least(2),
  "run.save_trajectories": _anything,
  "run.model_devices": _at_least(1),
  "run.compilation_cache": _unset_or(_named),
}


def validate(config: config_dict.ConfigDict) -> None:
  """Checks ranges and what must fit together.

  Raises:
    UsageError: naming the setting, its value and what is allowed.
  """
  settings = flat(config)
  assert set(settings) == set(_CHECKS), set(settings) ^ set(_CHECKS)
  for key, check in _CHECKS.items():
    value = settings[key]
    if isinstance(value, float) and not math.isfinite(value):
      raise UsageError(f"config.{key}={value}: must be a finite number")
    wanted = check(value)
    if wanted is not None:
      raise UsageError(f"config.{key}={value}: must be {wanted}")
  rollout, learner = config.rollout, config.learner
  together = (
    (
      config.problems.min_operators <= config.problems.max_operators,
      "config.problems.min_operators is above max_operators",
    ),
    (
      config.method.reward != "rank_speed" or config.harness.timing,
      "config.method.reward=rank_speed needs config.harness.timing=true: "
      "without it no kernel has a speed",
    ),
    (
      config.method.reward != "rank_speed" or config.harness.executor != "cpu",
      "config.method.reward=rank_speed needs a GPU (config.harness.executor="
      "cuda or auto): the CPU times nothing",
    ),
    (
      config.policy.source != "random"
      or config.policy.system_prompt
      is config.policy.chat_template
      is config.policy.thinking
      is None,
      "config.policy.source=random has a chat format of its own; unset "
      "config.policy.system_prompt, chat_template and thinking",
    ),
    (
      config.problems.source == "kernels" or config.warm_start.num_steps == 0,
      "config.warm_start is for config.problems.source=kernels: there are no "
      "conversations about Python functions",
    ),
    (
      config.problems.source == "kernels" or config.problems.max_operators <= 6,
      f"config.problems.max_operators={config.problems.max_operators}: Python "
      "functions have at most 6 steps",
    ),
    (
      config.method.f_lo <= config.method.f_hi,
      "config.method.f_lo is above f_hi: the gate would never open",
    ),
    (
      config.method.name not in choices.TURN_LEVEL_METHODS
      or (config.method.reward, config.method.credit) == ("own", "own"),
      f"config.method.name={config.method.name} pays turns by what they return "
      "and takes no other config.method.reward or credit; methods that do: "
      + ", ".join(
        m for m in choices.METHODS if m not in choices.TURN_LEVEL_METHODS
      ),
    ),
    (
      rollout.max_context_tokens
      >= rollout.max_prompt_tokens + rollout.max_new_tokens,
      f"config.rollout.max_context_tokens={rollout.max_context_tokens} has no "
      "room for a prompt and an answer (max_prompt_tokens + max_new_tokens = "
      f"{rollout.max_prompt_tokens + rollout.max_new_tokens})",
    ),
    (
      learner.bucket_tokens[-1] >= longest_row(config),
      f"config.learner.bucket_tokens ends at {learner.bucket_tokens[-1]}; a "
      f"trajectory can have {longest_row(config)} tokens",
    ),
    (
      config.problems.num_train >= rollout.num_problems,
      f"config.problems.num_train={config.problems.num_train} is less than "
      f"rollout.num_problems={rollout.num_problems}",
    ),
    (
      config.harness.backend == "ray" or config.harness.ray_address is None,
      f"config.harness.ray_address={config.harness.ray_address} needs "
      "config.harness.backend=ray",
    ),
    (
      config.sampler.attention != "cudnn" or config.sampler.dtype != "float32",
      "config.sampler.attention=cudnn computes in 16 bits; set "
      "config.sampler.dtype=bfloat16",
    ),
    (
      config.policy.source != "random" or config.warm_start.num_steps > 0,
      "config.policy.source=random needs config.warm_start.num_steps > 0: an "
      "untrained policy never writes a kernel",
    ),
  )
  for good, text in together:
    if not good:
      raise UsageError(text)


def longest_row(config: config_dict.ConfigDict) -> int:
  """The most tokens that a trajectory can have."""
  r = config.rollout
  longest = (
    r.max_prompt_tokens
    + r.num_turns * r.max_new_tokens
    + (r.num_turns - 1) * r.max_feedback_tokens
  )
  return min(longest, r.max_context_tokens)


def num_processors() -> int:
  """Processors that this process may use."""
  return len(os.sched_getaffinity(0))
