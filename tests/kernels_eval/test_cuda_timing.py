"""Timing without a GPU: what is refused before a job is sent, and how a report
becomes a record."""

import contextlib
import math

import msgspec
import pytest

from kernels_eval import candidate as candidate_lib
from kernels_eval import dtypes, problems
from kernels_eval.cpu import translate
from kernels_eval.cuda import build, jobs, peaks
from kernels_eval.outcome import Stop
from kernels_eval.problems import timing_sizes
from kernels_eval.schema import Status

pytest.importorskip("cuda.bindings.driver", reason="no bindings of CUDA")
RELU = problems.get("relu")
DIMS = {"n": 2**20}
NEAR = jobs.Compared(0, 0.0, 2.0**19)


DEVICE = jobs.Hello("stand-in", (9, 0), "0", 232448, 132, 4.8e12, 2**37)


class _Executor:
  """Has compiled everything; its GPU times every call alike."""

  def __init__(self, times_ms, compared, device):
    self.device = device
    self._times_ms = times_ms
    self._compared = compared
    self.jobs = []

  def compile(self, plan, problem, folder):
    entries = translate.entries(plan)
    places = tuple((0, e.kernel) for e in entries)
    return build.Artefact((b"cubin",), entries, places)

  @contextlib.contextmanager
  def folder(self):
    yield None

  def ask(self, job, descriptor):
    self.jobs.append(job)
    return jobs.Report(
      jobs.Outcome.DONE, times_ms=self._times_ms, compared=self._compared
    )


def _time(
  monkeypatch,
  scratch="",
  times_ms=((1.0,) * 20,) * 2,
  compared=((NEAR,),) * 20,
  device=DEVICE,
  problem=RELU,
  dims=DIMS,
):
  """The record of a kernel whose outputs are right."""
  from kernels_eval.cuda import timing

  monkeypatch.setattr(
    timing.correctness.Bounds, "hold", lambda bounds, got: True
  )
  plan = candidate_lib.parse(problem.canonical + scratch, problem)
  executor = _Executor(times_ms, compared, device)
  timer = timing.Timer(executor, 0, 60.0)
  artefact = executor.compile(plan, problem, None)
  try:
    return timer.time(artefact, plan, problem, dims), executor.jobs
  except Stop as stop:
    return stop, executor.jobs


def test_scratch_that_no_gpu_need_have_is_refused_before_it_is_sent(
  monkeypatch,
):
  stop, sent = _time(monkeypatch, "// scratch: s float32 (n, 256)\n")
  assert stop.status == Status.CONTRACT_VIOLATION
  assert "at most" in stop.message and sent == []
  record, sent = _time(monkeypatch, "// scratch: s float32 (n, 32)\n")
  assert record.candidate_ms == 1.0 and len(sent) == 1


def test_a_time_of_nothing_is_what_the_clock_can_tell(monkeypatch):
  monkeypatch.setattr(timing_sizes, "least_read_bytes", lambda *_: 0)
  times = (0.0,) * 15 + (1e-3,) * 5
  record, _ = _time(monkeypatch, times_ms=(times, times))
  assert 0 < record.candidate_ms < 1e-3
  assert math.isfinite(record.candidate_spread)


def _calls_of(ms):
  return ((ms,) * 20, (1.0,) * 20)


def test_a_time_below_the_floor_is_none(monkeypatch):
  floor_ms = 1e3 * 4 * DIMS["n"] / 4.8e12
  record, _ = _time(monkeypatch, times_ms=_calls_of(0.81 * floor_ms))
  assert record.floor_note == "memory"
  assert math.isclose(record.floor_ms, floor_ms)
  stop, _ = _time(monkeypatch, times_ms=_calls_of(0.79 * floor_ms))
  assert stop.status == Status.INTEGRITY_VIOLATION
  assert stop.message.endswith("ms that the memory needs to bring the inputs")


