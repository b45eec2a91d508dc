"""Asking compute-sanitizer, which needs a GPU: the tool is a stand-in here."""

import contextlib
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from kernels_eval import candidate, problems, sandbox
from kernels_eval.cpu import toolchain
from kernels_eval.cuda import (
  connection,
  jax_reference,
  jobs,
  sanitizer,
  toolkit,
)
from kernels_eval.cuda import diagnosis as diagnosis_lib
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.outcome import Stop
from kernels_eval.problems import timing_inputs
from kernels_eval.schema import Mismatch, Status
from kernels_eval.settings import Settings
from tests.kernels_eval import machine
from tests.kernels_eval.gpu_lab import ask
from tests.kernels_eval.sanitizer_texts import OUT_OF_BOUNDS, RACE

_ROOT = pathlib.Path(__file__).parents[2]
_FAKE = """\
#!{python}
import os, pathlib, socket, sys
import msgspec
from kernels_eval.cuda import jobs
from tests.kernels_eval.fake_launcher import HELLO
tool, log = (sys.argv[sys.argv.index(o) + 1] for o in ("--tool", "--log-file"))
link = socket.socket(fileno=int(sys.argv[sys.argv.index("-m") + 2]))
if "{ends}" == "at once":
  sys.exit(1)
link.send(msgspec.msgpack.encode(HELLO))
message, (mapping,), _, _ = socket.recv_fds(link, jobs.MAX_MESSAGE_BYTES, 1)
job = msgspec.msgpack.decode(message, type=jobs.Run)
program = os.pread(mapping, job.program_bytes, 0)
text = "with lines" if b".debug_line" in program else "without lines"
source = pathlib.Path(sys.argv[0]).with_name(tool + "-" + text)
if "{ends}" == "with the fault":
  pathlib.Path(log).write_text(source.read_text())
  sys.exit(1)
with pathlib.Path(sys.argv[0]).with_name("asked").open("a") as asked:
  print(tool, len(job.cases), job.image_bytes, file=asked)
report = jobs.Report(jobs.Outcome.KERNEL_FAILED, text)
link.send(msgspec.msgpack.encode(report))
link.recv(1)  # until the judge hangs up
pathlib.Path(log).write_text(source.read_text())
pathlib.Path(sys.argv[0]).with_name("place").write_text(log)
"""


@pytest.fixture
def gpu(start):
  """A real server; its launchers are stand-ins."""
  return start()


@pytest.fixture
def executor(tmp_path, gpu):
  pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
  from kernels_eval.cuda import executor as executor_lib

  made = executor_lib.CudaExecutor(
    toolchain.prepare(),
    toolkit.find(),
    sandbox.probe(),
    tmp_path,
    gpu.socket,
    Settings(),
    CudaSettings(),
  )
  yield made
  made.close()


@pytest.fixture
def diagnosis(tmp_path, executor, lab):
  """The real judge's side and server; tool and launchers are stand-ins."""
  tool = tmp_path / "compute-sanitizer"
  tool.write_text(_FAKE.format(python=sys.executable, ends="in time"))
  tool.chmod(0o755)
  (tmp_path / "memcheck-with lines").write_text(OUT_OF_BOUNDS)
  (tmp_path / "racecheck-with lines").write_text(RACE)
  asked = sanitizer.Sanitizer(str(tool), executor, 0, 0, 20.0)
  return diagnosis_lib.Diagnosis(lab.executor, 0, asked)


PROBLEM = problems.get("relu")


def _refine(diagnosis, status, text=PROBLEM.canonical, **facts):
  stop = Stop(status, "it failed", case=PROBLEM.cases[1], **facts)
  parsed = candidate.parse(text, PROBLEM)
  return diagnosis.refine(stop, parsed, PROBLEM), stop


def test_a_stopped_kernel_gets_the_line_that_the_cpu_does_not_find(
  diagnosis, tmp_path
):
  refined, _ = _refine(diagnosis, Status.RUNTIME_ERROR)
  assert refined.status == Status.RUNTIME_ERROR
  assert refined.finding.line == 7
  assert "line 7: invalid __global__ read" in refined.message
  assert "compute-sanitizer memcheck" in refined.message
  assert "on the GPU: it failed" in refined.message
  # Even if nobody removes it, the pool's end does.
  place = pathlib.Path((tmp_path / "place").read_text())
  assert tmp_path in place.parents and not place.exists()


