"""The judge's comparison itself, with outputs that are wrong in one place.

No kernel runs: outputs are the reference's, in stored form, then changed in one
element of one output of one case. For rows 18 to 20, 27, 29 to 32 and 35 of the
catalogue.
"""

import functools

import hypothesis
import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st

from kernels_eval import correctness, dtypes, problems
from kernels_eval import verdict as verdict_lib
from kernels_eval.cpu.executor import Buffers, RunResult
from kernels_eval.outcome import Stop
from kernels_eval.schema import Mismatch, Status

_NOT_FINITE = (np.nan, np.inf, -np.inf)

each_problem = pytest.mark.parametrize(
  "problem", problems.FAMILIES.values(), ids=lambda p: p.name
)


@functools.cache
def _prepared(name):
  return verdict_lib.Prepared(problems.get(name), seed=0)


def _right_result(prepared):
  """What a perfect kernel would leave behind."""
  problem = prepared.problem
  outputs, inputs = [], []
  for _, arrays, exact, _ in prepared.cases:
    outputs.append(
      {
        t.name: dtypes.DTYPES[t.dtype].encode(exact[t.name]).copy()
        for t in problem.outputs
      }
    )
    inputs.append({t.name: arrays[t.name].copy() for t in problem.inputs})
  return Buffers(outputs, inputs)


def _verdict(prepared, *passes):
  """What the judge says of these arrays, as bytes like those of a run: a Stop,
  or None where all is right."""
  as_bytes = lambda arrays: {
    k: v.reshape(-1).view(np.uint8) for k, v in arrays.items()
  }
  run = RunResult(
    tuple(
      Buffers([as_bytes(o) for o in p.outputs], [as_bytes(i) for i in p.inputs])
      for p in passes
    ),
    0,
    "",
  )
  try:
    verdict_lib.check_result(run, prepared)
  except Stop as stop:
    return stop
  return None


def _places(problem, prepared):
  """(case, output, its array's size) of everything that is compared."""
  for k, (case, *_) in enumerate(prepared.cases):
    for tensor in problem.outputs:
      yield k, tensor, int(np.prod(tensor.shape_for(case.dims)))


def _wrong_value(dtype, values, index):
  """The element, changed by more than any tolerance; near others' size."""
  value = values[index]
  if dtype.is_float:
    decoded = dtype.decode(values)
    step = np.abs(decoded[index]) + np.sqrt(np.mean(decoded**2)) + 1e-3
    return dtype.encode(decoded[index : index + 1] + step)[0]
  return value + 1 if value < np.iinfo(dtype.storage).max else value - 1


@each_problem
def test_the_reference_itself_is_right(problem):
  prepared = _prepared(problem.name)
  assert _verdict(prepared, _right_result(prepared)) is None


@each_problem
def test_one_wrong_element_of_any_output_of_any_case(problem):
  """Row 31 and 32: nothing is left out, and the first to be wrong is named."""
  prepared = _prepared(problem.name)
  rng = np.random.default_rng(0)
  for k, tensor, size in _places(problem, prepared):
    dtype = dtypes.DTYPES[tensor.dtype]
    result = _right_result(prepared)
    flat = result.outputs[k][tensor.name].reshape(-1)
    index = int(rng.integers(size))
    flat[index] = _wrong_value(dtype, flat, index)
    verdict = _verdict(prepared, result)
    place = (str(prepared.cases[k][0]), tensor.name, index)
    assert verdict is not None and verdict.status == Status.WRONG_ANSWER, place
    assert verdict.case is prepared.cases[k][0]
    mismatch = verdict.mismatch
    assert mismatch.output == tensor.name
    assert (mismatch.num_wrong, mismatch.num_elements) == (1, size), place
    shape = tensor.shape_for(prepared.cases[k][0].dims)
    assert mismatch.first_wrong_index == np.unravel_index(index, shape)
    # The second run of a case counts like the first.
    again = _verdict(prepared, _right_result(prepared), result)
    assert again is not None and again.mismatch == mismatch


@each_problem
def test_one_element_that_is_not_finite(problem):
  """Rows 27 and 30: NaN is no joker and infinity no match."""
  prepared = _prepared(problem.name)
  rng = np.random.default_rng(1)
  for k, tensor, size in _places(problem, prepared):
    dtype = dtypes.DTYPES[tensor.dtype]
    if not dtype.is_float:
      continue
    result = _right_result(prepared)
    index = int(rng.integers(size))
    value = _NOT_FINITE[k % 3]
    result.outputs[k][tensor.name].reshape(-1)[index] = dtype.encode(
      np.array([value])
    )[0]
    verdict = _verdict(prepared, result)
    assert verdict.status == Status.WRONG_ANSWER
    assert verdict.mismatch.num_not_finite == 1


@each_problem
def test_one_changed_byte_of_any_input_of_any_case(problem):
  """Row 17, although every output is right."""
  prepared = _prepared(problem.name)
  rng = np.random.default_rng(2)
  for k in range(len(prepared.cases)):
    for tensor in problem.inputs:
      result = _right_result(prepared)
      changed = result.inputs[k][tensor.name].reshape(-1).view(np.uint8)
      changed[rng.integers(changed.size)] ^= 1
      verdict = _verdict(prepared, result)
      assert verdict.status == Status.INTEGRITY_VIOLATION
      assert verdict.case is prepared.cases[k][0]
      assert f"`{tensor.name}`" in verdict.message


