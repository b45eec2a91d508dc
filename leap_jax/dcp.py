"""Difficulty-Conditioned Pruning: which problems earn debugging turns.

LEAP (arXiv 2608.01804), method section as summarised publicly. A gate looks at
the first turn of each group and opens or closes the later turns of the whole
problem. Gates are functions of one signature, `(first_turn_correct, ok) ->
active`, so that an ablation swaps the function.

Axes: P problems, G samples of a problem (the group), T turns. `ok` is False
where the harness failed; such a sample counts nowhere.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool


def difficulty_gate(
  first_turn_correct: Bool[Array, "P G"],
  ok: Bool[Array, "P G"],
  *,
  f_lo: float,
  f_hi: float,
) -> Bool[Array, " P"]:
  """Opens for problems that are neither easy nor hopeless.

      N(p)      = sum_g ok
      N_fail(p) = sum_g ok & ~correct[p, g, 0]
      active(p) = ceil(f_lo N) <= N_fail <= floor(f_hi N)  and  N_fail > 0

  Args:
    first_turn_correct: [P, G] whether the first turn passed.
    ok: [P, G] whether the sample counts.
    f_lo: lowest fraction of failures that opens the gate.
    f_hi: highest; 1.0 gives up on nothing.

  Returns:
    [P] whether debugging turns run.
  """
  num_ok = ok.sum(-1)
  num_failed = (ok & ~first_turn_correct).sum(-1)
  # The product is rounded first: 0.875 * 8 must be 7 in any precision.
  at_least = jnp.ceil(jnp.round(f_lo * num_ok, 4))
  at_most = jnp.floor(jnp.round(f_hi * num_ok, 4))
  return (num_failed >= at_least) & (num_failed <= at_most) & (num_failed > 0)


def open_gate(
  first_turn_correct: Bool[Array, "P G"], ok: Bool[Array, "P G"]
) -> Bool[Array, " P"]:
  """Never prunes: every failed sample goes on (unpruned multi-turn RL)."""
  return (ok & ~first_turn_correct).any(-1)


def closed_gate(
  first_turn_correct: Bool[Array, "P G"], ok: Bool[Array, "P G"]
) -> Bool[Array, " P"]:
  """Prunes everything: single-turn RL."""
  return jnp.zeros_like((ok & first_turn_correct).any(-1))


def executed_mask(
  correct: Bool[Array, "P G T"],
  active: Bool[Array, " P"],
  ok: Bool[Array, "P G"],
) -> Bool[Array, "P G T"]:
  """Which turns run.

      exec[p, g, 0] = ok
      exec[p, g, t] = ok & active(p) & not solved before t

  Args:
    correct: [P, G, T] outcomes; read only where a turn has run.
    active: [P] an open gate.
    ok: [P, G].

  Returns:
    [P, G, T].
  """
  # Outcomes behind a closed gate do not exist; they must not count as solved.
  later = (jnp.arange(correct.shape[-1]) > 0)[None, None]
  possible = ok[..., None] & (~later | active[:, None, None])
  solved = (correct & possible).astype(jnp.int32)
  solved_before = (jnp.cumsum(solved, -1) - solved) > 0
  return possible & ~solved_before


def solved_at(correct: Bool[Array, "P G T"], executed: Bool[Array, "P G T"]):
  """The first solved turn, counted from 1; T + 1 for unsolved samples.

  Args:
    correct: [P, G, T].
    executed: [P, G, T].

  Returns:
    [P, G] int32.
  """
  solved = correct & executed
  num_turns = solved.shape[-1]
  first = jnp.argmax(solved, -1) + 1
  return jnp.where(solved.any(-1), first, num_turns + 1).astype(jnp.int32)
