"""How near a candidate's outputs of timed calls are to the canonical ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels_eval import correctness, dtypes, problems
from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import jobs, timed_outputs
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Status

RELU = problems.get("relu")
N = 1000
CASE = spec.Case(len(RELU.cases), {"n": N}, "normal", {})
NEARNESS = {"out": correctness.Nearness(0.01, 1e-3, 1e-4, 0.01, 1e-4)}
NEAR = jobs.Compared(0, 0.0, 100.0 * N)


def check(rows, checked=0, near=NEARNESS, **report):
  calls = tuple((1.0,) * len(rows) for _ in range(2))
  made = jobs.Report(
    jobs.Outcome.DONE,
    times_ms=calls,
    compared=tuple((row,) for row in rows),
    **report,
  )
  timed_outputs.check(made, checked, RELU, CASE, near)


@pytest.mark.parametrize(
  ("bad", "words"),
  [
    (jobs.Compared(11, 0.0, 1.0), "11 of 1000 elements are far off"),
    # 0.01 + 1e-4 * 10 is allowed.
    (
      jobs.Compared(0, N * 0.0111**2, N * 100.0),
      "the RMS of the differences is 0.0111, at most 0.011",
    ),
    (
      jobs.Compared(0, float("nan"), N * 100.0),
      "the RMS of the differences is nan, at most 0.011",
    ),
  ],
)
@pytest.mark.parametrize("call", [1, 2, 4])
def test_any_call_may_be_the_bad_one(bad, words, call):
  rows = [NEAR] * 5
  check(rows)
  rows[call] = bad
  with pytest.raises(Stop) as caught:
    check(rows)
  assert caught.value.status == Status.WRONG_ANSWER
  assert f"in timed call {call + 1} of 5, beside what" in caught.value.message
  assert f"out: {words}" in caught.value.message


def test_a_canonical_kernel_that_is_wrong_is_nobodys_fault():
  bad = jobs.Compared(11, 0.0, 1.0)
  with pytest.raises(HostError, match="canonical kernel of relu is not right"):
    check([bad, bad, NEAR, bad], checked=1)
  for rows, checked in (([bad, bad, NEAR, bad], 2), ([bad, NEAR, NEAR], 0)):
    with pytest.raises(Stop, match="in timed call 1 of"):
      check(rows, checked=checked)


def test_writes_between_buffers():
  with pytest.raises(Stop) as caught:
    check([NEAR], num_changed=5)
  assert caught.value.status == Status.RUNTIME_ERROR
  assert caught.value.finding.kind == "out_of_bounds"


def test_what_is_just_near_enough():
  check([NEAR, jobs.Compared(10, N * 0.01099**2, N * 100.0)])


def test_changed_memory_is_no_answer():
  with pytest.raises(Stop) as caught:
    check([NEAR], is_intact=False)
  assert caught.value.status == Status.INTEGRITY_VIOLATION


def test_calls_that_were_not_compared():
  made = jobs.Report(jobs.Outcome.DONE, times_ms=((1.0,) * 3,) * 2)
  with pytest.raises(ValueError, match="0 of 3 timed calls were compared"):
    timed_outputs.check(made, 0, RELU, CASE, NEARNESS)


FLOATS = [d.name for d in dtypes.DTYPES.values() if d.is_float]


@given(
  st.sampled_from(FLOATS),
  st.integers(0, 2**32 - 1),
  st.sampled_from([1e-20, 1.0, 1e4]),
  st.sampled_from([1.0, 8.0]),
)
def test_two_right_outputs_are_near_each_other(name, seed, scale, factor):
  rng = np.random.default_rng(seed)

  def reference():
    exact = scale * rng.standard_normal(N)
    return exact, exact * (1 + 1e-7 * rng.standard_normal(N))

  near = correctness.nearness([reference()], name, factor)
  exact, single = reference()  # of other inputs
  allowed, rms_allowed = correctness._allowed(exact, single, name, factor)
  outputs = []
  for sign in (1, -1):  # as wrong as two right ones can be
    error = sign * allowed
    worst = np.sqrt(np.mean(error**2))
    outputs.append(exact + 0.99 * error * min(1, rms_allowed / worst))
  a, b = outputs
  gap = np.abs(a - b)
  num_far = int((gap > near.gap + near.share * np.abs(b)).sum())
  found = jobs.Compared(num_far, float((gap**2).sum()), float((b**2).sum()))
  check([found], checked=-1, near={"out": near})


def test_whole_numbers_are_the_same():
  near = correctness.nearness([(np.ones(3), np.ones(3))], "int32", 1.0)
  assert near == (1e-4, 0, 0, 0, 0)


def test_half_precision_is_not_near_single_precision():
  rng = np.random.default_rng(0)
  a, b = (rng.standard_normal((128, 1024)) for _ in range(2))
  exact = a @ b.T
  single = (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float64)
  near = correctness.nearness([(exact, single)], "float32", 1.0)
  half = a.astype(np.float16).astype(float) @ b.T.astype(np.float16).astype(
    float
  )
  for got, is_near in ((single, True), (half, False)):
    gap = np.abs(got - exact)
    allowed = near.rms + near.rms_share * np.sqrt(np.mean(exact**2))
    assert (np.sqrt(np.mean(gap**2)) <= allowed) == is_near


def test_a_small_output_is_asked_for_more_inputs():
  lucky = (np.asarray([3.0]), np.asarray([3.0]))
  usual = (np.asarray([2.0]), np.asarray([2.001]))
  near = correctness.nearness([lucky, usual], "float32", 1.0)
  alone = correctness.nearness([lucky], "float32", 1.0)
  assert near.gap > alone.gap + 16 * 0.001


def test_a_reference_that_is_no_number_bounds_nothing():
  with pytest.raises(ValueError, match="no finite number"):
    correctness.nearness([(np.ones(2), np.asarray([1, np.inf]))], "float32", 1)
