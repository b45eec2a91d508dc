"""The tiny policy for tables of methods and ablations, on a CPU.

    python -m experiments.sweep --table=main \
      --config=experiments/configs/tables_tiny.py
    python -m experiments.tables --table=main \
      --runs=experiments/results/tables_tiny

The quickstart with held-out evaluations on the way, for curves over time, and
with the control of random feedback at the end. One run of it alone:
python -m experiments.run --config=experiments/configs/tables_tiny.py
takes about six minutes on two cores; the main table's 21 runs take about two
hours, and all tables' 108 runs about eleven (rewards of speed need a GPU).
"""

from experiments.configs import quickstart


def get_config():
  """Quickstart, evaluated every second iteration."""
  c = quickstart.get_config()
  c.eval.every = 2
  c.eval.random_feedback = True
  return c
