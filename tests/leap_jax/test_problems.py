"""Splits and the order of problems."""

import collections

import numpy as np
import pytest

from kernels_eval import problem_cards
from kernels_eval import problems as harness_problems
from kernels_eval.problems import composer
from leap_jax import problems


def test_splits_hold_out_whole_compositions():
  names = problem_cards.compositions(0, 2000, (1, 3), 0.35)
  split = {name: problems.split_of(name) for name in names}
  counts = collections.Counter(split.values())
  assert set(counts) == set(problems.SPLITS)
  assert 0.7 < counts["train"] / len(names) < 0.9
  # The same name is in the same split whoever asks, and whenever.
  assert all(problems.split_of(n) == s for n, s in split.items())


def _values(name, x, y):
  """What a chain computes, by its own definition, on inputs of this test."""
  operators, reduction = composer.split_name(name)
  v = x
  for operator in operators:
    v = composer.OPERATORS[operator].apply(np, v, y)
  return v if reduction is None else composer.REDUCTIONS[reduction].apply(v)


def test_no_held_out_problem_is_a_training_problem_in_other_words():
  # Two draws: that of the warm start and that of a run may differ.
  drawn = {
    *problem_cards.compositions(0, 800, (1, 4), 0.35),
    *problem_cards.compositions(1, 800, (1, 3), 0.35),
  }
  rng = np.random.default_rng(11)
  # Short rows: the longer, the more alike `sub_1-min` and `sub_1-min_y-min`.
  x, y = rng.normal(size=(2, 300, 3))
  results = collections.defaultdict(list)
  for name in sorted(drawn):
    value = _values(name, x, y)
    split = problems.split_of(name)
    results[value.shape, split == "train"].append((name, value))
  for shape in {shape for shape, _ in results}:
    train = np.stack([v.ravel() for _, v in results[shape, True]])
    for name, value in results[shape, False]:
      same = np.isclose(train, value.ravel(), rtol=1e-9, atol=1e-9).all(-1)
      assert not same.any(), (name, results[shape, True][same.argmax()][0])


def test_a_draw_holds_each_function_once():
  names = problem_cards.compositions(0, 800, (1, 3), 0.35)
  assert len({problem_cards.function_key(n) for n in names}) == len(names)


def test_held_out_problems_have_shapes_of_their_own():
  names = problem_cards.compositions(0, 400, (2, 3), 0.5)
  shapes = collections.defaultdict(set)
  for name in names:
    for case in harness_problems.get(name).shapes[3:]:
      shapes[problems.split_of(name)].add(tuple(case.values()))
  new = shapes["validation"] - shapes["train"]
  assert len(new) > len(shapes["validation"]) / 2


def test_a_longer_draw_begins_like_a_shorter_one():
  short = problem_cards.compositions(3, 50, (1, 3), 0.35)
  assert problem_cards.compositions(3, 200, (1, 3), 0.35)[:50] == short


def test_too_many_problems_are_refused():
  with pytest.raises(ValueError, match="do not exist"):
    problem_cards.compositions(0, 100, (1, 1), 0.0)
  with pytest.raises(ValueError, match="5 test problems"):
    problems.of_split(["chain-relu"], "test", 5)
  with pytest.raises(ValueError, match="no split `tests`"):
    problems.of_split(["chain-relu"], "tests", 1)


def test_the_order_is_a_function_of_seed_and_cursor():
  # Ten problems, three an iteration: the epoch ends inside of iteration 3.
  every = list(range(10))
  straight = [problems.in_order(every, 7, 3 * i, 3) for i in range(8)]
  resumed = [problems.in_order(every, 7, 3 * i, 3) for i in range(4, 8)]
  assert straight[4:] == resumed
  flat = sum(straight, [])
  assert sorted(flat[:10]) == every and sorted(flat[10:20]) == every
  assert flat[:10] != flat[10:20]
  assert straight != [problems.in_order(every, 8, 3 * i, 3) for i in range(8)]
