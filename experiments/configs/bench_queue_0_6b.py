r"""Decoding with more rows than slots: 2,048 of Qwen3-0.6B in 512 slots.

    python -m experiments.bench peers \
      --config=experiments/configs/bench_queue_0_6b.py

Random weights in bfloat16, prompt 256, 256 new tokens. Rows wait for the slots
of those that end; other libraries work through four batches of 512.
"""

from experiments.configs import bench_0_6b


def get_config():
  """Four times the rows of the one without a queue."""
  c = bench_0_6b.get_config()
  c.rollout.num_problems = 256
  c.sampler.max_slots = 512
  c.sampler.shared_prompts = True  # all rows have their place at once
  c.sampler.prompts_per_call = 64
  # A call costs some milliseconds beside its steps: half as many calls.
  c.sampler.idle_fraction = 0.1
  return c
