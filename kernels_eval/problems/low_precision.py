"""Problems in other types than float32: half, bfloat16, double, bytes."""

import numpy as np

from kernels_eval.problems import flops, inputs, sizes
from kernels_eval.problems.reference import gelu
from kernels_eval.problems.spec import Problem, Scalar, Tensor

_LAUNCH = "grid=(ceil_div(n, 256)) block=(256)"
_ALPHA = Scalar("alpha", (2.0, -0.75, 3.5, -1.0, 0.3, 1.25, 0.6))


def _int8(rng, shape, dims):
  del dims
  return rng.integers(-128, 128, shape).astype(np.float64)


def _uint8(rng, shape, dims):
  del dims
  return rng.integers(0, 256, shape).astype(np.float64)


def _quantized_matvec(weight, scale, x):
  return scale * (weight.astype(x.dtype) @ x)


def _rgb_to_gray(rgb):
  return 0.299 * rgb[:, 0] + 0.587 * rgb[:, 1] + 0.114 * rgb[:, 2]


PROBLEMS = (
  Problem(
    name="half_add",
    level=1,
    statement="Addition in half precision: out[i] = x[i] + y[i] for every "
    "i < n. x, y and out hold __half.",
    dims=("n",),
    inputs=(Tensor("x", ("n",), "float16"), Tensor("y", ("n",), "float16")),
    outputs=(Tensor("out", ("n",), "float16"),),
    reference=lambda x, y: x + y,
    launch=_LAUNCH,
    shapes=sizes.VECTOR,
  ),
  Problem(
    name="half_gelu",
    level=1,
    statement="GELU in its tanh form on half precision: out[i] = 0.5 * x[i] * "
    "(1 + tanh(0.7978845608 * (x[i] + 0.044715 * x[i]^3))) for every i < n. x "
    "and out hold __half; work in float and round once at the end.",
    dims=("n",),
    inputs=(Tensor("x", ("n",), "float16"),),
    outputs=(Tensor("out", ("n",), "float16"),),
    reference=gelu,
    launch=_LAUNCH,
    shapes=sizes.VECTOR,
  ),
  Problem(
    name="half_row_sum",
    level=2,
    statement="Sum of every row of the row-major matrix x[rows][cols] in half "
    "precision: out[r] = sum over c < cols of x[r][c]. x and out hold __half; "
    "add up in float and round once at the end, since sums in half lose too "
    "much.",
    dims=("rows", "cols"),
    inputs=(Tensor("x", ("rows", "cols"), "float16"),),
    outputs=(Tensor("out", ("rows",), "float16"),),
    reference=lambda x: x.sum(axis=1),
    launch="grid=(rows) block=(256)",
    shapes=sizes.of(
      "rows cols",
      (1, 1),
      (3, 7),
      (4, 1500),
      (33, 3),
      (2, 257),
      (9, 130),
      (5, 1024),
    ),
  ),
  Problem(
    name="bfloat16_scale",
    level=1,
    statement="Scales a vector in bfloat16: out[i] = alpha * x[i] for every "
    "i < n. x and out hold __nv_bfloat16, alpha is a float; multiply in float "
    "and round once.",
    dims=("n",),
    inputs=(Tensor("x", ("n",), "bfloat16"),),
    outputs=(Tensor("out", ("n",), "bfloat16"),),
    reference=lambda x, alpha: alpha * x,
    launch=_LAUNCH,
    shapes=sizes.VECTOR,
    scalars=(_ALPHA,),
  ),
  Problem(
    name="half_matmul",
    level=3,
    statement="Matrix product in half precision: out[i][j] = sum over t < k of "
    "a[i][t] * b[t][j] for i < m and j < n. a[m][k], b[k][n] and out[m][n] are "
    "row-major and hold __half; add up in float and round once at the end.",
    dims=("m", "n", "k"),
    inputs=(
      Tensor("a", ("m", "k"), "float16"),
      Tensor("b", ("k", "n"), "float16"),
    ),
    outputs=(Tensor("out", ("m", "n"), "float16"),),
    reference=lambda a, b: a @ b,
    least_flops=flops.product,
    launch="grid=(ceil_div(n, 16), ceil_div(m, 16)) block=(16, 16)",
    shapes=sizes.of(
      "m n k",
      (1, 1, 1),
      (5, 3, 7),
      (16, 16, 16),
      (33, 17, 65),
      (1, 40, 300),
      (31, 1, 130),
    ),
    # Products of small inputs would leave the range in which half is exact.
    distributions=("normal", "uniform", "negative", "integers"),
  ),
  Problem(
    name="double_axpy",
    level=1,
    statement="axpy in double precision: out[i] = alpha * x[i] + y[i] for "
    "every i < n. x, y and out hold double, alpha is a float; every step is in "
    "double.",
    dims=("n",),
    inputs=(Tensor("x", ("n",), "float64"), Tensor("y", ("n",), "float64")),
    outputs=(Tensor("out", ("n",), "float64"),),
    reference=lambda x, y, alpha: alpha * x + y,
    launch=_LAUNCH,
    shapes=sizes.VECTOR,
    scalars=(_ALPHA,),
  ),
  Problem(
    name="quantized_matvec",
    level=3,
    statement="A matrix of 8-bit weights times a vector: out[r] = scale[r] * "
    "(sum over c < cols of weight[r][c] * x[c]) for every r < rows. "
    "weight[rows][cols] is row-major and holds signed 8-bit whole numbers; "
    "scale, x and out are float.",
    dims=("rows", "cols"),
    inputs=(
      Tensor("weight", ("rows", "cols"), "int8", fill=_int8),
      Tensor("scale", ("rows",), fill=inputs.distribution("positive")),
      Tensor("x", ("cols",)),
    ),
    outputs=(Tensor("out", ("rows",)),),
    reference=_quantized_matvec,
    launch="grid=(rows) block=(128)",
    shapes=sizes.of(
      "rows cols",
      (1, 1),
      (3, 7),
      (16, 64),
      (130, 3),
      (7, 257),
      (40, 132),
      (5, 1001),
    ),
  ),
  Problem(
    name="rgb_to_gray",
    level=1,
    statement="Brightness of n pixels: out[i] = 0.299 * red + 0.587 * green + "
    "0.114 * blue, where rgb[n][3] holds red, green and blue of each pixel one "
    "after the other, as unsigned bytes from 0 to 255, and out is float.",
    dims=("n",),
    inputs=(Tensor("rgb", ("n", "3"), "uint8", fill=_uint8),),
    outputs=(Tensor("out", ("n",)),),
    reference=_rgb_to_gray,
    launch=_LAUNCH,
    shapes=sizes.VECTOR,
    distributions=("integers",),
  ),
)