def test_a_wrong_answer_may_be_a_race(diagnosis):
  mismatch = Mismatch("out", (1,), (0,), 1.0, 2.0, 1, 1, 1.0, 1.0, 0, 0)
  refined, _ = _refine(diagnosis, Status.WRONG_ANSWER, mismatch=mismatch)
  assert refined.status == Status.WRONG_ANSWER
  assert refined.finding.kind == "data_race"
  assert refined.mismatch == mismatch


def test_what_the_cpu_finds_comes_first(diagnosis):
  text = PROBLEM.canonical.replace("i < n", "i <= n")
  assert text != PROBLEM.canonical
  refined, _ = _refine(diagnosis, Status.RUNTIME_ERROR, text)
  assert "found on the CPU" in refined.message


def test_other_failures_are_not_asked_about(diagnosis):
  refined, stop = _refine(diagnosis, Status.TIMEOUT)
  assert refined is stop


def _tool_that_ends(tmp_path, ends):
  (tmp_path / "compute-sanitizer").write_text(
    _FAKE.format(python=sys.executable, ends=ends)
  )


def test_a_tool_that_does_not_work_is_told(diagnosis, executor, tmp_path):
  _tool_that_ends(tmp_path, "at once")
  refined, _ = _refine(diagnosis, Status.WRONG_ANSWER)
  assert (refined.status, refined.finding) == (Status.WRONG_ANSWER, None)
  assert refined.message == (
    "it failed (compute-sanitizer racecheck did not work: "
    "the launcher under compute-sanitizer ended)"
  )
  assert ask(executor, "well").outcome == jobs.Outcome.DONE


def test_a_tool_that_finds_nothing_is_told(diagnosis, tmp_path):
  nothing = "it failed (compute-sanitizer racecheck found nothing"
  for log, words in (
    ("=========\n", ")"),
    (RACE.splitlines()[-1] + "\n=========\n", ": RACECHECK SUMMARY: 1 hazard"),
  ):
    (tmp_path / "racecheck-with lines").write_text(log)
    refined, _ = _refine(diagnosis, Status.WRONG_ANSWER)
    assert refined.message.startswith(nothing + words)


def _refine_timed(diagnosis, status, num_elements, text=PROBLEM.canonical):
  case = timing_inputs.case_for(PROBLEM, {"n": num_elements})
  stop = Stop(status, "in a timed call", case=case)
  return diagnosis.refine(stop, candidate.parse(text, PROBLEM), PROBLEM)


def test_a_race_of_a_timed_call_is_looked_for_in_the_small_cases_first(
  diagnosis, tmp_path
):
  large = 2**24  # 128 MiB, more than the cases of correctness may take
  refined = _refine_timed(diagnosis, Status.WRONG_ANSWER, large)
  assert refined.finding.kind == "data_race"
  asked = (tmp_path / "asked").read_text().splitlines()
  assert [line.split()[1] for line in asked] == [str(len(PROBLEM.cases))]
  # There is nothing in those.
  (tmp_path / "racecheck-with lines").write_text("")
  refined = _refine_timed(diagnosis, Status.WRONG_ANSWER, large)
  assert "racecheck found nothing)" in refined.message
  asked = (tmp_path / "asked").read_text().splitlines()[1:]
  assert [line.split()[1] for line in asked] == [str(len(PROBLEM.cases)), "1"]
  assert int(asked[1].split()[2]) > 8 * large


def test_a_fault_of_a_timed_call_is_looked_for_there(diagnosis, tmp_path):
  refined = _refine_timed(diagnosis, Status.RUNTIME_ERROR, 1000)
  assert "compute-sanitizer memcheck" in refined.message
  assert (tmp_path / "asked").read_text().startswith("memcheck 1 ")


def test_a_case_that_cannot_be_run_again_is_told(diagnosis, tmp_path):
  text = PROBLEM.canonical + (
    "\n// scratch: tmp float32 (n * n)\n"
    "// launch: relu grid=(ceil_div(n, 256)) block=(256)\n"
  )
  (tmp_path / "racecheck-with lines").write_text("")
  refined = _refine_timed(diagnosis, Status.WRONG_ANSWER, 50_000, text)
  assert "racecheck was not asked about this case: " in refined.message
  assert "`tmp`" in refined.message


def test_a_launcher_that_ends_with_the_fault_has_said_enough(
  diagnosis, executor, tmp_path
):
  _tool_that_ends(tmp_path, "with the fault")
  refined, _ = _refine(diagnosis, Status.RUNTIME_ERROR)
  assert refined.finding.line == 7
  assert ask(executor, "well").outcome == jobs.Outcome.DONE


