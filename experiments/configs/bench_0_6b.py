r"""Speed of a 0.6B policy on one GPU: 512 rows, prompt 256, 256 new tokens.

    python -m experiments.bench sampler \
      --config=experiments/configs/bench_0_6b.py

Random weights of Qwen3-0.6B in bfloat16. Some minutes, most of them spent
compiling.
"""

from experiments.configs import bench_0_5b


def get_config():
  """The other 0.5B policy's, with eight key-value heads of 128."""
  c = bench_0_5b.get_config()
  c.policy.size = "qwen3-0.6b"
  return c
