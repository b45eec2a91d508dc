"""compute-sanitizer's texts to findings. They are of our own making, after the
formats that its manual shows; the tool itself needs a GPU."""

import pathlib
import sys

import pytest

from kernels_eval import candidate, problems, sandbox
from kernels_eval.cpu import toolchain
from kernels_eval.cuda import diagnosis as diagnosis_lib
from kernels_eval.cuda import sanitizer, sanitizer_log, toolkit
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.outcome import Stop
from kernels_eval.schema import Mismatch, Status
from kernels_eval.settings import Settings
from tests.kernels_eval.gpu_lab import Lab

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
if {dies}:
  sys.exit(1)
link.send(msgspec.msgpack.encode(HELLO))
message, (mapping,), _, _ = socket.recv_fds(link, jobs.MAX_MESSAGE_BYTES, 1)
job = msgspec.msgpack.decode(message, type=jobs.Run)
program = os.pread(mapping, job.program_bytes, 0)
text = "with lines" if b".debug_line" in program else "without lines"
report = jobs.Report(jobs.Outcome.KERNEL_FAILED, text)
link.send(msgspec.msgpack.encode(report))
link.recv(1)  # until the judge hangs up
source = pathlib.Path(sys.argv[0]).with_name(tool + "-" + text)
pathlib.Path(log).write_text(source.read_text())
"""


@pytest.fixture
def diagnosis(tmp_path, monkeypatch, lab):
  """The real judge's side and server; tool and launchers are stand-ins."""
  pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
  from kernels_eval.cuda import executor as executor_lib

  monkeypatch.setenv("PYTHONPATH", str(_ROOT))
  tool = tmp_path / "compute-sanitizer"
  tool.write_text(_FAKE.format(python=sys.executable, dies="False"))
  tool.chmod(0o755)
  (tmp_path / "memcheck-with lines").write_text(_OUT_OF_BOUNDS)
  (tmp_path / "racecheck-with lines").write_text(_RACE)
  gpu = Lab(tmp_path)
  executor = executor_lib.CudaExecutor(
    toolchain.prepare(),
    toolkit.find(),
    sandbox.probe(),
    tmp_path,
    gpu.socket,
    Settings(),
    CudaSettings(),
  )
  asked = sanitizer.Sanitizer(str(tool), executor, 0, 0, 20.0)
  yield diagnosis_lib.Diagnosis(lab.executor, 0, asked)
  executor.close()
  gpu.close()


PROBLEM = problems.get("relu")


def _refine(diagnosis, status, text=PROBLEM.canonical, **facts):
  stop = Stop(status, "it failed", case=PROBLEM.cases[1], **facts)
  parsed = candidate.parse(text, PROBLEM)
  return diagnosis.refine(stop, parsed, PROBLEM), stop


def test_a_stopped_kernel_gets_the_line_that_the_cpu_does_not_find(diagnosis):
  refined, _ = _refine(diagnosis, Status.RUNTIME_ERROR)
  assert refined.status == Status.RUNTIME_ERROR
  assert refined.finding.line == 7
  assert "line 7: invalid __global__ read" in refined.message
  assert "compute-sanitizer memcheck" in refined.message
  assert "on the GPU: it failed" in refined.message


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


def test_a_tool_that_does_not_work_changes_nothing(diagnosis, tmp_path):
  (tmp_path / "compute-sanitizer").write_text(
    _FAKE.format(python=sys.executable, dies="True")
  )
  refined, stop = _refine(diagnosis, Status.WRONG_ANSWER)
  assert refined is stop


def test_the_tool_gets_options_first():
  words = sanitizer.command("tool", "memcheck", pathlib.Path("/f/log"), 7, 1)
  assert words[:5] == ["tool", "--tool", "memcheck", "--log-file", "/f/log"]
  assert words[-4:] == [
    "kernels_eval.cuda.sanitized_launcher",
    *("7", "1", "/f/helpers"),
  ]
