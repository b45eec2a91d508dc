"""Inputs of timed calls differ, and so does what is right."""

import dataclasses

import numpy as np
import pytest

from kernels_eval import problems
from kernels_eval.problems import spec, timing_inputs, timing_sizes


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_every_problem_has_answers_that_vary(name):
  problem = problems.get(name)
  dims = timing_sizes.dims_for(problem)
  case = timing_inputs.case_for(problem, dims)
  assert case.dims == dims
  assert case.distribution == problem.distributions[0]


def test_what_saturates_is_timed_with_other_inputs_or_not_at_all():
  problem = problems.get("chain-relu-clip-max")  # 1 of normal inputs
  dims = timing_sizes.dims_for(problem)
  assert timing_inputs.case_for(problem, dims).distribution == "small"
  alone = dataclasses.replace(problem, distributions=("normal",))
  assert timing_inputs.case_for(alone, dims) is None


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_every_input_changes_from_call_to_call(name):
  problem = problems.get(name)
  for made in timing_inputs.make(
    problem, problem.cases[0], spec.generator(name)
  ):
    values = [made.values(key) for key in (3, 2**62 + 5, 2**63 + 3)]
    assert all(v.shape == made.shape for v in values)
    assert made.base.size & (made.base.size - 1) == 0
    if values[0].size > 8 and np.unique(made.base).size > 1:
      assert not np.array_equal(values[0], values[1])
      assert not np.array_equal(values[0], values[2])


def test_places_are_spread_evenly_and_follow_no_other_call():
  n, size = 2**18, 2**10
  drawn = {
    (key, ordinal): timing_inputs.places(n, key, ordinal, size)
    for key in (0, 2**32 + 1, 2**62, 2**63 + 12345)
    for ordinal in (0, 1)
  }
  for p in drawn.values():
    counts = np.bincount(p, minlength=size)
    assert counts.shape == (size,)
    # Chi-square with 1,023 degrees of freedom: 1,023 +- 45.
    assert abs(((counts - n / size) ** 2 / (n / size)).sum() - size) < 300
    # Neither a shift of itself nor a period.
    for shift in (1, 7, 512, 2**10, 2**16):
      assert (p[shift:] == p[:-shift]).mean() < 3 / size
  keys = list(drawn)
  for i, a in enumerate(keys):
    for b in keys[:i]:
      for shift in (0, 1, 2, 97):
        x, y = drawn[a][shift:], drawn[b][: n - shift]
        assert (x == y).mean() < 3 / size, (a, b, shift)


def test_a_few_places_by_hand():
  def by_hand(i, key, ordinal, size):
    word = 2**32 - 1
    h = (i + key) & word
    h = (h ^ h >> 15) * 0x9E3779B1 & word
    h ^= key >> 32
    h = (h ^ h >> 13) * 0x85EBCA77 & word
    h = (h + ordinal) & word
    h = (h ^ h >> 16) * 0xC2B2AE3D & word
    return (h ^ h >> 15) % size

  key = 0xFEDC_BA98_7654_3210
  drawn = timing_inputs.places(50, key, 2, 4096)
  assert drawn.tolist() == [by_hand(i, key, 2, 4096) for i in range(50)]


def test_jax_draws_the_same():
  jnp = pytest.importorskip("jax.numpy", reason="needs JAX")
  key = 0xFEDC_BA98_7654_3210
  halves = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
  np.testing.assert_array_equal(
    timing_inputs.places(5000, halves, 1, 4096, jnp),
    timing_inputs.places(5000, key, 1, 4096),
  )
