"""Stencils, pooling, convolutions: a neighbourhood to one element."""

import functools

import numpy as np

from kernels_eval.problems import flops, sizes
from kernels_eval.problems.spec import Problem, Scalar, Tensor

_WEIGHTS = (0.0625, 0.25, 0.375, 0.25, 0.0625)
_PLANES = "grid=(ceil_div({w}, 16), ceil_div({h}, 16), planes) block=(16, 16)"


def _stencil_1d(x, xp):
  padded = xp.pad(x, 2)
  return sum(w * padded[j : j + len(x)] for j, w in enumerate(_WEIGHTS))


def _stencil_2d_5point(x, alpha, xp):
  padded = xp.pad(x, 1, mode="edge")
  up, down = padded[:-2, 1:-1], padded[2:, 1:-1]
  left, right = padded[1:-1, :-2], padded[1:-1, 2:]
  return x + alpha * (up + down + left + right - 4 * x)


def _max_pool_2d(x, xp):
  _, height, width = x.shape
  padded = xp.pad(x, ((0, 0), (1, 2), (1, 2)), constant_values=-np.inf)
  windows = [
    padded[:, i : i + height : 2, j : j + width : 2]
    for i in range(3)
    for j in range(3)
  ]
  return functools.reduce(xp.maximum, windows)


def _avg_pool_1d(x, xp):
  left = x.shape[1] - np.arange(0, x.shape[1], 4)  # elements from each start
  padded = xp.pad(x, ((0, 0), (0, -x.shape[1] % 4)))
  sums = sum(padded[:, j::4] for j in range(4))
  return sums / xp.asarray(np.minimum(left, 4), x.dtype)


def _conv2d_3x3(x, weight, xp):
  _, height, width = x.shape
  padded = xp.pad(x, ((0, 0), (1, 1), (1, 1)))
  return sum(
    xp.einsum(
      "fc,chw->fhw",
      weight[:, :, i, j],
      padded[:, i : i + height, j : j + width],
    )
    for i in range(3)
    for j in range(3)
  )


def _least_flops_conv2d(filters, channels, height, width):
  """One multiplication for an output and channel, in place of nine: fewer no
  minimal filtering needs (Winograd, "Arithmetic complexity of computations",
  1980: m + 2 for m outputs of three taps); Fourier transforms need more."""
  return flops.product(filters, height * width, channels)


