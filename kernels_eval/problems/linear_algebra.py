"""Products of matrices and vectors."""

from kernels_eval.problems import flops, sizes
from kernels_eval.problems.spec import Problem, Tensor

_TILES = "grid=(ceil_div(n, 16), ceil_div(m, 16)) block=(16, 16)"


def _least_flops_rectified(m, n, k):
  """Of what is below zero, about one half, only the sign has to be known."""
  return flops.product(m, n, k) / 2


def _least_flops_gram(rows, cols):
  """The answer is symmetric."""
  return flops.product(cols, cols, rows) / 2


PROBLEMS = (
  Problem(
    name="matvec",
    level=2,
    statement="Matrix times vector: out[r] = sum over c < cols of a[r][c] * "
    "x[c] for every r < rows, with a[rows][cols] row-major.",
    dims=("rows", "cols"),
    inputs=(Tensor("a", ("rows", "cols")), Tensor("x", ("cols",))),
    outputs=(Tensor("out", ("rows",)),),
    reference=lambda a, x: a @ x,
    launch="grid=(rows) block=(128)",
    shapes=sizes.of(
      "rows cols",
      (1, 1),
      (3, 7),
      (16, 64),
      (130, 3),
      (7, 257),
      (40, 130),
      (5, 1001),
    ),
  ),
  Problem(
    name="matmul",
    level=3,
    statement="Matrix product: out[i][j] = sum over t < k of a[i][t] * b[t][j] "
    "for i < m and j < n. a[m][k], b[k][n] and out[m][n] are row-major.",
    dims=("m", "n", "k"),
    inputs=(Tensor("a", ("m", "k")), Tensor("b", ("k", "n"))),
    outputs=(Tensor("out", ("m", "n")),),
    reference=lambda a, b: a @ b,
    least_flops=flops.product,
    launch=_TILES,
    shapes=sizes.MATMUL,
  ),
  Problem(
    name="matmul_transposed",
    level=3,
    statement="Matrix product with the second matrix transposed, as a linear "
    "layer has it: out[i][j] = sum over t < k of a[i][t] * b[j][t] for i < m "
    "and j < n. a[m][k], b[n][k] and out[m][n] are row-major.",
    dims=("m", "n", "k"),
    inputs=(Tensor("a", ("m", "k")), Tensor("b", ("n", "k"))),
    outputs=(Tensor("out", ("m", "n")),),
    reference=lambda a, b: a @ b.T,
    least_flops=flops.product,
    launch=_TILES,
    shapes=sizes.MATMUL,
  ),
  Problem(
    name="matmul_bias_relu",
    level=3,
    statement="A linear layer with rectifier: out[i][j] = max(bias[j] + sum "
    "over t < k of a[i][t] * b[t][j], 0) for i < m and j < n. a[m][k], b[k][n] "
    "and out[m][n] are row-major, bias has n elements.",
    dims=("m", "n", "k"),
    inputs=(
      Tensor("a", ("m", "k")),
      Tensor("b", ("k", "n")),
      Tensor("bias", ("n",)),
    ),
    outputs=(Tensor("out", ("m", "n")),),
    reference=lambda a, b, bias, xp: xp.maximum(a @ b + bias[None, :], 0),
    least_flops=_least_flops_rectified,
    launch=_TILES,
    shapes=sizes.MATMUL,
  ),
  Problem(
    name="batched_matmul",
    level=3,
    statement="One matrix product for each element of a batch: out[s][i][j] = "
    "sum over t < k of a[s][i][t] * b[s][t][j] for s < batch, i < m and j < n. "
    "a[batch][m][k], b[batch][k][n] and out[batch][m][n] are row-major.",
    dims=("batch", "m", "n", "k"),
    inputs=(Tensor("a", ("batch", "m", "k")), Tensor("b", ("batch", "k", "n"))),
    outputs=(Tensor("out", ("batch", "m", "n")),),
    reference=lambda a, b: a @ b,
    least_flops=lambda batch, m, n, k: batch * flops.product(m, n, k),
    launch="grid=(ceil_div(n, 16), ceil_div(m, 16), batch) block=(16, 16)",
    shapes=sizes.of(
      "batch m n k",
      (1, 1, 1, 1),
      (3, 5, 2, 7),
      (2, 16, 16, 16),
      (5, 1, 17, 33),
      (7, 9, 1, 20),
      (4, 18, 11, 35),
      (2, 20, 33, 19),
    ),
  ),
  Problem(
    name="gram",
    level=3,
    statement="Gram matrix of the columns of the row-major matrix "
    "a[rows][cols]: out[i][j] = sum over r < rows of a[r][i] * a[r][j] for i "
    "and j < cols, with out[cols][cols] row-major.",
    dims=("rows", "cols"),
    inputs=(Tensor("a", ("rows", "cols")),),
    outputs=(Tensor("out", ("cols", "cols")),),
    reference=lambda a: a.T @ a,
    least_flops=_least_flops_gram,
    launch="grid=(ceil_div(cols, 16), ceil_div(cols, 16)) block=(16, 16)",
    shapes=sizes.of(
      "rows cols",
      (1, 1),
      (7, 3),
      (16, 16),
      (1, 33),
      (130, 5),
      (40, 17),
      (50, 35),
    ),
  ),
)
