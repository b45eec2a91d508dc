"""Feedback that is another problem's."""

import collections

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


@pytest.mark.parametrize("sizes", [(5, 1), (3,), (4, 2, 1), (0,)])
def test_where_one_problem_has_most_only_the_rest_can_swap(sizes):
  problems = [p for p, n in zip("abc", sizes, strict=False) for _ in range(n)]
  given = random_feedback.donors(problems, np.random.default_rng(0))
  assert sorted(given) == list(range(len(problems)))
  own = sum(problems[i] == problems[j] for i, j in enumerate(given))
  largest = max(collections.Counter(problems).values(), default=0)
  assert own == max(0, 2 * largest - len(problems))


def test_verdicts_count_as_they_are(verdict):
  statuses = {
    "0": Status.PASSED,
    "1": Status.WRONG_ANSWER,
    "2": Status.COMPILE_ERROR,
    "3": Status.INFRASTRUCTURE_ERROR,
    "4": Status.TIMEOUT,
  }
  requests = [Request(i, f"p{i}", "") for i in statuses]
  evaluate = lambda rs: [
    verdict(r, statuses[r.id], f"about p{r.id}") for r in rs
  ]
  got = random_feedback.shuffled(evaluate, 3)(requests)
  assert [e.id for e in got] == list(statuses)
  assert [e.problem for e in got] == [f"p{i}" for i in statuses]
  passed = [e.passed for e in got]
  assert passed == [True, False, False, False, False]
  assert [e.counts for e in got] == [True, True, True, False, True]
  assert got[0].message == "about p0" and got[3].message == "about p3"
  told = [got[i].message for i in (1, 2, 4)]
  assert sorted(told) == ["about p1", "about p2", "about p4"]
  assert all(
    f"p{i}" not in text for i, text in zip((1, 2, 4), told, strict=True)
  )
  # The n-th call of another one with the same seed draws the same.
  again = random_feedback.shuffled(evaluate, 3)
  assert again(requests) == got and again(requests) is not None
