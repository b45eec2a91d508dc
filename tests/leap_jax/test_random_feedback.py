"""Feedback that is another problem's."""

import numpy as np
import pytest

from kernels_eval.schema import Request, Status
from leap_jax import random_feedback


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("sizes", [(4, 4), (1, 2, 3), (5, 3, 2), (8, 8, 8, 1)])
def test_nobody_reads_of_the_own_problem(seed, sizes):
  problems = [p for p, n in zip("abcd", sizes, strict=False) for _ in range(n)]
  rng = np.random.default_rng(seed)
  rng.shuffle(problems)
  given = random_feedback.donors(problems, rng)
  assert sorted(given) == list(range(len(problems)))
  assert all(problems[i] != problems[j] for i, j in enumerate(given))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sizes", [(5, 1), (4, 2, 1), (7, 1, 1)])
def test_where_one_problem_has_most_others_give_twice(seed, sizes):
  problems = [p for p, n in zip("abc", sizes, strict=False) for _ in range(n)]
  given = random_feedback.donors(problems, np.random.default_rng(seed))
  assert all(problems[i] != problems[j] for i, j in enumerate(given))


def test_where_there_is_one_problem_nobody_gives():
  rng = np.random.default_rng(0)
  assert random_feedback.donors(["a"] * 3, rng).tolist() == [-1] * 3
  assert random_feedback.donors([], rng).tolist() == []


@pytest.fixture
def about(verdict):
  """about(problem, status) -> Evaluation whose message names the problem."""
  return lambda problem, status=Status.WRONG_ANSWER: verdict(
    Request("0/0", problem, ""), status, f"about {problem}"
  )


def test_verdicts_count_as_they_are(about):
  statuses = [
    Status.PASSED,
    Status.WRONG_ANSWER,
    Status.COMPILE_ERROR,
    Status.INFRASTRUCTURE_ERROR,
    Status.TIMEOUT,
  ]
  found = [about(f"p{i}", status) for i, status in enumerate(statuses)]
  told = random_feedback.Told()
  got = random_feedback.swapped(3, told)(found)
  assert [e.problem for e in got] == [f"p{i}" for i in range(5)]
  passed = [e.passed for e in got]
  assert passed == [True, False, False, False, False]
  assert [e.counts for e in got] == [True, True, True, False, True]
  assert got[0] == found[0] and got[3] == found[3]
  messages = [got[i].message for i in (1, 2, 4)]
  assert sorted(messages) == ["about p1", "about p2", "about p4"]
  assert all(e.message != f"about {e.problem}" for e in got[1:3])
  assert told == random_feedback.Told(failed=3, own_problem=0)
  # The n-th turn of another one with the same seed draws the same.
  assert random_feedback.swapped(3, random_feedback.Told())(found) == got


def test_a_turn_of_one_problem_is_told_of_earlier_ones(about):
  told = random_feedback.Told()
  tell = random_feedback.swapped(0, told)
  # Nobody has failed at anything else yet: that is counted.
  assert tell([about("p")] * 2) == [about("p")] * 2
  assert told == random_feedback.Told(failed=2, own_problem=2)
  assert [e.message for e in tell([about("q")])] == ["about p"]
  (got,) = tell([about("p", Status.TIMEOUT)])
  assert got.message == "about q" and got.problem == "p"
  assert told == random_feedback.Told(failed=4, own_problem=2)
