"""Element-wise problems: one output element from one element of each input."""

from kernels_eval.problems import inputs, sizes
from kernels_eval.problems.reference import gelu, sigmoid
from kernels_eval.problems.spec import Problem, Scalar, Tensor

_LAUNCH = "grid=(ceil_div(n, 256)) block=(256)"


def _map(name, statement, reference, tensors=("x",), **more):
  """A problem over vectors of n elements."""
  record = {
    "name": name,
    "level": 1,
    "statement": statement,
    "dims": ("n",),
    "inputs": tuple(
      Tensor(t, ("n",)) if isinstance(t, str) else t for t in tensors
    ),
    "outputs": (Tensor("out", ("n",)),),
    "reference": reference,
    "launch": _LAUNCH,
    "shapes": sizes.VECTOR,
  }
  return Problem(**(record | more))


def _mask(rng, shape, dims):
  """Not only 0 and 1: any other number selects too."""
  del dims
  return rng.choice([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, -1.0], shape)


PROBLEMS = (
  _map(
    "vector_add",
    "out[i] = x[i] + y[i] for every i < n.",
    lambda x, y: x + y,
    ("x", "y"),
  ),
  _map(
    "axpy",
    "out[i] = alpha * x[i] + y[i] for every i < n.",
    lambda x, y, alpha: alpha * x + y,
    ("x", "y"),
    scalars=(Scalar("alpha", (2.0, -0.75, 3.5, -1.0, 0.3, 1.25, 0.6)),),
  ),
  _map(
    "relu",
    "Rectifier: out[i] = max(x[i], 0) for every i < n.",
    lambda x, xp: xp.maximum(x, 0),
  ),
  _map(
    "leaky_relu",
    "Leaky rectifier: for every i < n, out[i] = x[i] if x[i] > 0, and "
    "out[i] = slope * x[i] otherwise.",
    lambda x, slope, xp: xp.where(x > 0, x, slope * x),
    scalars=(Scalar("slope", (0.01, 0.2, 0.05, 0.3, 0.1, 0.02, 0.25)),),
  ),
  _map(
    "gelu",
    "GELU in its tanh form, for every i < n: out[i] = 0.5 * x[i] * (1 + "
    "tanh(0.7978845608 * (x[i] + 0.044715 * x[i]^3))).",
    gelu,
  ),
  _map(
    "silu",
    "SiLU (swish): out[i] = x[i] / (1 + exp(-x[i])) for every i < n.",
    lambda x, xp: x * sigmoid(x, xp),
  ),
  _map(
    "sigmoid",
    "Logistic function: out[i] = 1 / (1 + exp(-x[i])) for every i < n.",
    sigmoid,
  ),
  _map(
    "clamp",
    "out[i] = min(max(x[i], low), high) for every i < n, where low < high.",
    lambda x, low, high, xp: xp.clip(x, low, high),
    scalars=(  # in step with the distributions, so that both bounds bite
      Scalar("low", (-0.5, -0.25, -1.5, -2.0, -0.0005, -10.0, -0.8)),
      Scalar("high", (0.7, 1.0, -0.3, 3.0, 0.001, 25.0, 1.1)),
    ),
  ),
  _map(
    "multiply_add",
    "out[i] = x[i] * y[i] + z[i] for every i < n.",
    lambda x, y, z: x * y + z,
    ("x", "y", "z"),
  ),
  _map(
    "select",
    "For every i < n, out[i] = x[i] where mask[i] is not 0 (any other number, "
    "negative ones too, counts as true) and out[i] = y[i] where it is 0.",
    lambda mask, x, y, xp: xp.where(mask != 0, x, y),
    (Tensor("mask", ("n",), "int32", fill=_mask), "x", "y"),
  ),
  _map(
    "polynomial",
    "A cubic at every element: out[i] = 1 - 0.5 * x[i] + 0.25 * x[i]^2 - 0.125 "
    "* x[i]^3 for every i < n.",
    lambda x: 1 + x * (-0.5 + x * (0.25 + x * -0.125)),
  ),
  _map(
    "reciprocal_sqrt",
    "out[i] = 1 / sqrt(x[i] + epsilon) for every i < n; every x[i] and epsilon "
    "are positive.",
    lambda x, epsilon, xp: 1 / xp.sqrt(x + epsilon),
    scalars=(Scalar("epsilon", (0.001, 0.01, 0.5, 0.1, 0.25, 0.03, 1.0)),),
    distributions=inputs.POSITIVE,
  ),
  _map(
    "quantize_int8",
    "Quantisation to 8 bits: out[i] = x[i] / scale, rounded to the nearest "
    "whole number (halves to the even one) and then limited to -128 ... 127, "
    "for every i < n. scale is a power of two.",
    lambda x, scale, xp: xp.clip(xp.rint(x / scale), -128, 127),
    outputs=(Tensor("out", ("n",), "int8"),),
    # In step with the distributions: some values saturate, whole numbers give
    # halves. Powers of two divide exactly, so no rounding is in doubt.
    scalars=(
      Scalar("scale", (2**-5, 2**-6, 2**-6, 2.0, 2**-15, 2**-2, 2**-6)),
    ),
  ),
  _map(
    "hard_swish",
    "Hard swish: out[i] = x[i] * min(max(x[i] + 3, 0), 6) / 6 for every i < n.",
    lambda x, xp: x * xp.clip(x + 3, 0, 6) / 6,
  ),
)
