"""Attention and the gated layer of a transformer."""

import math

from kernels_eval.problems import flops, inputs, sizes
from kernels_eval.problems.reference import sigmoid, softmax
from kernels_eval.problems.spec import Problem, Tensor


def _attention(q, k, v, xp):
  return softmax(q @ k.T / math.sqrt(q.shape[1]), xp) @ v


def _causal_attention(q, k, v, xp):
  scores = q @ k.T / math.sqrt(q.shape[1])
  future = xp.triu(xp.ones(scores.shape, bool), 1)
  return softmax(xp.where(future, -math.inf, scores), xp) @ v


def _swiglu(x, gate, up, xp):
  g = x @ gate
  return g * sigmoid(g, xp) * (x @ up)


def _least_flops_causal(n, dim):
  """Two products, one half of each behind the mask."""
  return flops.product(n, n, dim)


def _least_flops_swiglu(rows, inner, hidden):
  """Two products. Where g is far below zero, in almost one half, the answer is
  zero, and neither g nor u has to be known."""
  return flops.product(rows, hidden, inner)


# Large inputs are left out of this file: scores of some thousand have errors
# in single precision that exp turns into relative errors of a thousandth.
PROBLEMS = (
  Problem(
    name="attention",
    level=3,
    statement="Attention of one head: for every query i < queries, score[j] = "
    "(sum over d < dim of q[i][d] * k[j][d]) / sqrt(dim) for j < keys, weight "
    "= softmax(score) over j, and out[i][d] = sum over j < keys of weight[j] * "
    "v[j][d]. q[queries][dim], k[keys][dim], v[keys][dim] and "
    "out[queries][dim] are row-major.",
    dims=("queries", "keys", "dim"),
    inputs=(
      Tensor("q", ("queries", "dim")),
      Tensor("k", ("keys", "dim")),
      Tensor("v", ("keys", "dim")),
    ),
    outputs=(Tensor("out", ("queries", "dim")),),
    reference=_attention,
    least_flops=lambda queries, keys, dim: (
      2 * flops.product(queries, keys, dim)
    ),
    launch="grid=(queries) block=(64)",
    shapes=sizes.of(
      "queries keys dim",
      (1, 1, 1),
      (3, 5, 7),
      (16, 32, 16),
      (1, 130, 33),
      (20, 3, 8),
      (13, 70, 32),
    ),
    distributions=inputs.MODERATE,
  ),
  Problem(
    name="causal_attention",
    level=3,
    statement="Attention of one head in which position i sees only positions "
    "j <= i: score[j] = (sum over d < dim of q[i][d] * k[j][d]) / sqrt(dim) "
    "for j <= i, weight = softmax(score) over j <= i, and out[i][d] = sum over "
    "j <= i of weight[j] * v[j][d]. q, k, v and out have shape [n][dim], "
    "row-major.",
    dims=("n", "dim"),
    inputs=(
      Tensor("q", ("n", "dim")),
      Tensor("k", ("n", "dim")),
      Tensor("v", ("n", "dim")),
    ),
    outputs=(Tensor("out", ("n", "dim")),),
    reference=_causal_attention,
    least_flops=_least_flops_causal,
    launch="grid=(n) block=(64)",
    shapes=sizes.of(
      "n dim", (1, 1), (5, 7), (32, 16), (70, 8), (33, 33), (45, 40)
    ),
    distributions=inputs.MODERATE,
  ),
  Problem(
    name="swiglu",
    level=3,
    statement="The gated layer of a transformer: g[r][j] = sum over t < inner "
    "of x[r][t] * gate[t][j], u[r][j] = sum over t < inner of x[r][t] * "
    "up[t][j], and out[r][j] = g[r][j] / (1 + exp(-g[r][j])) * u[r][j]. "
    "x[rows][inner], gate[inner][hidden], up[inner][hidden] and "
    "out[rows][hidden] are row-major.",
    dims=("rows", "inner", "hidden"),
    inputs=(
      Tensor("x", ("rows", "inner")),
      Tensor("gate", ("inner", "hidden")),
      Tensor("up", ("inner", "hidden")),
    ),
    outputs=(Tensor("out", ("rows", "hidden")),),
    reference=_swiglu,
    least_flops=_least_flops_swiglu,
    launch="grid=(ceil_div(hidden, 16), ceil_div(rows, 16)) block=(16, 16)",
    shapes=sizes.of(
      "rows inner hidden",
      (1, 1, 1),
      (3, 5, 7),
      (16, 16, 16),
      (1, 70, 33),
      (37, 9, 5),
      (20, 33, 41),
    ),
    distributions=inputs.MODERATE,
  ),
)
