"""The floor under measured times, and what its argument rests on."""

import dataclasses
import inspect
import re

import msgspec
import numpy as np
import pytest

from kernels_eval import correctness, dtypes, problems, report
from kernels_eval.cuda import floor, jobs
from kernels_eval.problems import flops, spec, timing_inputs, timing_sizes
from kernels_eval.schema import Evaluation, Phase, Status, Timing

H200 = jobs.Hello("NVIDIA H200", (9, 0), "0", 232448, 132, 4.8e12, 2**37)
UNKNOWN = msgspec.structs.replace(H200, device="a GPU")
# Operations of the textbook's algorithm.
TEXTBOOK = {
  "matmul": lambda m, n, k: 2 * m * n * k,
  "matmul_transposed": lambda m, n, k: 2 * m * n * k,
  "matmul_bias_relu": lambda m, n, k: 2 * m * n * k,
  "half_matmul": lambda m, n, k: 2 * m * n * k,
  "batched_matmul": lambda batch, m, n, k: 2 * batch * m * n * k,
  "gram": lambda rows, cols: 2 * rows * cols * cols,
  "attention": lambda queries, keys, dim: 4 * queries * keys * dim,
  "causal_attention": lambda n, dim: 2 * n * (n + 1) * dim,
  "swiglu": lambda rows, inner, hidden: 4 * rows * inner * hidden,
  "conv2d_3x3": lambda filters, channels, height, width: (
    18 * filters * channels * height * width
  ),
}
# One operation or two for each element that is read, or (conv1d) few enough
# with a Fourier transform.
_LINEAR = {"matvec", "quantized_matvec", "conv1d"}
_FEW_DIMS = {
  **{d: 256 for d in ("m", "n", "k", "keys", "queries", "rows", "cols")},
  **{d: 96 for d in ("inner", "hidden", "dim")},
  **{d: 24 for d in ("batch", "filters", "channels", "height", "width")},
}


def test_every_product_of_matrices_states_its_arithmetic():
  stated = {n for n, p in problems.FAMILIES.items() if p.least_flops}
  assert stated == set(TEXTBOOK)
  multiplying = {
    name
    for name, p in problems.FAMILIES.items()
    if re.search(r"[\w)] @ |einsum|correlate", inspect.getsource(p.reference))
  }
  multiplying.add("causal_attention")
  assert multiplying - _LINEAR == stated


@pytest.mark.parametrize("name", sorted(TEXTBOOK))
def test_no_more_arithmetic_is_asked_for_than_there_is(name):
  problem = problems.get(name)
  for dims in (timing_sizes.dims_for(problem), *problem.shapes):
    least = problem.least_flops(**dims)
    assert 0 < least <= TEXTBOOK[name](**dims)
  # Fast algorithms take something off, symmetry and masks at most one half
  # more; of a convolution one ninth is left.
  dims = timing_sizes.dims_for(problem)
  share = problem.least_flops(**dims) / TEXTBOOK[name](**dims)
  assert share > (0.1 if name == "conv2d_3x3" else 0.24)


def test_strassen_is_not_convicted():
  for halvings in range(8):
    n = 64 * 2**halvings
    strassen = 2 * 64**3 * 7**halvings
    assert flops.product(n, n, n) <= strassen
    # The thinnest side says how often.
    assert flops.product(n, 64, n) == 2 * n * n * 64
  # Nor down to a tensor core's blocks of 16, if its additions cost nothing.
  assert 0.8 * flops.product(1024, 1024, 1024) < 2 * 16**3 * 7**6


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_every_problem_has_a_floor(name):
  problem = problems.get(name)
  dims = timing_sizes.dims_for(problem)
  memory = floor.of(problem, dims, UNKNOWN)
  assert memory.note == floor.MEMORY and 0 < memory.ms < 1.0
  both = floor.of(problem, dims, H200)
  assert both.ms >= memory.ms
  assert both.note in (
    (floor.MEMORY, floor.ARITHMETIC) if problem.least_flops else (floor.MEMORY,)
  )


def test_figures_of_a_product():
  problem = problems.get("matmul")
  dims = {"m": 1024, "n": 1024, "k": 1024}
  # One half of 2 * 1024^3, as two products of halves at 989.5 TFLOP/s.
  found = floor.of(problem, dims, H200)
  assert found.note == floor.ARITHMETIC
  np.testing.assert_allclose(found.ms, 1e3 * 2 * 1024**3 / 989.5e12)
  one = floor.of(problems.get("half_matmul"), dims, H200)
  np.testing.assert_allclose(one.ms, found.ms / 2)
  lenient = dataclasses.replace(problem, tolerance_factor=8.0)
  assert floor.of(lenient, dims, H200).note == floor.MEMORY


def test_without_a_bandwidth_there_is_what_else_there_is():
  silent = msgspec.structs.replace(H200, bandwidth_bytes_per_s=0.0)
  relu, matmul = problems.get("relu"), problems.get("matmul")
  none = floor.of(relu, {"n": 1024}, silent)
  assert none.ms is None and "no bandwidth of NVIDIA H200" in none.note
  found = floor.of(matmul, {"m": 64, "n": 64, "k": 64}, silent)
  assert found.note == floor.ARITHMETIC


def _rounded_to_half(x):
  return x.astype(np.float16).astype(np.float64)


def _rounded_to_bytes(x):
  step = np.abs(x).max() / 127
  return np.rint(x / step) * step


_LESS_PRECISE = {"float32": _rounded_to_half, "float16": _rounded_to_bytes}


@pytest.mark.parametrize("name", sorted(TEXTBOOK))
def test_one_product_in_less_precision_is_no_right_answer(name):
  """On the inputs of timed calls: what `floor.py` takes for granted."""
  problem = problems.get(name)
  timed = timing_inputs.case_for(problem, timing_sizes.dims_for(problem))
  assert timed.distribution == "normal"
  dims = {d: _FEW_DIMS[d] for d in problem.dims}
  case = spec.Case(0, dims, timed.distribution, timed.scalars)
  arrays = problem.make_inputs(case, 0)
  (dtype_name,) = {t.dtype for t in (*problem.inputs, *problem.outputs)}
  dtype = dtypes.DTYPES[dtype_name]
  rounded = {
    k: dtype.encode(_LESS_PRECISE[dtype_name](dtype.decode(v)))
    for k, v in arrays.items()
  }
  exact = problem.expected(case, arrays)["out"]
  single = problem.expected(case, arrays, np.float32)["out"]
  less = problem.expected(case, rounded)["out"]
  compare = lambda got: correctness.compare(
    "out",
    dtype.encode(got),
    exact,
    single,
    dtype_name,
    factor=problem.tolerance_factor,
  )
  assert compare(exact) is None
  assert compare(less) is not None


def _report(floor_ms, note):
  timing = Timing(
    "n=1", 2.0, 3.0, 0.01, 0.01, 20, floor_ms, "canonical", "", "", note
  )
  evaluation = Evaluation(
    "a", "relu", Status.PASSED, Phase.TIME, "right", "cuda",
    candidate_ms=2.0, reference_ms=3.0, timing=timing,
  )  # fmt: skip
  return report.render(evaluation, "", colour=False)


def test_the_report_says_how_near_the_roofline_is():
  said = _report(0.5, floor.ARITHMETIC)
  assert "floor 0.5 ms (arithmetic), 25.0 % of the roofline; 20 calls" in said
  said = _report(None, "the driver gives no bandwidth of a GPU")
  assert "no floor: the driver gives no bandwidth of a GPU; 20 calls" in said
