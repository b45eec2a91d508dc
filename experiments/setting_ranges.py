"""What each setting may be.

A check takes a value and gives None, or words for what it must be.
"""

from collections.abc import Sequence

from experiments import pools
from experiments.config_file import near
from kernels_eval.executors import EXECUTORS
from leap_jax import choices
from leap_jax.problems import SPLITS


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


def _indices(values):
  good = (
    len(values) > 0
    and all(isinstance(v, int) and v >= 0 for v in values)
    and len(set(values)) == len(values)
  )
  return None if good else "at least one index from 0, none twice"


def _ascending(values):
  good = (
    len(values) > 0
    and all(isinstance(v, int) and v > 0 for v in values)
    and list(values) == sorted(set(values))
  )
  return None if good else "ascending whole numbers above 0"


# More would be cut to 32 bits by JAX: two seeds, one run.
_SEED = _between(0, 2**32 - 1)

# Every setting stands here; `settings.validate` insists on it.
CHECKS = {
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
  "harness.devices": _indices,
  "harness.cpu_first": _anything,
  "harness.timing": _anything,
  "harness.sanitizer": _anything,
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
  "learner.denominator": _choice(choices.DENOMINATORS),
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
  "eval.growth": _between(0.0, 1.0),
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
