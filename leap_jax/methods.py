"""A method = a gate and an advantage, made from settings.

The table at the end is the only registry: a plain dict of factories.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax

from leap_jax import advantages, dcp

Gate = Callable[[jax.Array, jax.Array], jax.Array]
"""(first_turn_correct [P, G], ok [P, G]) -> active [P]"""
Advantage = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
"""(correct [P, G, T], executed [P, G, T], ok [P, G]) -> [P, G, T]"""


class Method(NamedTuple):
  """What distinguishes LEAP from its baselines. Both functions are jitted."""

  name: str
  gate: Gate
  advantage: Advantage


def make_leap(*, f_lo: float, f_hi: float, gamma: float) -> Method:
  """LEAP: difficulty gate and rank reward."""
  return Method(
    "leap",
    jax.jit(functools.partial(dcp.difficulty_gate, f_lo=f_lo, f_hi=f_hi)),
    jax.jit(functools.partial(advantages.leap, gamma=gamma)),
  )


def make_grpo_multi_turn(*, f_lo: float, f_hi: float, gamma: float) -> Method:
  """Unpruned multi-turn GRPO; the settings of LEAP do not apply."""
  del f_lo, f_hi, gamma
  return Method(
    "grpo_multi_turn",
    jax.jit(dcp.open_gate),
    jax.jit(advantages.grpo_multi_turn),
  )


def make_grpo_single_turn(*, f_lo: float, f_hi: float, gamma: float) -> Method:
  """Single-turn GRPO; the settings of LEAP do not apply."""
  del f_lo, f_hi, gamma
  return Method(
    "grpo_single_turn",
    jax.jit(dcp.closed_gate),
    jax.jit(advantages.grpo_single_turn),
  )


METHODS = {
  "leap": make_leap,
  "grpo_multi_turn": make_grpo_multi_turn,
  "grpo_single_turn": make_grpo_single_turn,
}
