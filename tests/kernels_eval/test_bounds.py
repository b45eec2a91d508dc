"""The first look at large outputs never accepts what the judge refuses."""

import hypothesis
import hypothesis.strategies as st
import numpy as np

from kernels_eval import correctness


@hypothesis.given(
  st.integers(0, 2**32 - 1),
  st.floats(-9, 1),
  st.sampled_from([1.0, 3.0]),
  st.sampled_from([1e-33, 1e-30, 1e-21, 1e-3, 1.0, 1e6, 1e19, 1e30]),
)
@hypothesis.settings(max_examples=200, deadline=None)
# The squares of these errors are 0 in float32.
@hypothesis.example(904, -4.390625, 1.0, 1e-30)
def test_what_the_bounds_hold_is_right(seed, exponent, factor, scale):
  rng = np.random.default_rng(seed)
  exact = rng.normal(size=(20, 31)) * scale
  single = exact.astype(np.float32).astype(np.float64)
  error = 10.0**exponent
  got = exact * (1 + error * rng.normal(size=exact.shape))
  got += scale * error * rng.normal(size=exact.shape) * (rng.random() < 0.5)
  got = got.astype(np.float32)
  bounds = correctness.float32_bounds(exact, single, factor)
  mismatch = correctness.compare(
    "out", got, exact, single, "float32", factor=factor
  )
  if bounds.hold(got):
    assert mismatch is None
  if exponent < -7.5 or error == 0:  # an honest kernel takes the short way
    assert bounds.hold(got)


def test_what_is_no_number_is_not_held():
  exact = np.ones((4, 5))
  bounds = correctness.float32_bounds(exact, exact, 1.0)
  assert bounds.hold(exact.astype(np.float32))
  for value in (np.nan, np.inf, -np.inf, 0.0, 1.001):
    for index in ((0, 0), (3, 4)):
      got = exact.astype(np.float32)
      got[index] = value
      assert not bounds.hold(got)
