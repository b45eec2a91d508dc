"""Each problem is tested itself: its canonical kernel passes, shortcuts fail.

A shortcut is an output that needs no kernel. It must be wrong in at least one
case of every problem, or a policy will find it.
"""

import dataclasses
import functools
import pathlib
import re
import tempfile
from typing import NamedTuple

import numpy as np
import pytest

from kernels_eval import candidate as candidate_lib
from kernels_eval import correctness, dtypes, launch_plan, problems, sandbox
from kernels_eval import judge as judge_lib
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu import limits, toolchain
from kernels_eval.problems import spec
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings

CUDA = pathlib.Path(spec.__file__).parent / "cuda"
MAX_ELEMENTS = 20_000  # of a case: threads are fibres of one CPU

each_problem = pytest.mark.parametrize(
  "problem", problems.FAMILIES.values(), ids=lambda p: p.name
)
each_output = pytest.mark.parametrize(
  "problem, output",
  [
    pytest.param(p, output, id=f"{p.name}-{output.name}")
    for p in problems.FAMILIES.values()
    for output in p.outputs
  ],
)


class _CompileOnce(executor_lib.Executor):
  """Keeps what it compiled, so that another seed costs a run only."""

  def __init__(self, *args):
    super().__init__(*args)
    self._artefacts = {}

  def compile(self, candidate, problem, folder):
    if problem.name not in self._artefacts:
      kept = pathlib.Path(tempfile.mkdtemp(dir=self._root))
      self._artefacts[problem.name] = super().compile(candidate, problem, kept)
    return self._artefacts[problem.name]


@pytest.fixture(scope="module")
def other_judges():
  """Judges with other inputs than the `judge` fixture's, and one executor."""
  with tempfile.TemporaryDirectory() as root:
    executor = _CompileOnce(
      toolchain.prepare(),
      sandbox.probe(),
      pathlib.Path(root),
      Settings(run_cpu_s=2.0),
    )
    yield [judge_lib.Judge(executor, seed) for seed in (1, 2)]
    executor.close()


class Sample(NamedTuple):
  """A case with its inputs and its reference in both precisions."""

  case: spec.Case
  inputs: dict[str, np.ndarray]
  exact: dict[str, np.ndarray]
  single: dict[str, np.ndarray]


@functools.cache
def _samples(name, seed=0):
  problem = problems.get(name)
  samples = []
  for case in problem.cases:
    arrays = problem.make_inputs(case, seed)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
      exact = problem.expected(case, arrays)
      single = problem.expected(case, arrays, np.float32)
    samples.append(Sample(case, arrays, exact, single))
  return samples


def _is_wrong(problem, output, values, sample):
  """Whether these values, as the output holds them, fail in this case."""
  exact = sample.exact[output.name]
  with np.errstate(all="ignore"):  # what is out of range wraps or overflows
    stored = dtypes.DTYPES[output.dtype].encode(
      np.broadcast_to(values, exact.shape)
    )
  return _is_wrong_stored(problem, output, np.ascontiguousarray(stored), sample)


def _is_wrong_stored(problem, output, stored, sample):
  mismatch = correctness.compare(
    output.name,
    stored,
    sample.exact[output.name],
    sample.single[output.name],
    output.dtype,
    factor=problem.tolerance_factor,
  )
  return mismatch is not None


def _is_wrong_somewhere(problem, output, values_of):
  """Whether `values_of(sample)` fails in any case."""
  return any(
    _is_wrong(problem, output, values_of(sample), sample)
    for sample in _samples(problem.name)
  )


def _rms(x):
  return np.sqrt(np.mean(np.square(x)))


@each_problem
def test_canonical_kernel_passes(problem, check):
  evaluation = check(problem.name, problem.canonical)
  assert evaluation.status == Status.PASSED, evaluation


