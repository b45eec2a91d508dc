r"""Decoding with more rows than slots: 4,096 of SmolLM2-135M in 1,024 slots.

    python -m experiments.bench peers \
      --config=experiments/configs/bench_queue_135m.py

Random weights in bfloat16, prompt 256, 256 new tokens. Rows wait for the slots
of those that end; other libraries work through four batches of 1,024.
"""

from experiments.configs import bench_135m


def get_config():
  """Four times the rows of the one without a queue."""
  c = bench_135m.get_config()
  c.rollout.num_problems = 512
  c.sampler.max_slots = 1024
  c.sampler.shared_prompts = True  # all rows have their place at once
  c.sampler.prompts_per_call = 128
  # A call costs some milliseconds beside its steps: half as many calls.
  c.sampler.idle_fraction = 0.1
  return c
