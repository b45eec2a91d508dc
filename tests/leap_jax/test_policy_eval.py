"""Held-out numbers from trajectories."""

import pytest

from kernels_eval import problem_cards
from kernels_eval.schema import Status
from leap_jax import policy_eval
from leap_jax.types import EndReason, StopReason, Trajectory, Turn


def trajectory(verdict, name, end, num_turns, sample=0):
  class Request:
    id, problem = "0", name

  turn = Turn(
    "x", 3, StopReason.STOP, verdict(Request, Status.PASSED), True, None
  )
  return Trajectory(
    problem_cards.card(name), 0, sample, (turn,) * num_turns, end
  )


def test_rates_by_hand(verdict):
  a, b = "chain-relu", "chain-abs"
  make = lambda *x: trajectory(verdict, *x)
  trajectories = [
    make(a, EndReason.SOLVED, 1),
    make(a, EndReason.SOLVED, 2),
    make(a, EndReason.LAST_TURN, 3),
    make(b, EndReason.SOLVED, 3),
    make(b, EndReason.CONTEXT_FULL, 2),
    make(b, EndReason.FAULT, 1),  # counts nowhere
  ]
  got = policy_eval.summarize(trajectories, 3, (1, 2, 3))
  # Five samples: solved by turn 1, 2, 3: 1, 2, 3.
  assert got["acc_at"] == (0.2, 0.4, 0.6)
  # Turns 1 + 2 + 3 + 3 + 2 = 11 for three passes.
  assert got["turns_per_pass"] == pytest.approx(11 / 3)
  # Four first turns failed; two of them were repaired.
  assert got["recovery_rate"] == 0.5
  assert got["num_samples"] == 5 and got["num_faults"] == 1
  # a: 2 of 3, b: 1 of 2. pass@2 = mean(1 - C(1,2)/C(3,2), 1 - C(1,2)/C(2,2)).
  assert got["pass_at"][1] == pytest.approx((2 / 3 + 1 / 2) / 2)
  assert got["pass_at"][2] == 1.0
  assert 3 not in got["pass_at"]  # b has two samples only


def test_nothing_solved_has_no_turns_per_pass(verdict):
  got = policy_eval.summarize(
    [trajectory(verdict, "chain-relu", EndReason.LAST_TURN, 3)], 3, (1,)
  )
  assert got["turns_per_pass"] is None and got["recovery_rate"] == 0.0


@pytest.mark.parametrize("num_lost", [0, 1, 5])
def test_without_samples_there_is_no_accuracy(verdict, num_lost):
  lost = [trajectory(verdict, "chain-relu", EndReason.FAULT, 1)] * num_lost
  got = policy_eval.summarize(lost, 3, (1,))
  assert got["acc_at"] == (None, None, None)
  assert got["turns_per_pass"] is None and got["recovery_rate"] is None
  assert got["pass_at"] == {} and got["num_faults"] == num_lost


def test_everything_solved_at_once_has_no_recovery(verdict):
  got = policy_eval.summarize(
    [trajectory(verdict, "chain-relu", EndReason.SOLVED, 1)], 3, (1,)
  )
  assert got["recovery_rate"] is None and got["turns_per_pass"] == 1.0


@pytest.mark.parametrize(
  "n,c,k,expected",
  [(4, 0, 2, 0.0), (4, 4, 2, 1.0), (4, 1, 1, 0.25), (4, 2, 2, 1 - 1 / 6)],
)
def test_pass_at_k_is_unbiased(n, c, k, expected):
  assert policy_eval.pass_at_k(n, c, k) == pytest.approx(expected)


def test_pass_at_k_needs_k_samples():
  with pytest.raises(ValueError, match="needs 8"):
    policy_eval.pass_at_k(4, 1, 8)
