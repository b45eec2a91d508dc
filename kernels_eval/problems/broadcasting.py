"""Broadcasting problems: operands of different shapes meet in one result."""

from kernels_eval.problems import inputs, sizes
from kernels_eval.problems.spec import Problem, Tensor

_TILES = "grid=(ceil_div(cols, 32), ceil_div(rows, 8)) block=(32, 8)"

PROBLEMS = (
  Problem(
    name="bias_add",
    level=1,
    statement="Adds a row vector to every row of a matrix: out[r][c] = x[r][c] "
    "+ bias[c] for x[rows][cols], bias[cols] and out[rows][cols], all stored "
    "row by row.",
    dims=("rows", "cols"),
    inputs=(Tensor("x", ("rows", "cols")), Tensor("bias", ("cols",))),
    outputs=(Tensor("out", ("rows", "cols")),),
    reference=lambda x, bias: x + bias[None, :],
    launch=_TILES,
    shapes=sizes.MATRIX,
  ),
  Problem(
    name="row_scale",
    level=1,
    statement="Multiplies every row of a matrix by its own number: out[r][c] = "
    "x[r][c] * scale[r] for x[rows][cols], scale[rows] and out[rows][cols], "
    "all stored row by row.",
    dims=("rows", "cols"),
    inputs=(Tensor("x", ("rows", "cols")), Tensor("scale", ("rows",))),
    outputs=(Tensor("out", ("rows", "cols")),),
    reference=lambda x, scale: x * scale[:, None],
    launch="grid=(rows) block=(128)",
    shapes=sizes.MATRIX,
  ),
  Problem(
    name="outer_product",
    level=1,
    statement="Outer product of two vectors: out[i][j] = x[i] * y[j] for "
    "i < m and j < n; out[m][n] is stored row by row.",
    dims=("m", "n"),
    inputs=(Tensor("x", ("m",)), Tensor("y", ("n",))),
    outputs=(Tensor("out", ("m", "n")),),
    reference=lambda x, y: x[:, None] * y[None, :],
    launch="grid=(ceil_div(n, 16), ceil_div(m, 16)) block=(16, 16)",
    shapes=tuple({"m": s["rows"], "n": s["cols"]} for s in sizes.MATRIX),
  ),
  Problem(
    name="residual_scale",
    level=1,
    statement="A residual branch with one gain for each column: out[r][c] = "
    "x[r][c] + gain[c] * branch[r][c] for x, branch and out of shape "
    "[rows][cols], stored row by row, and gain[cols].",
    dims=("rows", "cols"),
    inputs=(
      Tensor("x", ("rows", "cols")),
      Tensor("branch", ("rows", "cols")),
      # Of the size of 1 in every case: with a gain as small as small inputs
      # the branch would hardly count.
      Tensor("gain", ("cols",), fill=inputs.distribution("uniform")),
    ),
    outputs=(Tensor("out", ("rows", "cols")),),
    reference=lambda x, branch, gain: x + gain[None, :] * branch,
    launch="grid=(ceil_div(rows * cols, 256)) block=(256)",
    shapes=sizes.MATRIX,
  ),
)
