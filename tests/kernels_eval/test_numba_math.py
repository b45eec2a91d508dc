"""What mathematics means in Numba kernels on the CPU: Python's functions,
libdevice, whole numbers, half precision."""

import math

import numpy as np
import pytest

from tests.kernels_eval.numba_texts import kernel, per_thread

_MATHS = (
  *("sin", "cos", "exp", "tanh", "atan", "sinh", "expm1", "erf", "floor"),
  *("ceil", "trunc", "fabs", "asinh", "erfc"),
)


@pytest.mark.parametrize("name", _MATHS)
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_python_s_mathematics(lab, name, dtype):
  x = np.linspace(-3, 3, 32).astype(dtype)
  text = per_thread(f"math.{name}(x[t])", parameters="x, out")
  got = lab.out(text, np.dtype(dtype).name, inputs={"x": x})
  want = [getattr(math, name)(float(v)) for v in x]
  np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


_LIBDEVICE = {  # over x = 0.5, 1.5, ...
  "rsqrtf(x[t])": lambda x: 1 / np.sqrt(x),
  "fast_expf(x[t] / float32(8))": lambda x: np.exp(x / 8),
  "fmaf(x[t], x[t], float32(1))": lambda x: x * x + 1,
  "exp10f(x[t] / float32(16))": lambda x: 10 ** (x / 16),
  "hypotf(x[t], float32(3))": lambda x: np.hypot(x, 3),
  "powf(x[t], float32(1.5))": lambda x: x**1.5,
  "float2int_rn(x[t])": np.rint,
  "float2int_ru(x[t])": np.ceil,
  "saturatef(x[t] - float32(1))": lambda x: np.clip(x - 1, 0, 1),
  "popc(int32(x[t]))": lambda x: np.vectorize(lambda v: bin(int(v)).count("1"))(
    x
  ),
  "clz(int32(x[t]))": lambda x: (
    32 - np.vectorize(lambda v: int(v).bit_length())(x)
  ),
  "mulhi(int32(x[t]), 1 << 30)": lambda x: np.trunc(x) // 4,
  "int_as_float(libdevice.float_as_int(x[t]))": lambda x: x,
  "sincosf(x[t])[1]": np.cos,
  "frexpf(x[t])[0]": lambda x: np.frexp(x)[0],
}


@pytest.mark.parametrize("call", _LIBDEVICE)
def test_libdevice(lab, call):
  x = np.arange(32, dtype=np.float32) + np.float32(0.5)
  text = per_thread(f"libdevice.{call}", parameters="x, out")
  got = lab.out(text, inputs={"x": x})
  want = _LIBDEVICE[call](x.astype(np.float64))
  np.testing.assert_allclose(got, want, rtol=2e-6)


_INTEGERS = {
  "cuda.popc(t)": [bin(i).count("1") for i in range(32)],
  "cuda.brev(uint32(t))": [int(f"{i:032b}"[::-1], 2) for i in range(32)],
  "cuda.clz(int32(t))": [32 - i.bit_length() for i in range(32)],
  "cuda.ffs(int32(t))": [(i & -i).bit_length() for i in range(32)],
  "cuda.selp(t > 3, 1, 2)": [1 if i > 3 else 2 for i in range(32)],
  "(t - 16) // 3": [(i - 16) // 3 for i in range(32)],  # floors, as Python
  "(t - 16) % 3": [(i - 16) % 3 for i in range(32)],
  "t ** 2": [i * i for i in range(32)],
  "(int32(2147483647) + int32(t)) & 7": [(i - 1) & 7 for i in range(32)],
}


@pytest.mark.parametrize("expression", _INTEGERS)
def test_integers(lab, expression):
  got = lab.out(per_thread(expression), "int64")
  np.testing.assert_array_equal(got, _INTEGERS[expression])


def test_half_precision(lab):
  x = np.array([1.5, -2.25, 0.1, 100, 0, 65504, 1e-6, 3] * 4, np.float16)
  body = """
t = cuda.threadIdx.x
v = x[t]
w = v * v - v
if w > np.float16(2):
  w = -w
out[t] = abs(w) + v / np.float16(3)
"""
  got = lab.out(kernel(body, "x, out"), "float16", inputs={"x": x})
  with np.errstate(over="ignore"):
    w = x * x - x
    want = np.abs(w) + x / np.float16(3)
  np.testing.assert_array_equal(got, want)


def test_half_converts_to_and_from_everything(lab):
  x = np.linspace(-8, 8, 32).astype(np.float16)
  body = """
t = cuda.threadIdx.x
out[t] = float64(x[t]) + 10 * float32(np.float16(t)) + 1000 * int32(x[t])
"""
  got = lab.out(kernel(body, "x, out"), "float64", inputs={"x": x})
  want = x.astype(np.float64) + 10 * np.arange(32) + 1000 * np.rint(x)
  np.testing.assert_array_equal(got, want)