def _compare(got, expected, dtype="float32"):
  expected = np.asarray(expected, np.float64)
  return correctness.compare("out", got, expected, expected, dtype)


@hypothesis.given(
  size=st.integers(1, 300),
  place=st.integers(0, 299),
  scale=st.floats(1e-6, 1e6),
  value=st.sampled_from(_NOT_FINITE),
  seed=st.integers(0, 100),
)
@hypothesis.settings(max_examples=200, deadline=None)
def test_any_place_and_any_scale(size, place, scale, value, seed):
  place %= size
  rng = np.random.default_rng(seed)
  expected = scale * rng.standard_normal(size)
  got = expected.astype(np.float32)
  assert _compare(got, expected) is None
  rms = np.sqrt(np.mean(expected**2))
  for wrong in (got[place] + np.float32(1e-2 * rms), value):
    changed = got.copy()
    changed[place] = wrong
    # One in a hundred of the RMS is beyond 1e-4 of the value only if the
    # value is not a hundred times the RMS, which no element of 300 can be.
    mismatch = _compare(changed, expected)
    assert mismatch is not None
    assert mismatch.first_wrong_index == (place,)
    assert mismatch.num_wrong == 1


@pytest.mark.parametrize("fraction", [0.0, 1e-3, 0.5])
def test_no_ratio_of_wrong_elements_is_forgiven(fraction):
  """Row 31."""
  rng = np.random.default_rng(0)
  expected = rng.standard_normal(10_000)
  got = expected.astype(np.float32)
  count = max(1, int(fraction * got.size))
  got[-count:] += 0.1
  mismatch = _compare(got, expected)
  assert mismatch.num_wrong == count
  assert mismatch.first_wrong_index == (got.size - count,)


def test_zeros_fail_however_small_the_outputs_are():
  """Rows 18 and 19: a softmax over 393 216 columns, at most 4e-5."""
  x = np.random.default_rng(0).standard_normal(393_216)
  exact = np.exp(x - x.max())
  exact /= exact.sum()
  zeros = np.zeros(exact.shape, np.float32)
  assert _compare(zeros, exact).num_wrong > 0.99 * exact.size
  mean = np.full(exact.shape, exact.mean(), np.float32)
  assert _compare(mean, exact) is not None
  assert _compare(exact.astype(np.float32), exact) is None


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (5,), (4, 1), (1, 4)])
def test_other_shapes_are_no_answer(shape):
  """Row 29: nothing is broadcast, nothing zipped."""
  with pytest.raises(ValueError, match="shape"):
    _compare(np.zeros(shape, np.float32), np.zeros(4))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_huge_numbers_are_wrong_without_a_warning(dtype):
  """Squares of what a kernel writes may overflow."""
  kind = dtypes.DTYPES[dtype]
  largest = {"float16": 65504.0, "float64": 1.7e308}.get(dtype, 3e38)
  for value in (largest, -largest):
    got = kind.encode(np.full(8, value))
    mismatch = _compare(got, np.linspace(1, 2, 8), dtype)
    assert mismatch.num_wrong == 8
    assert mismatch.got == pytest.approx(value, rel=1e-2)


def test_a_drift_of_all_elements_is_wrong():
  """Every element within its own bound, the whole beyond that of the RMS."""
  rng = np.random.default_rng(0)
  expected = rng.standard_normal(10_000)
  got = (expected * (1 + 9e-5)).astype(np.float32)
  assert (np.abs(got - expected) <= 1e-4 * np.abs(expected) + 2e-5).all()
  assert _compare(got, expected) is not None
  assert _compare((expected * (1 + 1e-5)).astype(np.float32), expected) is None


def _to_tensor_float(values):
  """Rounded to the 11 bits of a factor in a tensor core."""
  bits = values.astype(np.float32).view(np.uint32)
  return ((bits + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)


@each_problem
def test_inputs_with_fewer_bits_give_no_right_answer(problem):
  """Row 23, for every problem whose outputs are not places or counts."""
  floats = [t.name for t in problem.inputs if t.dtype == "float32"]
  if not floats or not dtypes.DTYPES[problem.outputs[0].dtype].is_float:
    return
  prepared = _prepared(problem.name)
  result = _right_result(prepared)
  for k, (case, arrays, _, _) in enumerate(prepared.cases):
    rounded = arrays | {n: _to_tensor_float(arrays[n]) for n in floats}
    answer = problem.expected(case, rounded)
    for t in problem.outputs:
      result.outputs[k][t.name] = dtypes.DTYPES[t.dtype].encode(answer[t.name])
  assert _verdict(prepared, result).status == Status.WRONG_ANSWER


@hypothesis.given(
  st.sampled_from(sorted(dtypes.DTYPES)), st.binary(min_size=64, max_size=64)
)
@hypothesis.settings(max_examples=300, deadline=None)
def test_any_bytes_can_be_compared_and_sent(dtype, raw):
  """Nothing that a kernel leaves in its output stops a judge, or warns."""
  got = np.frombuffer(raw, dtypes.DTYPES[dtype].storage).copy()
  mismatch = _compare(got, np.linspace(-2, 2, got.size), dtype)
  sent = msgspec.msgpack.decode(
    msgspec.msgpack.encode(mismatch), type=Mismatch | None
  )
  assert repr(sent) == repr(mismatch)  # NaN is not equal to itself
