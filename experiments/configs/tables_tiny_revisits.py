"""The tiny policy on few problems, each of which it meets about five times.

    python -m experiments.sweep --table=sampling \
      --config=experiments/configs/tables_tiny_revisits.py
    python -m experiments.sweep --table=smoothing \
      --config=experiments/configs/tables_tiny_revisits.py

In `tables_tiny` no problem comes twice, and what is remembered of problems (the
predictive draw, the fail rate smoothed over visits) changes nothing. One run,
python -m experiments.run --config=experiments/configs/tables_tiny_revisits.py
takes about four minutes on two cores.
"""

from experiments.configs import tables_tiny


def get_config():
  """tables_tiny with 64 problems: 20 iterations of 16 are five rounds."""
  c = tables_tiny.get_config()
  c.problems.num_train = 64
  c.eval.every = 5
  return c
