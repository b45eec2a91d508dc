"""compute-sanitizer's texts to findings. They are of our own making, after the
formats that its manual shows; the tool itself needs a GPU."""

import contextlib
import os
import pathlib
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
  sanitizer_log,
  toolkit,
)
from kernels_eval.cuda import diagnosis as diagnosis_lib
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.outcome import Stop
from kernels_eval.schema import Mismatch, Status
from kernels_eval.settings import Settings
from tests.kernels_eval import machine
from tests.kernels_eval.gpu_lab import ask

_ROOT = pathlib.Path(__file__).parents[2]
# A device function, inlined or called; the frame above it is the kernel's.
_OUT_OF_BOUNDS = """\
========= COMPUTE-SANITIZER
printed by the kernel: Invalid __global__ write of size 8 bytes
========= Invalid __global__ read of size 4 bytes
=========     at load(const float *, int)+0xb0 in kernel.cu:7
=========     by thread (33,1,0) in block (2,0,5)
=========     Address 0x7cc43aa04000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7c
=========         Device Frame: k(float *)+0x30 in kernel.cu:12
=========     Saved host backtrace up to driver entry point at launch time
=========         Host Frame: cuLaunchKernel [0xacd4] in libcuda.so.1
=========
========= Invalid __global__ read of size 4 bytes
=========     at load(const float *, int)+0xb0 in kernel.cu:99
=========     by thread (34,1,0) in block (2,0,5)
=========     Address 0x7cc43aa04004 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""
_MISALIGNED_IN_A_HEADER = """\
========= Invalid __shared__ write of size 16 bytes
=========     at __half2_store()+0x50 in /usr/include/cuda_fp16.hpp:1234
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f02 is misaligned
=========         Device Frame: k(float *)+0x30 in /tmp/a/kernel.cu:5
========= ERROR SUMMARY: 1 error
"""
_RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k()+0x90 in kernel.cu:4
=========     and Read access at k(int *)+0x100 in kernel.cu:5 [508 hazards]
=========     and Write access at k(int *)+0x140 in kernel.cu:8 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
_HAZARD = """\
========= Warning: (Warp Level Programming) Potential RAW hazard detected at \
__shared__ 0x8c in block (3,0,0) :
=========     Write Thread (35,0,0) at k(int *)+0x90 in kernel.cu:14
=========     Read Thread (32,0,0) at k(int *)+0x120 in kernel.cu:16
=========     Current Value : 35
"""


def test_an_access_out_of_bounds():
  finding = sanitizer_log.read(_OUT_OF_BOUNDS)
  assert finding.kind == "out_of_bounds"
  assert finding.line == 7
  assert (finding.thread, finding.block) == ((33, 1, 0), (2, 0, 5))
  assert finding.message == (
    "invalid __global__ read of size 4 bytes: the address is out of bounds"
  )


def test_the_line_is_the_candidates_not_a_headers():
  finding = sanitizer_log.read(_MISALIGNED_IN_A_HEADER)
  assert (finding.kind, finding.line) == ("misaligned", 5)


def test_one_with_a_line_comes_before_one_without():
  without = _OUT_OF_BOUNDS.replace(" in kernel.cu:7", "").replace(
    " in kernel.cu:12", ""
  )
  assert sanitizer_log.read(without).line == 99
  without = without.replace(" in kernel.cu:99", "")
  finding = sanitizer_log.read(without)
  assert finding.line is None and finding.thread == (33, 1, 0)


def test_a_race_names_both_lines():
  finding = sanitizer_log.read(_RACE)
  assert (finding.kind, finding.line) == ("data_race", 4)
  assert finding.message == (
    "race in shared memory between write in line 4 and read in line 5 and "
    "write in line 8"
  )


def test_a_hazard_names_both_threads():
  finding = sanitizer_log.read(_HAZARD)
  assert (finding.kind, finding.line) == ("data_race", 14)
  assert (finding.thread, finding.block) == ((35, 0, 0), (3, 0, 0))
  assert "read of thread (32, 0, 0) in line 16" in finding.message


@pytest.mark.parametrize(
  "log",
  [
    "",
    "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
    "========= Program hit CUDA_ERROR_ILLEGAL_ADDRESS (error 700) due to "
    '"an illegal memory access" on CUDA API call to cuStreamSynchronize.\n',
    "Invalid __global__ write of size 4 bytes\n     at k() in kernel.cu:3\n",
    "=========",
  ],
)
def test_nothing_found(log):
  assert sanitizer_log.read(log) is None


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
  (tmp_path / "memcheck-with lines").write_text(_OUT_OF_BOUNDS)
  (tmp_path / "racecheck-with lines").write_text(_RACE)
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


def test_a_tool_that_does_not_work_changes_nothing(
  diagnosis, executor, tmp_path
):
  _tool_that_ends(tmp_path, "at once")
  refined, stop = _refine(diagnosis, Status.WRONG_ANSWER)
  assert refined is stop
  assert ask(executor, "well").outcome == jobs.Outcome.DONE


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
    refined, stop = _refine(diagnosis, Status.WRONG_ANSWER)
    assert refined is stop
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
  assert refined is stop and time.monotonic() - started < 10
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
