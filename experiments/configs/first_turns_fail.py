r"""Where first turns fail: a tiny policy that errs first, and repairs.

    python -m experiments.run \
      --config=experiments/configs/first_turns_fail.py \
      --config.run.num_iterations=0 --workdir=runs/first_turns_fail/cold
    python -m experiments.fork runs/first_turns_fail/cold --seeds=2 \
      --table=headline --runs=runs/first_turns_fail/rows
    python -m experiments.sweep --table=headline --seeds=2 \
      --config=experiments/configs/first_turns_fail.py \
      --runs=runs/first_turns_fail/rows

The policy of the quickstart behind a warm start of conversations whose first
answers are all wrong. Debugging has something to find that first turns have
not: groups in which all fail at first. One run,
python -m experiments.run --config=experiments/configs/first_turns_fail.py
takes about ten minutes on two cores, most of it the warm start.
"""

from experiments.configs import tables_tiny


def get_config():
  """tables_tiny behind a warm start that teaches to err first."""
  c = tables_tiny.get_config()
  c.warm_start.num_steps = 120
  c.warm_start.num_conversations = 2048
  c.warm_start.first_right = 0.0
  c.warm_start.warmup_steps = 10
  c.eval.every = 5
  return c
