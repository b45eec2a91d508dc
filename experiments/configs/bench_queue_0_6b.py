r"""Decoding with more rows than slots: 2,048 of Qwen3-0.6B in 512 slots.

    python -m experiments.bench peers \
      --config=experiments/configs/bench_queue_0_6b.py

Random weights in bfloat16, prompt 256, 256 new tokens.
"""

from experiments.configs import bench_queue_0_5b


def get_config():
  """The other queue's, of another model."""
  c = bench_queue_0_5b.get_config()
  c.policy.size = "qwen3-0.6b"
  return c
