"""A config with a warm start that ends in seconds, for test_stages.py."""

from experiments.configs import quickstart


def get_config():
  """A micro policy: six supervised steps, then two iterations."""
  c = quickstart.get_config()
  c.policy.source = "random"
  c.policy.size = "micro"
  c.policy.vocab_size = 400
  c.problems.max_operators = 2
  c.problems.num_train = 6
  c.problems.num_heldout = 2
  c.harness.num_workers = 2
  c.rollout.num_problems = 2
  c.rollout.group_size = 2
  c.rollout.num_turns = 2
  c.rollout.max_prompt_tokens = 128
  c.rollout.max_feedback_tokens = 40
  c.rollout.max_new_tokens = 24
  c.rollout.max_context_tokens = 216
  c.rollout.row_buckets = (4,)
  c.learner.bucket_tokens = (512,)
  c.learner.micro_tokens = 2048
  c.warm_start.num_steps = 6
  c.warm_start.num_conversations = 12
  c.warm_start.batch_rows = 4
  c.warm_start.warmup_steps = 2
  c.warm_start.log_every = 1
  c.warm_start.checkpoint_every = 2
  c.eval.ks = (1, 2)
  c.run.num_iterations = 2
  c.run.checkpoint_every = 2
  return c
