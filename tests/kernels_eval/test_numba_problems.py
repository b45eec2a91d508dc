"""Numba solutions of every problem, and shortcuts that must fail."""

import pathlib
import re

import numpy as np
import pytest

from kernels_eval import problems
from kernels_eval.problems import composer, spec
from kernels_eval.schema import Status

_FOLDER = pathlib.Path(spec.__file__).parent / "numba"


@pytest.mark.parametrize("name", problems.FAMILIES)
def test_canonical_solution_passes(check, name):
  answer = check(name, problems.get(name).numba_canonical)
  assert answer.status == Status.PASSED, answer.message
  assert answer.executor == "numba-ir"


def test_every_file_belongs_to_a_problem():
  assert {p.stem for p in _FOLDER.glob("*.py")} == set(problems.FAMILIES)


def _filling(problem, value):
  """A module that writes one value to every element of every output."""
  lines = ["from numba import cuda"]
  for tensor in problem.outputs:
    ndim = len(tensor.shape)
    index = ", ".join(
      "i"
      + "".join(f" // out.shape[{b}]" for b in range(ndim - 1, a, -1))
      + (f" % out.shape[{a}]" if a else "")
      for a in range(ndim)
    )
    lines += [
      f"# launch: fill_{tensor.name} grid=(1) block=(256) args=({tensor.name})",
      "@cuda.jit",
      f"def fill_{tensor.name}(out):",
      "  for i in range(cuda.threadIdx.x, out.size, 256):",
      f"    out[{index}] = {value}",
    ]
  return "\n".join(lines) + "\n"


# One of each dtype and number of dimensions; for all problems the shortcuts are
# held against the reference in test_problems.py.
_SHAPES = (
  *("vector_add", "softmax", "max_pool_2d", "layer_norm_residual", "histogram"),
  *("quantize_int8", "half_add", "bfloat16_scale", "double_axpy"),
)


@pytest.mark.parametrize("value", (0, 1))
@pytest.mark.parametrize("name", _SHAPES)
def test_a_constant_is_wrong(check, name, value):
  answer = check(name, _filling(problems.get(name), value))
  assert answer.status == Status.WRONG_ANSWER, answer.message


_BARRIER = re.compile(r"^ *cuda\.syncthreads\(\)\n", re.M)


@pytest.mark.parametrize(
  "name", ("matmul", "row_cumsum", "transpose", "stencil_1d", "attention")
)
def test_a_missing_barrier_is_found(check, name):
  text = problems.get(name).numba_canonical
  for barrier in _BARRIER.finditer(text):
    answer = check(name, text[: barrier.start()] + text[barrier.end() :])
    assert answer.status == Status.RUNTIME_ERROR, answer.message
    assert answer.finding.kind in ("data_race", "uninitialized_read")
    assert answer.finding.line


@pytest.mark.parametrize("reduction", (None, *composer.REDUCTIONS))
def test_compositions_have_a_numba_solution(check, reduction):
  """Every operator is in one of the two chains."""
  names = list(composer.OPERATORS)
  for operators in (names[0::3], names[1::3], names[2::3]):
    name = composer.join_name(operators[: composer.MAX_OPERATORS], reduction)
    answer = check(name, problems.get(name).numba_canonical)
    assert answer.status == Status.PASSED, (name, answer.message)


def test_drawn_compositions_have_a_numba_solution(check):
  rng = np.random.default_rng(3)
  for _ in range(6):
    name = composer.sample(rng, int(rng.integers(1, 6)), 0.5)
    answer = check(name, problems.get(name).numba_canonical)
    assert answer.status == Status.PASSED, (name, answer.message)
