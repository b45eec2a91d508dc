"""Difficulty-Conditioned Pruning: which problems earn debugging turns.

LEAP (arXiv 2608.01804), method section as summarised publicly. A gate looks at
the first turn of each group and opens or closes the later turns of the whole
problem. Gates are functions of one signature, `(first_turn_correct, ok) ->
active`, so that an ablation swaps the function; two need something else
besides (a key, a fail rate) and take it first.

Axes: P problems, G samples of a problem (the group), T turns. `ok` is False
where the harness failed; such a sample counts nowhere.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


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
  num_ok, num_failed = _counts(first_turn_correct, ok)
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


def easy_gate(
  first_turn_correct: Bool[Array, "P G"], ok: Bool[Array, "P G"]
) -> Bool[Array, " P"]:
  """Opens where less than half failed: 0 < N_fail < N / 2. LEAP, table 5."""
  num_ok, num_failed = _counts(first_turn_correct, ok)
  return (num_failed > 0) & (2 * num_failed < num_ok)


def hard_gate(
  first_turn_correct: Bool[Array, "P G"], ok: Bool[Array, "P G"]
) -> Bool[Array, " P"]:
  """Opens where at least half failed: N_fail >= N / 2. LEAP, table 5."""
  num_ok, num_failed = _counts(first_turn_correct, ok)
  return (num_failed > 0) & (2 * num_failed >= num_ok)


def hard_not_hopeless_gate(
  first_turn_correct: Bool[Array, "P G"], ok: Bool[Array, "P G"]
) -> Bool[Array, " P"]:
  """Opens where at least half failed, but not all: N / 2 <= N_fail < N."""
  num_ok, num_failed = _counts(first_turn_correct, ok)
  return hard_gate(first_turn_correct, ok) & (num_failed < num_ok)


def random_gate(
  key: jax.Array,
  first_turn_correct: Bool[Array, "P G"],
  ok: Bool[Array, "P G"],
  *,
  f_lo: float,
  f_hi: float,
) -> Bool[Array, " P"]:
  """Opens for as many problems as `difficulty_gate`, chosen by lot.

  The control for "debugging less is cheaper, whatever is debugged". The lot is
  drawn among problems with a failure: elsewhere there is nothing to debug, and
  an open gate would be one in name only. Groups are equal in number, rows need
  not be: hard groups have more failed samples.

  Args:
    key: PRNG key, consumed.
    first_turn_correct: [P, G].
    ok: [P, G].
    f_lo: of the difficulty gate whose activation is matched.
    f_hi: likewise.
  """
  wanted = difficulty_gate(first_turn_correct, ok, f_lo=f_lo, f_hi=f_hi).sum()
  eligible = open_gate(first_turn_correct, ok)
  lot = jnp.where(eligible, jax.random.uniform(key, eligible.shape), -1.0)
  place = jnp.argsort(jnp.argsort(-lot))
  return eligible & (place < wanted)


def smoothed_gate(
  fail_rate: Float[Array, " P"],
  first_turn_correct: Bool[Array, "P G"],
  ok: Bool[Array, "P G"],
  *,
  f_lo: float,
  f_hi: float,
) -> Bool[Array, " P"]:
  """`difficulty_gate` on a fail rate that remembers earlier visits.

      active(p) = f_lo <= fail_rate(p) <= f_hi  and  N_fail(p) > 0

  At G = 8 the rate of one group has a standard error of .18 at .5; a moving
  average over visits has less (AdaRFT, arXiv 2504.05520, in spirit).

  Args:
    fail_rate: [P] `history.smoothed`, this group included; NaN closes.
    first_turn_correct: [P, G].
    ok: [P, G].
    f_lo: lowest rate that opens the gate.
    f_hi: highest.
  """
  rate = jnp.round(fail_rate, 4)
  inside = (rate >= f_lo) & (rate <= f_hi)
  return inside & open_gate(first_turn_correct, ok)


def _counts(first_turn_correct, ok):
  """N and N_fail, [P] each."""
  return ok.sum(-1), (ok & ~first_turn_correct).sum(-1)


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