def test_a_time_below_what_the_arithmetic_takes_is_none(monkeypatch):
  # What the peak of this device makes of a small product, 32 floats of each.
  monkeypatch.setitem(peaks.HALF_FLOPS_PER_S, "stand-in", 1e8)
  floor_ms = 1e3 * 2 * 2 * 32**3 / 1e8
  small = {
    "problem": problems.get("matmul"),
    "dims": {"m": 32, "n": 32, "k": 32},
  }
  record, _ = _time(monkeypatch, times_ms=_calls_of(0.81 * floor_ms), **small)
  assert record.floor_note == "arithmetic"
  assert math.isclose(record.floor_ms, floor_ms)
  stop, _ = _time(monkeypatch, times_ms=_calls_of(0.79 * floor_ms), **small)
  assert stop.status == Status.INTEGRITY_VIOLATION
  assert stop.message.endswith("the tensor cores need to multiply the matrices")


def test_a_device_without_a_bandwidth_has_no_floor(monkeypatch):
  device = msgspec.structs.replace(DEVICE, bandwidth_bytes_per_s=0.0)
  record, _ = _time(monkeypatch, times_ms=_calls_of(1e-3), device=device)
  assert record.candidate_ms == 1e-3
  assert record.floor_ms is None and record.roofline_share is None
  assert record.floor_note == "the driver gives no bandwidth of stand-in"


def test_a_call_that_did_not_work_makes_no_record(monkeypatch):
  idle = jobs.Compared(2**20, 2.0**19, 2.0**19)
  for call in range(20):
    compared = [(NEAR,)] * 20
    compared[call] = (idle,)
    stop, ((job),) = _time(monkeypatch, compared=tuple(compared))
    assert len(job.keys) == 23 and stop.status == Status.WRONG_ANSWER
    assert f"in timed call {call + 1} of 20" in stop.message


def test_all_subjects_get_the_inputs_of_a_call_and_none_twice(monkeypatch):
  _, ((job),) = _time(monkeypatch)
  assert len(job.keys) == len(set(job.keys)) == 23
  assert sum(n for _, n in job.guards) + 2 * 4 * DIMS["n"] == job.image_bytes
  (output,) = job.outputs
  assert (output.num_items, output.dtype) == (DIMS["n"], "float32")
  assert 0 < output.gap < 1e-3 and 0 < output.share < 1e-3


def test_the_inputs_of_the_checked_call_do_not_last(monkeypatch):
  from kernels_eval.cuda import timed_keys, timing

  monkeypatch.setattr(timed_keys, "MAX_USES", 3)
  monkeypatch.setattr(
    timing.correctness.Bounds, "hold", lambda bounds, got: True
  )
  executor = _Executor(((1.0,) * 20,) * 2, ((NEAR,),) * 20, DEVICE)
  timer = timing.Timer(executor, 0, 60.0)
  plan = candidate_lib.parse(RELU.canonical, RELU)
  artefact = executor.compile(plan, RELU, None)
  for _ in range(7):
    timer.time(artefact, plan, RELU, DIMS)
  checked = [job.keys[job.checked] for job in executor.jobs]
  assert [checked.count(key) for key in dict.fromkeys(checked)] == [3, 3, 1]
  others = {key for job in executor.jobs for key in job.keys}
  assert len(others) == 7 * 22 + 3  # any other call has inputs of its own


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_canonical_solutions_have_the_scratch_that_they_need(name):
  from kernels_eval.cuda import timing

  problem = problems.get(name)
  dims = timing_sizes.dims_for(problem)
  for text in (problem.canonical, problem.numba_canonical):
    plan = candidate_lib.parse(text, problem)
    taken = sum(
      dtypes.DTYPES[t.dtype].item_bytes * math.prod(t.shape_for(dims))
      for t in (*problem.inputs, *problem.outputs, *plan.scratch)
    )
    assert taken <= timing.max_buffer_bytes(problem, dims)
