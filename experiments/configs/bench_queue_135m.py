r"""Decoding with more rows than slots: 4,096 of SmolLM2-135M in 1,024 slots.

    python -m experiments.bench peers \
      --config=experiments/configs/bench_queue_135m.py

Random weights in bfloat16, prompt 256, 256 new tokens.
"""

from experiments.configs import bench_queue_0_5b


def get_config():
  """The 0.5B queue's with twice the rows and slots."""
  c = bench_queue_0_5b.get_config()
  c.policy.size = "smollm2-135m"
  c.rollout.num_problems = 512
  c.sampler.max_slots = 1024
  c.sampler.prompts_per_call = 128
  return c
