"""The tiny policy on problems longer than those that it was warm-started on.

    python -m experiments.sweep --table=headline --seeds=1 \
      --config=experiments/configs/tables_tiny_harder.py

Most first turns fail, and repairs half the time: groups in which all fail at
first are common, and debugging may find what first turns do not. One run,
python -m experiments.run --config=experiments/configs/tables_tiny_harder.py
takes about seven minutes on two cores.
"""

from experiments.configs import tables_tiny


def get_config():
  """tables_tiny with chains of six operators, the warm start's had up to 4."""
  c = tables_tiny.get_config()
  c.problems.min_operators = 6
  c.problems.max_operators = 6
  c.rollout.max_prompt_tokens = 104
  c.rollout.max_context_tokens = 696
  c.learner.bucket_tokens = (144, 240, 368, 696)
  c.eval.every = 5
  c.eval.random_feedback = False
  return c
