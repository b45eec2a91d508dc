"""Monotone cubics: against scipy's, and where they are straight."""

import numpy as np
import pytest
from scipy import interpolate

from experiments import monotone_cubic


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_points", [2, 3, 4, 9])
def test_it_is_scipys_pchip(num_points, seed):
  rng = np.random.default_rng(seed)
  x = np.cumsum(rng.uniform(0.1, 3, num_points))
  y = rng.normal(size=(5, num_points))
  y[0, 1:] = y[0, 1]  # level pieces
  y[1] = np.sort(y[1])
  at = np.linspace(x[0], x[-1], 101)
  got = monotone_cubic.interpolate(x, y, at)
  expected = interpolate.PchipInterpolator(x, y, axis=-1)(at)
  np.testing.assert_allclose(got, expected, atol=1e-12)
  assert (np.diff(got[1]) >= -1e-12).all()  # what rises only, does


def test_by_hand():
  # Slopes 2 and 1 over widths 1 and 1: 2 / (1/2 + 1/1) = 4/3 in the middle,
  # (3 * 2 - 1) / 2 = 5/2 at the begin. At 1/2: the mean of 0 and 2, and an
  # eighth of 5/2 - 4/3.
  y = np.asarray([[0.0, 2.0, 3.0]])
  got = monotone_cubic.interpolate(np.arange(3.0), y, np.asarray([0.5, 1.0]))
  np.testing.assert_allclose(got, [[1 + (5 / 2 - 4 / 3) / 8, 2]])


def test_one_point_is_a_constant():
  at = np.asarray([4.0, 4.0])
  got = monotone_cubic.interpolate(np.asarray([4.0]), np.asarray([[7.0]]), at)
  assert got.tolist() == [[7.0, 7.0]]
