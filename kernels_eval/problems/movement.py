"""Problems that move data: permutations, gathers, scatters, histograms."""

import numpy as np

from kernels_eval.problems import inputs, sizes
from kernels_eval.problems.spec import Problem, Tensor


def _scatter_add(x, index, bins):
  out = np.zeros((bins, x.shape[1]), x.dtype)
  np.add.at(out, index, x)
  return out


def _around_bins(rng, shape, dims):
  """A few values on either side lie in no bin."""
  return rng.integers(-2, dims["bins"] + 2, shape).astype(np.float64)


def _histogram(x, bins):
  return np.bincount(x[(x >= 0) & (x < bins)], minlength=bins)


def _rotary_embedding(x, angle, xp):
  even, odd = x[:, 0::2], x[:, 1::2]
  cos, sin = xp.cos(angle), xp.sin(angle)
  turned = (even * cos - odd * sin, even * sin + odd * cos)
  return xp.stack(turned, axis=2).reshape(x.shape)


PROBLEMS = (
  Problem(
    name="reverse",
    level=1,
    statement="Reverses a vector: out[i] = x[n - 1 - i] for every i < n.",
    dims=("n",),
    inputs=(Tensor("x", ("n",)),),
    outputs=(Tensor("out", ("n",)),),
    reference=lambda x: x[::-1],
    launch="grid=(ceil_div(n, 256)) block=(256)",
    shapes=sizes.VECTOR,
  ),
  Problem(
    name="transpose",
    level=2,
    statement="Transposes the row-major matrix x[rows][cols] into "
    "out[cols][rows], row-major as well: out[c][r] = x[r][c].",
    dims=("rows", "cols"),
    inputs=(Tensor("x", ("rows", "cols")),),
    outputs=(Tensor("out", ("cols", "rows")),),
    reference=lambda x: x.T,
    launch="grid=(ceil_div(cols, 32), ceil_div(rows, 32)) block=(32, 8)",
    shapes=sizes.MATRIX,
  ),
  Problem(
    name="gather_rows",
    level=1,
    statement="Looks up rows of the row-major matrix table[entries][cols]: "
    "out[i][c] = table[index[i]][c] for i < n and c < cols, with out[n][cols] "
    "row-major. Every index[i] is from 0 to entries - 1; an entry may be asked "
    "for several times or never.",
    dims=("n", "entries", "cols"),
    inputs=(
      Tensor("table", ("entries", "cols")),
      Tensor("index", ("n",), "int32", fill=inputs.indices("entries")),
    ),
    outputs=(Tensor("out", ("n", "cols")),),
    reference=lambda table, index: table[index],
    launch="grid=(n) block=(128)",
    shapes=sizes.of(
      "n entries cols",
      (1, 1, 1),
      (7, 5, 3),
      (64, 10, 32),
      (3, 100, 33),
      (130, 40, 1),
      (9, 2, 300),
      (37, 101, 19),
    ),
  ),
  Problem(
    name="scatter_add",
    level=3,
    statement="Adds rows into bins: out[b][c] = sum of x[i][c] over all i < n "
    "with index[i] == b, for b < bins and c < cols; x[n][cols] and "
    "out[bins][cols] are row-major. Every index[i] is from 0 to bins - 1, many "
    "are equal, and a bin without rows gets 0. out holds no zeros at the "
    "start.",
    dims=("n", "bins", "cols"),
    inputs=(
      Tensor("x", ("n", "cols")),
      Tensor("index", ("n",), "int32", fill=inputs.indices("bins")),
    ),
    outputs=(Tensor("out", ("bins", "cols")),),
    reference=_scatter_add,
    launch="grid=(bins) block=(128)",
    shapes=sizes.of(
      "n bins cols",
      (1, 1, 1),
      (9, 4, 3),
      (64, 10, 16),
      (100, 3, 17),
      (30, 50, 5),
      (300, 7, 1),
      (83, 11, 31),
    ),
  ),
  Problem(
    name="histogram",
    level=2,
    statement="Counts values: out[b] = number of i < n with x[i] == b, for "
    "every b < bins. Values of x below 0 or from bins upwards are ignored. out "
    "holds no zeros at the start.",
    dims=("n", "bins"),
    inputs=(Tensor("x", ("n",), "int32", fill=_around_bins),),
    outputs=(Tensor("out", ("bins",), "int32"),),
    reference=_histogram,
    launch="grid=(1) block=(256)",
    shapes=sizes.of(
      "n bins",
      (1, 1),
      (100, 7),
      (1000, 32),
      (50, 300),
      (2049, 61),
      (3001, 2),
    ),
    distributions=("integers",),
  ),
  Problem(
    name="embedding_bag_mean",
    level=2,
    statement="Mean of looked-up rows: out[b][c] = (sum over j < length of "
    "table[index[b][j]][c]) / length, for b < bags and c < cols. "
    "table[entries][cols], index[bags][length] and out[bags][cols] are "
    "row-major; every index is from 0 to entries - 1.",
    dims=("bags", "length", "entries", "cols"),
    inputs=(
      Tensor("table", ("entries", "cols")),
      Tensor(
        "index", ("bags", "length"), "int64", fill=inputs.indices("entries")
      ),
    ),
    outputs=(Tensor("out", ("bags", "cols")),),
    reference=lambda table, index: table[index].mean(axis=1),
    launch="grid=(bags) block=(128)",
    shapes=sizes.of(
      "bags length entries cols",
      (1, 1, 1, 1),
      (3, 4, 5, 7),
      (16, 8, 32, 32),
      (5, 1, 9, 33),
      (40, 17, 3, 1),
      (2, 5, 20, 150),
      (11, 6, 50, 67),
    ),
  ),
  Problem(
    name="rotary_embedding",
    level=2,
    statement="Rotates pairs of neighbours: for t < tokens and j < pairs, with "
    "a = x[t][2 * j], b = x[t][2 * j + 1], c = cos(angle[t][j]) and s = "
    "sin(angle[t][j]), out[t][2 * j] = a * c - b * s and out[t][2 * j + 1] = "
    "a * s + b * c. x and out are row-major with 2 * pairs columns, "
    "angle[tokens][pairs] is row-major and in radians.",
    dims=("tokens", "pairs"),
    inputs=(
      Tensor("x", ("tokens", "2 * pairs")),
      Tensor("angle", ("tokens", "pairs"), fill=inputs.distribution("large")),
    ),
    outputs=(Tensor("out", ("tokens", "2 * pairs")),),
    reference=_rotary_embedding,
    launch="grid=(tokens) block=(64)",
    shapes=sizes.of(
      "tokens pairs",
      (1, 1),
      (5, 3),
      (16, 32),
      (3, 65),
      (70, 1),
      (9, 64),
      (23, 37),
    ),
  ),
)