def test_a_gpu_that_others_keep_costs_the_next_candidate_nothing(
  diagnosis, executor, gpu, monkeypatch, tmp_path
):
  monkeypatch.setattr(connection, "_ALONE_QUEUE_S", 0.1)
  jax = jax_reference.JaxReference(tmp_path, 0, 5.0, executor.alone, ("true",))
  holder = gpu.connect()
  with holder.alone():
    assert "does not answer" in jax.measure("relu", {"n": 1}).reason
    refined, _ = _refine(diagnosis, Status.WRONG_ANSWER)
    assert "racecheck did not work" in refined.message
  assert ask(executor, "well").outcome == jobs.Outcome.DONE
  with executor.folder() as folder:  # and its compiler works
    executor.compile(
      candidate.parse(PROBLEM.canonical, PROBLEM), PROBLEM, folder
    )
  holder.close()


def test_nobody_waits_for_a_gpu_to_compile(diagnosis, gpu, monkeypatch):
  monkeypatch.setattr(connection, "_ALONE_QUEUE_S", 20.0)
  text = PROBLEM.canonical.replace("x[i]", "y[i]")
  holder = gpu.connect()
  started = time.monotonic()
  with holder.alone():
    refined, stop = _refine(diagnosis, Status.WRONG_ANSWER, text)
  assert refined.finding is None and time.monotonic() - started < 10
  holder.close()


# A tool that waits for a launcher whose kernel does not end.
_ENDLESS = """\
#!{python}
import os, pathlib, sys, time
if os.fork():
  os.wait()
from kernels_eval.cuda import launcher, sanitized_launcher
pathlib.Path(sys.argv[0]).with_name("pids").write_text(
  f"{{os.getppid()}} {{os.getpid()}}")
launcher.serve = lambda *_: time.sleep(600)
sanitized_launcher.main(sys.argv[-3:])
"""


def test_nothing_under_the_tool_outlives_its_judge(tmp_path):
  pytest.importorskip("cuda.bindings.driver", reason="no bindings of CUDA")
  tool = tmp_path / "compute-sanitizer"
  tool.write_text(_ENDLESS.format(python=sys.executable))
  tool.chmod(0o755)
  code = (
    "import contextlib, pathlib, sys\n"
    "from kernels_eval.cuda import sanitizer\n"
    "class Executor:\n"
    "  def folder(self):\n"
    "    return contextlib.nullcontext(pathlib.Path(sys.argv[2]))\n"
    "asked = sanitizer.Sanitizer(sys.argv[1], Executor(), 0, 0, 60.0)\n"
    "asked._run('memcheck', None, 0)\n"
  )
  judge = subprocess.Popen(
    [sys.executable, "-c", code, str(tool), str(tmp_path)], cwd=_ROOT
  )
  pids = tmp_path / "pids"
  assert machine.wait_for(lambda: machine.read(pids), 20)
  processes = [int(pid) for pid in pids.read_text().split()]
  judge.kill()
  judge.wait()
  ended = machine.wait_for(lambda: not any(map(_is_alive, processes)), 10)
  for pid in processes:
    with contextlib.suppress(ProcessLookupError):
      os.kill(pid, signal.SIGKILL)
  assert ended


def _is_alive(pid):
  state = machine.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[:1]
  return state not in ([], [b"Z"])


def test_the_tool_gets_options_first():
  words = sanitizer.command("tool", "memcheck", pathlib.Path("/f/log"), 7, 1)
  assert words[:5] == ["tool", "--tool", "memcheck", "--log-file", "/f/log"]
  assert words[-4:] == [
    "kernels_eval.cuda.sanitized_launcher",
    *("7", "1", "/f/helpers"),
  ]


def test_none_of_our_own_kernels_is_looked_at():
  words = sanitizer.command("tool", "memcheck", pathlib.Path("/f/log"), 7, 1)
  pairs = itertools.pairwise(words)
  excluded = [b for a, b in pairs if a == "--kernel-name-exclude"]
  # As the compiler sees them, macros and all.
  source = pathlib.Path(sanitizer.__file__).with_name("helpers.cu").read_text()
  made = subprocess.run(
    ["g++", "-E", "-P", "-x", "c++", "-"],
    input=source,
    capture_output=True,
    text=True,
    check=True,
  ).stdout
  ours = re.findall(r"__global__ void (\w+)\(", made)
  assert len(ours) == 15
  assert sorted(excluded) == sorted(f"kernel_name={name}" for name in ours)
