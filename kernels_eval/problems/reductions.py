"""Reductions: many elements to one."""

from kernels_eval.problems import sizes
from kernels_eval.problems.spec import Problem, Scalar, Tensor

# Without rows of one element or two, where a variance may be next to nothing.
_LONG_ROWS = sizes.of(
  "rows cols", (2, 5), (3, 7), (5, 64), (33, 3), (2, 257), (9, 130), (2, 1500)
)
_MATRIX = (Tensor("x", ("rows", "cols")),)
_PER_ROW = (Tensor("out", ("rows",)),)
_BLOCK_PER_ROW = "grid=(rows) block=(256)"


def _logsumexp(x, xp):
  highest = x.max(axis=1)
  return highest + xp.log(xp.exp(x - highest[:, None]).sum(axis=1))


def _rows(name, statement, reference, **more):
  """A problem with one result for each row of x[rows][cols]."""
  record = {
    "name": name,
    "level": 2,
    "statement": statement,
    "dims": ("rows", "cols"),
    "inputs": _MATRIX,
    "outputs": _PER_ROW,
    "reference": reference,
    "launch": _BLOCK_PER_ROW,
    "shapes": sizes.ROWS,
  }
  return Problem(**(record | more))


PROBLEMS = (
  _rows(
    "row_sum",
    "Sum of every row of the row-major matrix x[rows][cols]: out[r] = sum over "
    "c < cols of x[r][c].",
    lambda x: x.sum(axis=1),
  ),
  _rows(
    "row_max",
    "Largest element of every row of the row-major matrix x[rows][cols]: "
    "out[r] = max over c < cols of x[r][c].",
    lambda x: x.max(axis=1),
  ),
  _rows(
    "row_mean",
    "Mean of every row of the row-major matrix x[rows][cols]: out[r] = (sum "
    "over c < cols of x[r][c]) / cols.",
    lambda x: x.mean(axis=1),
  ),
  _rows(
    "row_variance",
    "Population variance of every row of the row-major matrix x[rows][cols]: "
    "with mean = (sum over c < cols of x[r][c]) / cols, out[r] = (sum over "
    "c < cols of (x[r][c] - mean)^2) / cols.",
    lambda x: x.var(axis=1),
    shapes=_LONG_ROWS,
  ),
  _rows(
    "row_argmax",
    "Place of the largest element in every row of the row-major matrix "
    "x[rows][cols]: out[r] is the column c (from 0) where x[r][c] is largest; "
    "if several are equally large, the smallest such c.",
    lambda x: x.argmax(axis=1),
    outputs=(Tensor("out", ("rows",), "int32"),),
    # Whole numbers first: ties in most rows.
    distributions=("integers", "normal", "negative", "small", "large"),
    shapes=sizes.of(
      "rows cols",
      (3, 7),
      (1, 1),
      (5, 64),
      (33, 3),
      (2, 257),
      (9, 130),
      (2, 1500),
      (40, 33),
    ),
  ),
  _rows(
    "row_norm",
    "Euclidean length of every row of the row-major matrix x[rows][cols]: "
    "out[r] = sqrt(sum over c < cols of x[r][c]^2).",
    lambda x, xp: xp.sqrt((x * x).sum(axis=1)),
  ),
  Problem(
    name="dot_product",
    level=2,
    statement="Inner product of two vectors as one number: out[0] = sum over "
    "i < n of x[i] * y[i].",
    dims=("n",),
    inputs=(Tensor("x", ("n",)), Tensor("y", ("n",))),
    outputs=(Tensor("out", ("1",)),),
    reference=lambda x, y, xp: xp.dot(x, y).reshape(1),
    launch="grid=(1) block=(256)",
    shapes=sizes.VECTOR,
    # No centred values: a sum that happens to end near zero would ask for
    # more than single precision has.
    distributions=("positive", "uniform", "negative", "integers"),
  ),
  Problem(
    name="count_above",
    level=2,
    statement="How many elements of x are greater than a threshold, as one "
    "whole number: out[0] = number of i < n with x[i] > threshold (an element "
    "equal to it does not count).",
    dims=("n",),
    inputs=(Tensor("x", ("n",)),),
    outputs=(Tensor("out", ("1",), "int32"),),
    reference=lambda x, threshold: (x > threshold).sum().reshape(1),
    launch="grid=(1) block=(256)",
    shapes=sizes.VECTOR,
    # In step with the distributions; for whole numbers many are equal to it.
    scalars=(Scalar("threshold", (-2.0, 0.4, -0.7, 1.0, 2e-4, 9.0, 0.3)),),
  ),
  Problem(
    name="column_sum",
    level=2,
    statement="Sum of every column of the row-major matrix x[rows][cols]: "
    "out[c] = sum over r < rows of x[r][c].",
    dims=("rows", "cols"),
    inputs=_MATRIX,
    outputs=(Tensor("out", ("cols",)),),
    reference=lambda x: x.sum(axis=0),
    launch="grid=(ceil_div(cols, 128)) block=(128)",
    shapes=sizes.of(
      "rows cols",
      (1, 1),
      (7, 3),
      (64, 5),
      (1, 33),
      (257, 2),
      (130, 9),
      (30, 150),
    ),
  ),
  _rows(
    "logsumexp",
    "Logarithm of the sum of exponentials of every row of the row-major matrix "
    "x[rows][cols]: out[r] = log(sum over c < cols of exp(x[r][c])). It must "
    "not overflow: with m = max over c of x[r][c], that is m + log(sum over c "
    "of exp(x[r][c] - m)).",
    _logsumexp,
    # Not the small ones: log(cols) alone would be near enough.
    distributions=("normal", "uniform", "negative", "integers", "large"),
  ),
)
