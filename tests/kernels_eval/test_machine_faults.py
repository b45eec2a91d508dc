"""Faults of the machine are held against nobody, and jobs are kept small."""

import dataclasses
import pathlib
import tempfile

import pytest

from kernels_eval import candidate, outcome, sandbox
from kernels_eval.cpu import (
  executor,
  failures,
  host,
  protocol,
  toolchain,
)
from kernels_eval.problems import spec
from kernels_eval.schema import Status
from kernels_eval.settings import Settings
from tests.kernels_eval import lab as lab_lib


@pytest.fixture(scope="module")
def boxed():
  """(executor, its folder)"""
  with tempfile.TemporaryDirectory() as root:
    made = executor.Executor(
      toolchain.prepare(),
      sandbox.probe(),
      pathlib.Path(root),
      Settings(),
    )
    yield made, pathlib.Path(root)
    made.close()


@pytest.mark.parametrize("mib", [8, 64, 300, 500, 1000])
def test_no_memory_for_our_own_records_is_no_fault_of_the_candidate(
  lab, monkeypatch, mib
):
  monkeypatch.setattr(executor, "_RUN_MAPPED_BYTES", mib * 2**20)
  monkeypatch.setattr(executor, "_RECORDS_FACTOR", 0)
  with pytest.raises(host.HostError, match="did not start"):
    lab.out("__global__ void k(float* out) { out[0] = 1; }", size=1)


def test_a_report_from_before_the_start_is_not_the_candidates():
  report = protocol.Report(
    protocol.FAULTED, 0, "out_of_bounds", None, 0, (0,) * 3, (0,) * 3, 0, "", ""
  )
  answer = host.Answer(host.Outcome.EXITED, 3, 1.0, "", 0, 0, False, 1.0)
  with pytest.raises(host.HostError):
    failures.run_failure(answer, report, None, None, Settings())


def test_a_job_that_gets_no_processor_is_no_timeout(boxed):
  made, root = boxed
  limits = host.Limits(0.3, 5, 2**31, 2**20, num_processes=32)
  settings = Settings(
    compile_wall_s=0.3, compile_cpu_s=5, run_wall_s=0.3, run_cpu_s=5
  )
  report = protocol.Report(
    protocol.RUNNING, 0, "none", None, 0, (0,) * 3, (0,) * 3, 0, "", ""
  )

  def wait(script):
    return made._host.command(["/bin/sh", "-c", script], str(root), limits)

  idle = wait("exec sleep 5")
  assert idle.outcome == host.Outcome.WALL_LIMIT
  assert idle.cpu_ms < 50
  with pytest.raises(host.HostError, match="too busy: in 0.3 s the compiler"):
    failures.check_machine(idle, "compiler", root, settings)
  with pytest.raises(host.HostError, match="too busy: in 0.3 s the kernel"):
    failures.run_failure(idle, report, None, None, settings)
  # One that has had its time is held to account, with the right number.
  busy = dataclasses.replace(idle, cpu_ms=290.0)
  with pytest.raises(outcome.Stop, match="did not end within 0.3 s") as caught:
    failures.check_machine(busy, "compiler", root, settings)
  assert caught.value.status == Status.TIMEOUT
  stop = failures.run_failure(busy, report, None, None, settings)
  assert (stop.status, "0.3 s" in stop.message) == (Status.TIMEOUT, True)


def test_processor_time_is_reported(boxed):
  made, root = boxed
  limits = host.Limits(20, 0.3, 2**31, 2**20, num_processes=32)
  script = "while true; do :; done"
  answer = made._host.command(["/bin/sh", "-c", script], str(root), limits)
  assert answer.outcome == host.Outcome.CPU_LIMIT
  assert 250 <= answer.cpu_ms <= 1000


def test_jobs_are_the_first_to_go_when_memory_runs_out(boxed):
  made, _ = boxed
  own = pathlib.Path("/proc/self/oom_score_adj").read_text()
  sandboxed = pathlib.Path(f"/proc/{made._host.pid}/oom_score_adj").read_text()
  assert int(own) < int(sandboxed) == 1000


def test_memory_for_records_is_given_back_between_cases(lab, monkeypatch):
  """Ten cases with as much scratch as is allowed; one at a time has records."""
  peaks = []
  run = lab.executor._host.run

  def watched(*arguments):
    answer = run(*arguments)
    peaks.append(answer.peak_resident_bytes)
    return answer

  monkeypatch.setattr(lab.executor._host, "run", watched)
  problem = lab_lib.make_problem(outputs=[("out", "float32", 1)])
  text = """// scratch: tmp uint8 (800000)
  // launch: k grid=(4) block=(64) args=(tmp, out)
  __global__ void k(unsigned char* tmp, float* out) {
    int first = blockIdx.x * 64 + threadIdx.x;
    for (int i = first; i < 800000; i += 256) tmp[i] = 1;
    if (first == 0) out[0] = 1.0f;
  }"""
  parsed = candidate.parse(text, problem)
  cases = [(spec.Case(i, {}, "given", {}), {}) for i in range(10)]
  with lab.executor.folder() as folder:
    artefact = lab.executor.compile(parsed, problem, folder)
    lab.executor.run(artefact, parsed, problem, cases[:1])
    lab.executor.run(artefact, parsed, problem, cases)
  one, ten = peaks
  assert one > 15 * 2**20  # 24 bytes of records for each byte
  assert ten < 2.5 * one


def test_scratch_has_a_limit_over_all_cases(lab):
  limit = Settings().max_scratch_bytes
  text = """// scratch: tmp uint8 (%d)
  // launch: k grid=(1) block=(1) args=(tmp, out)
  __global__ void k(unsigned char* tmp, float* out) { out[0] = 1.0f; }"""
  assert lab.out(text % limit, size=1)[0] == 1.0
  stop = lab.stop(text % (limit + 1), size=1)
  assert stop.status == Status.CONTRACT_VIOLATION
  assert f"at most {limit}" in stop.message
