"""A config of the real program that ends in seconds, for test_run.py."""

from experiments.configs import quickstart


def get_config():
  """Two problems, four samples, two turns, four iterations."""
  c = quickstart.get_config()
  c.problems.max_operators = 2
  c.problems.num_train = 6
  c.problems.num_heldout = 2
  c.harness.num_workers = 2
  c.rollout.num_problems = 2
  c.rollout.group_size = 4
  c.rollout.num_turns = 2
  c.rollout.max_new_tokens = 128
  c.rollout.row_buckets = (8,)
  c.rollout.max_context_tokens = 440
  c.rollout.max_refill_rounds = 1
  c.rollout.min_spread_groups = 2
  c.learner.bucket_tokens = (440,)
  c.learner.micro_tokens = 1760
  c.eval.every = 2
  c.eval.ks = (1, 4)
  c.eval.random_feedback = True
  c.run.num_iterations = 4
  c.run.checkpoint_every = 2  # a killed run does an iteration again
  return c
