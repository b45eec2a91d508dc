r"""Speed of a 0.6B policy's update on one GPU: 256 rows of up to 1,024 tokens.

    python -m experiments.bench update \
      --config=experiments/configs/bench_update_0_6b.py

Random weights of Qwen3-0.6B, bfloat16 over float32 masters.
"""

from experiments.configs import bench_update_0_5b


def get_config():
  """The other half-billion policy's, with eight key-value heads of 128."""
  c = bench_update_0_5b.get_config()
  c.policy.size = "qwen3-0.6b"
  return c