PROBLEMS = (
  Problem(
    name="stencil_1d",
    level=2,
    statement="A smoothing stencil over a vector: out[i] = 0.0625 * x[i - 2] + "
    "0.25 * x[i - 1] + 0.375 * x[i] + 0.25 * x[i + 1] + 0.0625 * x[i + 2] for "
    "every i < n, where elements outside of x count as 0.",
    dims=("n",),
    inputs=(Tensor("x", ("n",)),),
    outputs=(Tensor("out", ("n",)),),
    reference=_stencil_1d,
    launch="grid=(ceil_div(n, 256)) block=(256)",
    shapes=sizes.VECTOR,
  ),
  Problem(
    name="stencil_2d_5point",
    level=2,
    statement="One step of heat flow on the row-major grid x[rows][cols]: "
    "out[r][c] = x[r][c] + alpha * (x[r - 1][c] + x[r + 1][c] + x[r][c - 1] + "
    "x[r][c + 1] - 4 * x[r][c]). An index outside of the grid means the "
    "nearest row or column inside.",
    dims=("rows", "cols"),
    inputs=(Tensor("x", ("rows", "cols")),),
    outputs=(Tensor("out", ("rows", "cols")),),
    reference=_stencil_2d_5point,
    launch="grid=(ceil_div(cols, 16), ceil_div(rows, 16)) block=(16, 16)",
    shapes=sizes.MATRIX,
    scalars=(Scalar("alpha", (0.25, 0.1, 0.2, 0.15, 0.05, 0.12, 0.22)),),
  ),
  Problem(
    name="max_pool_2d",
    level=2,
    statement="Maximum over windows of 3 x 3 with stride 2 and one ring of "
    "padding, for x[planes][height][width], row-major: out[p][i][j] = max of "
    "x[p][r][c] over r = 2 * i - 1 ... 2 * i + 1 and c = 2 * j - 1 ... 2 * j + "
    "1 where r and c lie inside; padding never wins. out has shape "
    "[planes][ceil(height / 2)][ceil(width / 2)].",
    dims=("planes", "height", "width"),
    inputs=(Tensor("x", ("planes", "height", "width")),),
    outputs=(
      Tensor("out", ("planes", "ceil_div(height, 2)", "ceil_div(width, 2)")),
    ),
    reference=_max_pool_2d,
    launch=_PLANES.format(h="ceil_div(height, 2)", w="ceil_div(width, 2)"),
    shapes=sizes.PLANES,
  ),
  Problem(
    name="avg_pool_1d",
    level=2,
    statement="Means of four neighbours in every row of the row-major matrix "
    "x[rows][cols]: out[r][i] is the mean of x[r][c] over c = 4 * i ... "
    "min(4 * i + 3, cols - 1), so the last window of a row may hold fewer than "
    "four elements and is divided by their number. out has shape "
    "[rows][ceil(cols / 4)].",
    dims=("rows", "cols"),
    inputs=(Tensor("x", ("rows", "cols")),),
    outputs=(Tensor("out", ("rows", "ceil_div(cols, 4)")),),
    reference=_avg_pool_1d,
    launch="grid=(ceil_div(ceil_div(cols, 4), 128), rows) block=(128)",
    shapes=sizes.ROWS,
  ),
  Problem(
    name="conv1d",
    level=2,
    statement="Slides a filter over a vector, without padding and without "
    "turning the filter round: out[i] = sum over j < taps of x[i + j] * "
    "weight[j], for i < n - taps + 1, which is the number of elements of out. "
    "taps is from 1 to n.",
    dims=("n", "taps"),
    inputs=(Tensor("x", ("n",)), Tensor("weight", ("taps",))),
    outputs=(Tensor("out", ("n - taps + 1",)),),
    reference=lambda x, weight, xp: xp.correlate(x, weight, "valid"),
    launch="grid=(ceil_div(n - taps + 1, 256)) block=(256)",
    shapes=sizes.of(
      "n taps",
      (1, 1),
      (33, 5),
      (256, 1),
      (700, 16),
      (40, 31),
      (1025, 9),
      (1500, 33),
    ),
  ),
  Problem(
    name="conv2d_3x3",
    level=3,
    statement="A convolution layer with filters of 3 x 3, stride 1 and zero "
    "padding: out[f][i][j] = sum over k < channels, a < 3 and b < 3 of "
    "x[k][i + a - 1][j + b - 1] * weight[f][k][a][b], where elements outside "
    "of x count as 0. x[channels][height][width], "
    "weight[filters][channels][3][3] and out[filters][height][width] are "
    "row-major.",
    dims=("filters", "channels", "height", "width"),
    inputs=(
      Tensor("x", ("channels", "height", "width")),
      Tensor("weight", ("filters", "channels", "3", "3")),
    ),
    outputs=(Tensor("out", ("filters", "height", "width")),),
    reference=_conv2d_3x3,
    least_flops=_least_flops_conv2d,
    launch="grid=(ceil_div(width, 16), ceil_div(height, 16), filters) "
    "block=(16, 16)",
    shapes=sizes.of(
      "filters channels height width",
      (1, 1, 1, 1),
      (2, 3, 5, 4),
      (3, 2, 16, 16),
      (1, 5, 7, 33),
      (5, 1, 17, 3),
      (4, 3, 19, 18),
      (3, 4, 20, 23),
    ),
  ),
  Problem(
    name="upsample_nearest",
    level=1,
    statement="Doubles height and width by repeating elements: out[p][i][j] = "
    "x[p][i / 2][j / 2] with whole-number division, for i < 2 * height and "
    "j < 2 * width. x[planes][height][width] and out[planes][2 * height]"
    "[2 * width] are row-major.",
    dims=("planes", "height", "width"),
    inputs=(Tensor("x", ("planes", "height", "width")),),
    outputs=(Tensor("out", ("planes", "2 * height", "2 * width")),),
    reference=lambda x: x.repeat(2, axis=1).repeat(2, axis=2),
    launch=_PLANES.format(h="2 * height", w="2 * width"),
    shapes=sizes.PLANES,
  ),
)
