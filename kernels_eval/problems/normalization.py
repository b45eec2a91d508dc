"""Normalisation of rows."""

from kernels_eval.problems import inputs, sizes
from kernels_eval.problems.reference import log_softmax, softmax
from kernels_eval.problems.spec import Problem, Scalar, Tensor

_BLOCK_PER_ROW = "grid=(rows) block=(256)"
_MATRIX = Tensor("x", ("rows", "cols"))
# Weights of their own size in every case, never all 1 or all 0.
_GAMMA = Tensor("gamma", ("cols",), fill=inputs.distribution("positive"))
_BETA = Tensor("beta", ("cols",), fill=inputs.distribution("normal"))


def _layer_norm(x, gamma, beta, xp):
  centred = x - x.mean(axis=1, keepdims=True)
  variance = (centred * centred).mean(axis=1, keepdims=True)
  return centred / xp.sqrt(variance + 1e-5) * gamma + beta


def _layer_norm_residual(x, residual, gamma, beta, xp):
  total = x + residual
  return total, _layer_norm(total, gamma, beta, xp)


def _rms_norm(x, gamma, xp):
  return x / xp.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * gamma


def _l2_normalize(x, epsilon, xp):
  return x / xp.sqrt((x * x).sum(axis=1, keepdims=True) + epsilon)


def _rows(name, statement, reference, tensors=(_MATRIX,), **more):
  """A problem that turns x[rows][cols] into out[rows][cols]."""
  record = {
    "name": name,
    "level": 2,
    "statement": statement,
    "dims": ("rows", "cols"),
    "inputs": tensors,
    "outputs": (Tensor("out", ("rows", "cols")),),
    "reference": reference,
    "launch": _BLOCK_PER_ROW,
    "shapes": sizes.ROWS,
  }
  return Problem(**(record | more))


PROBLEMS = (
  _rows(
    "softmax",
    "Softmax of every row of the row-major matrix x[rows][cols]: out[r][c] = "
    "exp(x[r][c]) / (sum over k < cols of exp(x[r][k])). It must not overflow: "
    "subtract the largest element of the row before exp.",
    softmax,
  ),
  _rows(
    "log_softmax",
    "Logarithm of the softmax of every row of the row-major matrix "
    "x[rows][cols]: out[r][c] = x[r][c] - m - log(sum over k < cols of "
    "exp(x[r][k] - m)), where m is the largest element of row r.",
    log_softmax,
    # Not the small ones: -log(cols) alone would be near enough.
    distributions=("normal", "uniform", "negative", "integers", "large"),
  ),
  _rows(
    "layer_norm",
    "Layer normalisation of every row of the row-major matrix x[rows][cols]: "
    "with mean = (sum over c of x[r][c]) / cols and variance = (sum over c of "
    "(x[r][c] - mean)^2) / cols, out[r][c] = (x[r][c] - mean) / "
    "sqrt(variance + 1e-5) * gamma[c] + beta[c].",
    _layer_norm,
    (_MATRIX, _GAMMA, _BETA),
  ),
  _rows(
    "rms_norm",
    "RMS normalisation of every row of the row-major matrix x[rows][cols]: "
    "with mean_square = (sum over c of x[r][c]^2) / cols, out[r][c] = x[r][c] "
    "/ sqrt(mean_square + 1e-6) * gamma[c].",
    _rms_norm,
    (_MATRIX, _GAMMA),
  ),
  _rows(
    "l2_normalize",
    "Scales every row of the row-major matrix x[rows][cols] to length 1: "
    "out[r][c] = x[r][c] / sqrt((sum over k < cols of x[r][k]^2) + epsilon).",
    _l2_normalize,
    scalars=(Scalar("epsilon", (0.01, 0.5, 0.1, 1.0, 1e-5, 2.0, 0.25)),),
  ),
  _rows(
    "layer_norm_residual",
    "Adds a residual, then normalises, for the row-major matrices x and "
    "residual of shape [rows][cols]: total[r][c] = x[r][c] + residual[r][c]; "
    "with mean = (sum over c of total[r][c]) / cols and variance = (sum over c "
    "of (total[r][c] - mean)^2) / cols, out[r][c] = (total[r][c] - mean) / "
    "sqrt(variance + 1e-5) * gamma[c] + beta[c]. Both total and out are "
    "results.",
    _layer_norm_residual,
    (_MATRIX, Tensor("residual", ("rows", "cols")), _GAMMA, _BETA),
    level=3,
    outputs=(
      Tensor("total", ("rows", "cols")),
      Tensor("out", ("rows", "cols")),
    ),
  ),
)
