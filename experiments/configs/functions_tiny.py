r"""Transfer: a tiny policy that writes Python functions, from nothing.

    python -m experiments.run --config=experiments/configs/functions_tiny.py

Conversations (3 minutes), warm start (9), LEAP (8) and held-out evaluations (6)
took 28 minutes on two cores that had other work, too. Methods from one warm
start, and their table:

    python -m experiments.run \
      --config=experiments/configs/functions_tiny.py \
      --config.run.num_iterations=0 --workdir=runs/functions_cold/seed0
    python -m experiments.fork runs/functions_cold/seed0 \
      --runs=runs/functions --rows=leap,grpo_multi_turn,grpo_single_turn
    python -m experiments.sweep --table=main --seeds=1 \
      --rows=leap,grpo_multi_turn,grpo_single_turn \
      --config=experiments/configs/functions_tiny.py --runs=runs/functions
    python -m experiments.tables --table=main \
      --runs=experiments/results/functions_tiny
"""

from experiments.configs import base


def get_config():
  """Base with functions for problems and a short warm start."""
  c = base.get_config()
  c.policy.source = "random"
  c.problems.source = "functions"
  c.problems.max_operators = 3
  c.problems.reduced = 0.5
  # Of the warm start's conversations, in its own tokens, prompts have at most
  # 98 (half of them 41), answers 114 (23), feedback 158 (27; one in a hundred
  # more than 98), and all together 399 (118).
  c.rollout.max_prompt_tokens = 104
  c.rollout.max_feedback_tokens = 104
  c.rollout.max_new_tokens = 112
  c.rollout.max_context_tokens = 448
  c.learner.bucket_tokens = (80, 128, 192, 272, 448)
  # Batches are small: a larger micro-batch would be half empty.
  c.learner.micro_tokens = 448
  c.learner.learning_rate = 1e-4
  c.warm_start.num_steps = 240
  c.warm_start.num_conversations = 2048
  c.warm_start.batch_rows = 32
  c.warm_start.warmup_steps = 20
  c.eval.every = 4
  c.eval.random_feedback = True
  return c
