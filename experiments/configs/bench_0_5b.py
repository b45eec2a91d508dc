r"""Speed of a 0.5B policy on one GPU: 512 rows, prompt 256, 256 new tokens.

    python -m experiments.bench sampler \
      --config=experiments/configs/bench_0_5b.py

Random weights of Qwen2.5-0.5B in bfloat16. Some minutes, most of them spent
compiling.
"""

from experiments.configs import base


def get_config():
  """Base with published sizes, bfloat16 and decoding programs of many sizes."""
  c = base.get_config()
  c.policy.size = "qwen2.5-0.5b"
  c.rollout.num_problems = 64
  c.rollout.group_size = 8
  c.rollout.num_turns = 1
  c.rollout.max_prompt_tokens = 256
  c.rollout.max_new_tokens = 256
  c.rollout.max_context_tokens = 512
  c.learner.bucket_tokens = (512,)
  c.sampler.dtype = "bfloat16"
  c.sampler.slot_ratio = 0.85
  # Below, a step hardly gets shorter: it reads the same weights.
  c.sampler.least_slots = 64
  c.sampler.idle_fraction = 0.05
  return c
