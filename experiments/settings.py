"""The command line: a config file, single overrides, one clear line for a
mistake. JAX is not loaded before all of it is right."""

import math
import sys
from collections.abc import Callable, Sequence

from absl import flags
from ml_collections import config_dict, config_flags

from experiments.config_file import (
  TYPE_NAMES,
  UsageError,
  config_path,
  flat,
  load_file,
  near,
)
from experiments.setting_ranges import CHECKS
from leap_jax import choices


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


def validate(config: config_dict.ConfigDict) -> None:
  """Checks ranges and what must fit together.

  Raises:
    UsageError: naming the setting, its value and what is allowed.
  """
  settings = flat(config)
  assert set(settings) == set(CHECKS), set(settings) ^ set(CHECKS)
  for key, check in CHECKS.items():
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
      not config.harness.timing or config.harness.executor != "cpu",
      "config.harness.timing=true needs a GPU (config.harness.executor=cuda or "
      "auto): the CPU times nothing",
    ),
    (
      not config.harness.sanitizer or config.harness.executor != "cpu",
      "config.harness.sanitizer=true needs a GPU (config.harness.executor=cuda "
      "or auto): the CPU executor says itself what is wrong",
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
      config.harness.backend == "local"
      or config.harness.devices == tuple(range(len(config.harness.devices))),
      f"config.harness.devices={config.harness.devices} needs "
      "config.harness.backend=local: Ray says which GPUs it gives; (0, 1) asks "
      "for two of each machine",
    ),
    (
      config.harness.num_workers == 0
      or config.harness.num_workers >= len(config.harness.devices),
      f"config.harness.num_workers={config.harness.num_workers} judges for "
      f"config.harness.devices={config.harness.devices}; each GPU needs one",
    ),
    (
      config.sampler.attention != "cudnn" or config.sampler.dtype != "float32",
      "config.sampler.attention=cudnn computes in 16 bits; set "
      "config.sampler.dtype=bfloat16",
    ),
    (
      config.policy.source != "random" or config.warm_start.num_steps > 0,
      "config.policy.source=random needs config.warm_start.num_steps > 0: an "
      "untrained policy never writes a kernel or a function",
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
