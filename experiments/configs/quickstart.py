"""The quickstart: LEAP on a laptop without a GPU.

    python -m experiments.run --config=experiments/configs/quickstart.py

A tiny policy (1.7M parameters, warm-started) writes CUDA C++ for composed
problems; every kernel is compiled, executed and judged on the CPU. About four
minutes on two cores; held-out Acc@1 rises by more than ten points.
"""

from experiments.configs import base


def get_config():
  """Base with a learning rate for a tiny policy."""
  c = base.get_config()
  c.learner.learning_rate = 1e-4
  return c
