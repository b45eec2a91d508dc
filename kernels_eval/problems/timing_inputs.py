"""Inputs of timed calls: one base of values, repeated from a place that differs
from call to call, so that no call sees the values of another."""

import dataclasses

import numpy as np

from kernels_eval import dtypes
from kernels_eval.problems import inputs, spec

# Inputs repeat after this many elements (a prime, so that no row equals
# another): enough to be larger than what a kernel could remember. Smaller ones
# are a window of twice their size: were it all of it, a sum over a whole input
# would be the same in each call.
BASE_ITEMS = 1_048_583


@dataclasses.dataclass(frozen=True)
class TimedInput:
  """An input of all timed calls of a problem."""

  tensor: spec.Tensor
  base: np.ndarray  # stored form, flat
  shape: tuple[int, ...]

  def values(self, roll: int) -> np.ndarray:
    """The whole tensor of a call, stored form."""
    return np.resize(np.roll(self.base, -(roll % self.base.size)), self.shape)


def case_for(problem: spec.Problem, dims: dict[str, int]) -> spec.Case:
  """The timed case with these dimensions."""
  return spec.Case(
    len(problem.cases),
    dims,
    problem.distributions[0],
    {s.name: s.values[0] for s in problem.scalars},
  )


def make(
  problem: spec.Problem, case: spec.Case, rng: np.random.Generator
) -> tuple[TimedInput, ...]:
  """One for each input of the problem."""
  return tuple(_make_input(t, case, rng) for t in problem.inputs)


def _make_input(tensor, case, rng):
  shape = tensor.shape_for(case.dims)
  count = int(np.prod(shape, dtype=np.int64))
  flat = (BASE_ITEMS if count > BASE_ITEMS else 2 * count + 1,)
  if tensor.fill is not None:  # whose values do not depend on their place
    values = tensor.fill(rng, flat, case.dims)
  else:
    values = inputs.DISTRIBUTIONS[case.distribution](rng, flat)
  stored = np.ascontiguousarray(dtypes.DTYPES[tensor.dtype].encode(values))
  return TimedInput(tensor, stored.reshape(-1), shape)
