r"""Speed of a 0.5B policy's update on one GPU: 256 rows of up to 1,024 tokens.

    python -m experiments.bench update \
      --config=experiments/configs/bench_update_0_5b.py

Random weights of Qwen2.5-0.5B, bfloat16 over float32 masters.
"""

from experiments.configs import bench_update_135m


def get_config():
  """The smaller policy's, with smaller micro-batches."""
  c = bench_update_135m.get_config()
  c.policy.size = "qwen2.5-0.5b"
  c.learner.micro_tokens = 32768
  return c
