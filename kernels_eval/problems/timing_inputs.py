"""Inputs of timed calls: each element is drawn anew, in each call, from a table
of values by a hash of its place and of a key that only the call has. So nothing
of a call is a shift of another, and no part of an input repeats another."""

import dataclasses
import math

import numpy as np

from kernels_eval import correctness, dtypes
from kernels_eval.problems import inputs, spec

# A table is a power of two, enough to be larger than what a kernel could
# remember and small enough to be drawn from quickly.
_MOST_ITEMS, _LEAST_ITEMS = 2**20, 2**10
_ENOUGH_ITEMS = 2**19  # to see whether answers vary
_TWO_KEYS = 0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344


@dataclasses.dataclass(frozen=True)
class TimedInput:
  """An input of all timed calls of a problem."""

  tensor: spec.Tensor
  base: np.ndarray  # stored form, flat
  shape: tuple[int, ...]
  ordinal: int  # among the problem's inputs: each draws for itself

  def values(self, key: int) -> np.ndarray:
    """The whole tensor of the call with a key of 64 bits, stored form."""
    count = int(np.prod(self.shape, dtype=np.int64))
    drawn = places(count, key, self.ordinal, self.base.size)
    return self.base[drawn].reshape(self.shape)


def places(count: int, key: int, ordinal: int, num_items: int, xp=np):
  """[count] uint32 places in a table of `num_items`, a power of two.

  As `ke_draw` of helpers.cu: a mixture of 32-bit products and shifts.

  Args:
    count: of elements.
    key: 64 random bits; keys with the same upper half are shifts of each other.
    ordinal: of the input.
    num_items: of the table.
    xp: numpy, or jax.numpy for a key that is traced as (low, high) halves.
  """
  low, high = (key & 0xFFFFFFFF, key >> 32) if isinstance(key, int) else key
  h = xp.arange(count, dtype=xp.uint32) + xp.uint32(low)
  h = (h ^ (h >> 15)) * xp.uint32(0x9E3779B1)
  h = h ^ xp.uint32(high)
  h = (h ^ (h >> 13)) * xp.uint32(0x85EBCA77)
  h = h + xp.uint32(ordinal)
  h = (h ^ (h >> 16)) * xp.uint32(0xC2B2AE3D)
  return (h ^ (h >> 15)) & xp.uint32(num_items - 1)


def case_for(problem: spec.Problem, dims: dict[str, int]) -> spec.Case | None:
  """The timed case with these dimensions, of the first distribution for which
  answers vary; None where they do for none: a sum that always saturates can be
  written down without a look at the inputs, and its time says nothing."""
  few = _fewer(problem, dims)
  for distribution in problem.distributions:
    if _varies(problem, _case(problem, few, distribution)):
      return _case(problem, dims, distribution)
  return None


def _fewer(problem, dims):
  """Less of the first dimension."""
  first = problem.dims[0]
  size = lambda dims: sum(
    math.prod(t.shape_for(dims)) for t in (*problem.inputs, *problem.outputs)
  )
  while size(dims) > _ENOUGH_ITEMS and dims[first] > 1:
    dims = dims | {first: dims[first] // 2}
  return dims


def _case(problem, dims, distribution):
  return spec.Case(
    len(problem.cases),
    dims,
    distribution,
    {s.name: s.values[0] for s in problem.scalars},
  )


def _varies(problem, case):
  """Whether what one call has to write is wrong in another."""
  made = make(problem, case, spec.generator(f"{problem.name}/varies"))
  with np.errstate(all="ignore"):
    one, other = (
      problem.expected(case, {i.tensor.name: i.values(key) for i in made})
      for key in _TWO_KEYS
    )
  encoded = {
    t: dtypes.DTYPES[t.dtype].encode(one[t.name]) for t in problem.outputs
  }
  return all(
    correctness.compare(
      t.name,
      stored,
      other[t.name],
      other[t.name],
      t.dtype,
      factor=problem.tolerance_factor,
    )
    for t, stored in encoded.items()
  )


def make(
  problem: spec.Problem, case: spec.Case, rng: np.random.Generator
) -> tuple[TimedInput, ...]:
  """One for each input of the problem."""
  return tuple(
    _make_input(t, case, rng, i) for i, t in enumerate(problem.inputs)
  )


def _make_input(tensor, case, rng, ordinal):
  shape = tensor.shape_for(case.dims)
  count = int(np.prod(shape, dtype=np.int64))
  num_items = _LEAST_ITEMS
  while num_items < min(4 * count, _MOST_ITEMS):
    num_items *= 2
  if tensor.fill is not None:  # whose values do not depend on their place
    values = tensor.fill(rng, (num_items,), case.dims)
  else:
    values = inputs.DISTRIBUTIONS[case.distribution](rng, (num_items,))
  stored = np.ascontiguousarray(dtypes.DTYPES[tensor.dtype].encode(values))
  return TimedInput(tensor, stored.reshape(-1), shape, ordinal)
