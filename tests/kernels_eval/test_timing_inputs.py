"""Inputs of timed calls differ, and so does what is right."""

import numpy as np
import pytest

from kernels_eval import correctness, dtypes, problems
from kernels_eval.problems import spec, timing_inputs, timing_sizes

_MOST_ITEMS = 2**21  # of all inputs: larger ones are not all of their table


def _is_small(problem):
  dims = timing_sizes.dims_for(problem)
  sizes = (np.prod(t.shape_for(dims)) for t in problem.inputs)
  return sum(int(n) for n in sizes) <= _MOST_ITEMS


SMALL = sorted(n for n, p in problems.FAMILIES.items() if _is_small(p))


def test_the_small_ones_are_there():
  assert {"dot_product", "mse_loss", "count_above", "histogram"} <= {*SMALL}
  assert {"exclusive_scan", "matmul"} <= {*SMALL}


@pytest.mark.parametrize("name", SMALL)
def test_what_one_call_must_write_is_wrong_in_another(name):
  problem = problems.get(name)
  case = timing_inputs.case_for(problem, timing_sizes.dims_for(problem))
  rng = spec.generator(f"0/{name}/timing")
  made = timing_inputs.make(problem, case, rng)
  exact = []
  for roll in (17, 700_001):
    arrays = {i.tensor.name: i.values(roll) for i in made}
    exact.append(problem.expected(case, arrays))
  for tensor in problem.outputs:
    a, b = (e[tensor.name] for e in exact)
    mismatch = correctness.compare(
      tensor.name,
      dtypes.DTYPES[tensor.dtype].encode(a),
      b,
      b,
      tensor.dtype,
      factor=problem.tolerance_factor,
    )
    assert mismatch is not None


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_every_input_changes_from_call_to_call(name):
  problem = problems.get(name)
  dims = dict(problem.cases[0].dims)
  case = timing_inputs.case_for(problem, dims)
  for made in timing_inputs.make(problem, case, spec.generator(name)):
    values = [made.values(roll) for roll in (3, 5, 1_000_003)]
    assert all(v.shape == made.shape for v in values)
    if values[0].size > 8 and np.unique(made.base).size > 1:
      assert not np.array_equal(values[0], values[1])
      assert not np.array_equal(values[0], values[2])
