"""Input distributions. Each is `(rng, shape) -> float64 values`.

One distribution alone invites shortcuts: all-positive inputs make ReLU the
identity, centred ones make a mean vanish, smooth ones hide a lost maximum.
"""

import numpy as np


def normal(rng, shape):
  """Mean 0, deviation 1."""
  return rng.standard_normal(shape)


def uniform(rng, shape):
  """Between -1 and 1, moved by a half: the mean is not zero."""
  return rng.uniform(-0.5, 1.5, shape)


def integers(rng, shape):
  """Whole numbers from -4 to 4: exact sums, many ties."""
  return rng.integers(-4, 5, shape).astype(np.float64)


def large(rng, shape):
  """Deviation 30: overflows a softmax that does not subtract its maximum."""
  return 30.0 * rng.standard_normal(shape)


def small(rng, shape):
  """Deviation 1e-3: an absolute tolerance would accept zeros."""
  return 1e-3 * rng.standard_normal(shape)


def negative(rng, shape):
  """All below zero: a maximum that starts at 0 is wrong."""
  return -0.1 - np.abs(rng.standard_normal(shape))


def positive(rng, shape):
  """Between 0.1 and 3."""
  return rng.uniform(0.1, 3.0, shape)


DISTRIBUTIONS = {
  f.__name__: f
  for f in (normal, uniform, integers, large, small, negative, positive)
}
DEFAULT = ("normal", "uniform", "negative", "integers", "small", "large")
MODERATE = ("normal", "uniform", "negative", "integers", "small")
POSITIVE = ("positive",)


def indices(limit: str):
  """Fill for integers from 0 to a dimension (not included)."""

  def fill(rng, shape, dims):
    return rng.integers(0, dims[limit], shape).astype(np.float64)

  return fill


def distribution(name: str):
  """Fill that ignores the case's distribution for the named one."""

  def fill(rng, shape, dims):
    del dims
    return DISTRIBUTIONS[name](rng, shape)

  return fill
