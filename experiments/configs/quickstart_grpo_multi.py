"""The quickstart with multi-turn GRPO in place of LEAP.

python -m experiments.run --config=experiments/configs/quickstart_grpo_multi.py
"""

from experiments.configs import quickstart


def get_config():
  """Quickstart, another method."""
  c = quickstart.get_config()
  c.method.name = "grpo_multi_turn"
  return c
