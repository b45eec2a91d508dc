"""A smooth curve through points that rises and falls only where they do.

Cubic pieces with slopes of Fritsch and Butland (SIAM J. Sci. Stat. Comput. 5,
1984): at an inner point the weighted harmonic mean of the slopes d to its left
and d' to its right, h and h' wide,

    m = (w + w') / (w / d + w' / d'),  w = h + 2 h',  w' = 2 h + h'

and 0 where they have different signs; at an end that of the parabola through
three points, bounded so that nothing is overshot.
"""

import numpy as np


def _inner(width, slope):
  left, right = slope[:, :-1], slope[:, 1:]
  from_left = width[:-1] + 2 * width[1:]
  from_right = 2 * width[:-1] + width[1:]
  agree = left * right > 0
  one, other = np.where(agree, left, 1.0), np.where(agree, right, 1.0)
  mean = (from_left + from_right) / (from_left / one + from_right / other)
  return np.where(agree, mean, 0.0)


def _end(width, next_width, slope, next_slope):
  """[B] at an end whose piece is `width` wide."""
  parabola = ((2 * width + next_width) * slope - width * next_slope) / (
    width + next_width
  )
  bounded = np.where(
    (slope * next_slope <= 0) & (np.abs(parabola) > 3 * np.abs(slope)),
    3 * slope,
    parabola,
  )
  return np.where(parabola * slope <= 0, 0.0, bounded)


def interpolate(x: np.ndarray, y: np.ndarray, at: np.ndarray) -> np.ndarray:
  """Values of the curves through (x, y) at other places.

  Straight lines stay straight; two points give one, and one point a constant.

  Args:
    x: [E] ascending, no two alike.
    y: [B, E] of B curves.
    at: [K] between x[0] and x[-1].

  Returns:
    [B, K].
  """
  if len(x) == 1:
    return np.repeat(y, len(at), -1)
  width = np.diff(x)
  slope = np.diff(y) / width
  if len(x) == 2:
    slopes = np.repeat(slope, 2, -1)
  else:
    first = _end(width[0], width[1], slope[:, 0], slope[:, 1])
    last = _end(width[-1], width[-2], slope[:, -1], slope[:, -2])
    inner = _inner(width, slope)
    slopes = np.concatenate([first[:, None], inner, last[:, None]], -1)
  i = np.clip(np.searchsorted(x, at, "right") - 1, 0, len(x) - 2)
  part = (at - x[i]) / width[i]
  rest = 1 - part
  values = y[:, i] * (1 + 2 * part) + width[i] * slopes[:, i] * part
  next_values = (
    y[:, i + 1] * (1 + 2 * rest) - width[i] * slopes[:, i + 1] * rest
  )
  return rest**2 * values + part**2 * next_values
