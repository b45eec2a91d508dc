r"""Speed of a 135M policy on one GPU: 1024 rows, prompt 256, 256 new tokens.

    python -m experiments.bench sampler \
      --config=experiments/configs/bench_135m.py

Random weights of SmolLM2-135M (a Llama) in bfloat16. Some minutes, most of them
spent compiling.
"""

from experiments.configs import bench_0_5b


def get_config():
  """The 0.5B policies' with twice the rows."""
  c = bench_0_5b.get_config()
  c.policy.size = "smollm2-135m"
  c.rollout.num_problems = 128
  return c