@each_problem
def test_canonical_kernel_passes_with_other_inputs(problem, other_judges):
  for judge in other_judges:
    request = Request("test", problem.name, problem.canonical)
    evaluation = judge.evaluate(request)
    assert evaluation.status == Status.PASSED, evaluation


@each_output
@pytest.mark.parametrize("number", [0.0, 1.0])
@pytest.mark.covers("P20")
def test_one_number_fails(problem, output, number):
  assert _is_wrong_somewhere(problem, output, lambda _: number)


@each_output
@pytest.mark.covers("P20")
def test_the_mean_of_all_cases_fails(problem, output):
  every = [s.exact[output.name].ravel() for s in _samples(problem.name)]
  mean = np.concatenate(every).mean()
  assert _is_wrong_somewhere(problem, output, lambda _: mean)


@each_output
def test_the_mean_of_each_case_fails(problem, output):
  if all(s.exact[output.name].size == 1 for s in _samples(problem.name)):
    return  # the mean of one number is that number
  assert _is_wrong_somewhere(
    problem, output, lambda s: s.exact[output.name].mean()
  )


@each_output
@pytest.mark.covers("P20")
def test_a_copy_of_an_input_fails(problem, output):
  """Cut to the output's size, or repeated."""
  for tensor in problem.inputs:

    def copy(sample, tensor=tensor):
      values = dtypes.DTYPES[tensor.dtype].decode(sample.inputs[tensor.name])
      return np.resize(values, sample.exact[output.name].shape)

    assert _is_wrong_somewhere(problem, output, copy), tensor.name


@each_output
@pytest.mark.covers("P21")
def test_an_unwritten_output_fails(problem, output):
  dtype = dtypes.DTYPES[output.dtype]
  outcomes = []
  for sample in _samples(problem.name):
    shape = sample.exact[output.name].shape
    num_bytes = np.prod(shape) * dtype.item_bytes
    poison = np.full(num_bytes, dtype.poison_byte, np.uint8)
    stored = poison.view(dtype.storage).reshape(shape)
    outcomes.append(_is_wrong_stored(problem, output, stored, sample))
  assert all(outcomes)


@pytest.mark.parametrize("dtype", dtypes.DTYPES.values(), ids=lambda d: d.name)
def test_only_what_was_not_written_counts_as_such(dtype):
  expected = np.zeros(4)
  poison = np.full(dtype.item_bytes, dtype.poison_byte, np.uint8)
  plausible = [1.0, 0.0] if dtype.is_float else [-1.0, 255.0]
  if dtype.name in ("int8", "uint8"):
    plausible = [-1.0 if dtype.name == "int8" else 255.0]
  for value in plausible:
    stored = np.full(4, dtype.encode(np.array(value)))
    stored[1] = poison.view(dtype.storage)[0]
    mismatch = correctness.compare(
      "out", stored, expected, expected, dtype.name
    )
    assert mismatch.num_unwritten == 1, value
    assert mismatch.num_wrong >= 1


def test_a_judge_says_which_integers_were_never_written(check):
  kernel = """__global__ void k(const float* x, int* out, int rows, int cols) {
    int row = blockIdx.x; if (threadIdx.x == 0 && %s) out[row] = -1; }"""
  every = check("row_argmax", kernel % "row >= 0")
  some = check("row_argmax", kernel % "row == 0")
  assert "never written" not in every.message
  assert every.mismatch.num_unwritten == 0
  none = check("row_argmax", kernel % "row < 0")
  assert none.mismatch.num_unwritten == none.mismatch.num_elements
  assert every.status == some.status == none.status == Status.WRONG_ANSWER


@each_problem
def test_every_input_matters(problem):
  """The answer for other values of one input is no answer."""
  samples, others = _samples(problem.name), _samples(problem.name, seed=1)
  for tensor in problem.inputs:
    outcomes = []
    for sample, other in zip(samples, others, strict=True):
      changed = sample.inputs | {tensor.name: other.inputs[tensor.name]}
      answer = problem.expected(sample.case, changed)
      outcomes += [
        _is_wrong(problem, output, answer[output.name], sample)
        for output in problem.outputs
      ]
    assert any(outcomes), tensor.name


