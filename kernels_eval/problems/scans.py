"""Scans: every result depends on all elements before it."""

import numpy as np

from kernels_eval.problems import sizes
from kernels_eval.problems.spec import Problem, Tensor

_MATRIX = Tensor("x", ("rows", "cols"))
_SCANNED = Tensor("out", ("rows", "cols"))
_BLOCK_PER_ROW = "grid=(rows) block=(256)"


def _one_in_eight(rng, shape, dims):
  """Starts of segments: 1 in one place of eight, else 0."""
  del dims
  return (rng.random(shape) < 0.125).astype(np.float64)


def _counts(rng, shape, dims):
  del dims
  return rng.integers(0, 10, shape).astype(np.float64)


def _decays(rng, shape, dims):
  del dims
  return rng.uniform(0.2, 0.98, shape)


def _segmented_cumsum(x, start):
  out = np.empty_like(x)
  total = np.zeros_like(x[:, 0])
  for c in range(x.shape[1]):
    total = np.where(start[:, c] != 0, x[:, c], total + x[:, c])
    out[:, c] = total
  return out


def _linear_recurrence(x, decay):
  out = np.empty_like(x)
  state = np.zeros_like(x[0])
  for t in range(x.shape[0]):
    state = decay[t] * state + x[t]
    out[t] = state
  return out


PROBLEMS = (
  Problem(
    name="row_cumsum",
    level=2,
    statement="Running sum along every row of the row-major matrix "
    "x[rows][cols]: out[r][c] = x[r][0] + x[r][1] + ... + x[r][c] (the element "
    "itself counts).",
    dims=("rows", "cols"),
    inputs=(_MATRIX,),
    outputs=(_SCANNED,),
    reference=lambda x, xp: xp.cumsum(x, axis=1),
    launch=_BLOCK_PER_ROW,
    shapes=sizes.ROWS,
  ),
  Problem(
    name="row_cummax",
    level=2,
    statement="Running maximum along every row of the row-major matrix "
    "x[rows][cols]: out[r][c] = max(x[r][0], x[r][1], ..., x[r][c]).",
    dims=("rows", "cols"),
    inputs=(_MATRIX,),
    outputs=(_SCANNED,),
    reference=lambda x: np.maximum.accumulate(x, axis=1),
    launch=_BLOCK_PER_ROW,
    shapes=sizes.ROWS,
  ),
  Problem(
    name="segmented_cumsum",
    level=3,
    statement="Running sum along every row of the row-major matrix "
    "x[rows][cols] that begins anew wherever start[r][c] is not 0: out[r][c] = "
    "x[r][c] if c == 0 or start[r][c] != 0, and out[r][c] = out[r][c - 1] + "
    "x[r][c] otherwise.",
    dims=("rows", "cols"),
    inputs=(
      _MATRIX,
      Tensor("start", ("rows", "cols"), "int32", fill=_one_in_eight),
    ),
    outputs=(_SCANNED,),
    reference=_segmented_cumsum,
    launch=_BLOCK_PER_ROW,
    shapes=sizes.ROWS,
  ),
  Problem(
    name="exclusive_scan",
    level=3,
    statement="Offsets from counts, over the whole vector: out[i] = count[0] + "
    "count[1] + ... + count[i - 1] for every i < n, so that out[0] = 0.",
    dims=("n",),
    inputs=(Tensor("count", ("n",), "int32", fill=_counts),),
    outputs=(Tensor("out", ("n",), "int32"),),
    reference=lambda count, xp: xp.cumsum(count) - count,
    launch="grid=(1) block=(256)",
    shapes=sizes.VECTOR,
    distributions=("integers",),
  ),
  Problem(
    name="linear_recurrence",
    level=2,
    statement="A first-order recurrence in time for every channel: with x, "
    "decay and out of shape [steps][channels], row-major, out[0][k] = x[0][k] "
    "and out[t][k] = decay[t][k] * out[t - 1][k] + x[t][k] for t > 0.",
    dims=("steps", "channels"),
    inputs=(
      Tensor("x", ("steps", "channels")),
      Tensor("decay", ("steps", "channels"), fill=_decays),
    ),
    outputs=(Tensor("out", ("steps", "channels")),),
    reference=_linear_recurrence,
    launch="grid=(ceil_div(channels, 128)) block=(128)",
    shapes=sizes.of(
      "steps channels",
      (1, 1),
      (7, 3),
      (64, 5),
      (3, 130),
      (200, 1),
      (33, 33),
      (40, 129),
    ),
  ),
)
