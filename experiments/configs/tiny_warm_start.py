"""Makes the tiny policy that the quickstart starts from.

    python -m experiments.run --config=experiments/configs/tiny_warm_start.py
    python -m experiments.ship runs/tiny_warm_start

The first command trains it from nothing: conversations about training problems,
most of whose first answers hold a mistake, each with the verdict that the
harness gives and the repair. No reinforcement learning. About 50 minutes on two
cores. The second one puts the result into leap_jax/data/tiny (under 5 MB).
"""

from experiments.configs import base


def get_config():
  """Base with a supervised stage and nothing after it."""
  c = base.get_config()
  c.policy.source = "random"
  c.problems.num_train = 4096
  c.warm_start.num_steps = 1000
  c.warm_start.num_conversations = 8192
  c.run.num_iterations = 0
  return c