@each_problem
def test_every_scalar_matters(problem):
  for scalar in problem.scalars:
    outcomes = []
    for sample in _samples(problem.name):
      scalars = dict(sample.case.scalars)
      scalars[scalar.name] *= 1.5
      changed = dataclasses.replace(sample.case, scalars=scalars)
      answer = problem.expected(changed, sample.inputs)
      outcomes += [
        _is_wrong(problem, output, answer[output.name], sample)
        for output in problem.outputs
      ]
    assert any(outcomes), scalar.name
    assert len({c.scalars[scalar.name] for c in problem.cases}) > 1


@each_problem
def test_references_are_finite_for_any_seed(problem):
  for seed in range(5):
    for sample in _samples(problem.name, seed):
      for name, values in sample.exact.items():
        assert np.isfinite(values).all(), (name, sample.case)


@each_output
def test_single_precision_term_is_small(problem, output):
  """`compare` forgives what the reference loses in float32. A problem that
  loses much there would forgive anything."""
  for sample in _samples(problem.name):
    exact, single = sample.exact[output.name], sample.single[output.name]
    assert 16 * _rms(single - exact) <= 1e-3 * _rms(exact), sample.case


@each_output
def test_rounding_to_half_fails(problem, output):
  """A silent loss of precision is no way to be fast."""
  if output.dtype not in ("float32", "float64"):
    return

  def rounded(sample):
    with np.errstate(over="ignore"):
      return sample.exact[output.name].astype(np.float16)

  assert _is_wrong_somewhere(problem, output, rounded)


def test_single_precision_fails_a_double_problem():
  problem = problems.get("double_axpy")
  (output,) = problem.outputs
  rounded = lambda sample: sample.exact["out"].astype(np.float32)
  assert _is_wrong_somewhere(problem, output, rounded)
  assert not _is_wrong_somewhere(problem, output, lambda s: s.exact["out"])


@each_output
@pytest.mark.covers("P20")
def test_integer_outputs_are_exact(problem, output):
  if dtypes.DTYPES[output.dtype].is_float:
    return
  for sample in _samples(problem.name):
    right = sample.exact[output.name]
    assert not _is_wrong(problem, output, right, sample)
    off_by_one = right.copy()
    off_by_one.flat[-1] += -1 if off_by_one.flat[-1] > 0 else 1
    assert _is_wrong(problem, output, off_by_one, sample)


@each_problem
def test_statement_names_every_parameter(problem):
  for name in launch_plan.parameter_names(problem):
    assert re.search(rf"\b{name}\b", problem.statement), name
  for index in re.findall(r"over ([a-z]) <", problem.statement):
    assert f"[{index}]" in problem.statement.replace(" ", ""), index
  assert re.fullmatch(r"[a-z][a-z0-9_]*", problem.name)
  assert problem.level in (1, 2, 3)


@each_problem
def test_shapes_are_small_and_odd_and_start_simple(problem):
  sizes = []
  for case in problem.cases:
    tensors = (*problem.inputs, *problem.outputs)
    sizes.append(sum(np.prod(t.shape_for(case.dims)) for t in tensors))
  assert len(problem.cases) >= 5
  assert max(sizes) <= MAX_ELEMENTS
  assert sizes[0] <= 100  # the first failure that a policy sees is a small one
  assert any(n % 2 for case in problem.cases for n in case.dims.values())


@each_problem
def test_default_launch_is_within_the_limits(problem):
  parsed = candidate_lib.parse("__global__ void k() {}", problem)
  for case in problem.cases:
    limits.plan_launch(parsed.launches[0], 0, case.dims, ())


def test_every_kernel_file_belongs_to_a_problem():
  assert {path.stem for path in CUDA.glob("*.cu")} == set(problems.FAMILIES)
