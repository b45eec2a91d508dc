"""What the sandbox hides and limits, for each kind of it."""

import dataclasses
import os
import pathlib
import platform
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from kernels_eval import (
  candidate,
  judge_process,
  landlock,
  outcome,
  problems,
  sandbox,
  seccomp,
)
from kernels_eval import judge as judge_lib
from kernels_eval.cpu import (
  executor,
  host,
  toolchain,
)
from kernels_eval.numba import client as numba_client
from kernels_eval.problems import spec
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings
from tests.kernels_eval import lab as lab_lib

GOOD = problems.get("vector_add").canonical
_PROBE = r"""
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
// Usage: probe SECRET PORT PID OUTSIDE
int main(int, char** argv) {
  printf("secret %d\n", open(argv[1], O_RDONLY) >= 0);
  printf("passwords %d\n", open("/etc/passwd", O_RDONLY) >= 0);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a = {};
  a.sin_family = AF_INET;
  a.sin_port = htons(atoi(argv[2]));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  printf("network %d\n", connect(s, (sockaddr*)&a, sizeof a) == 0);
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/cmdline", argv[3]);
  printf("process %d\n", open(path, O_RDONLY) >= 0);
  printf("signal %d\n", kill(atoi(argv[3]), 0) == 0);
  snprintf(path, sizeof path, "%s/new", argv[4]);
  printf("write %d\n", open(path, O_CREAT | O_WRONLY, 0600) >= 0);
  printf("own %d\n", open("own", O_CREAT | O_WRONLY, 0600) >= 0);
  printf("descriptors %d\n", open("/dev/null", O_RDONLY) >= 12);
  printf("host %d\n", kill(getppid(), 0) == 0 && getppid() == 1);
}
"""
_KINDS = ("bubblewrap", "namespaces", "none")
_LIMITS = host.Limits(20, 5, 2**31, 2**20, num_processes=32)


def _protections(kind):
  if kind == "none":
    return dataclasses.replace(sandbox.probe(), kind="none")
  found = sandbox.probe(allow_bubblewrap=kind == "bubblewrap")
  if found.kind != kind:
    pytest.skip(f"this machine grants no {kind}")
  return found


@pytest.fixture(scope="module")
def probe():
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "probe"
    path.with_suffix(".cpp").write_text(_PROBE)
    subprocess.run(
      ["g++", "-O0", str(path.with_suffix(".cpp")), "-o", str(path)], check=True
    )
    yield path.read_bytes()


@pytest.fixture(scope="module", params=_KINDS)
def boxed(request):
  """(kind, executor, its folder)"""
  protections = _protections(request.param)
  with tempfile.TemporaryDirectory() as root:
    made = executor.Executor(
      toolchain.prepare(),
      protections,
      pathlib.Path(root),
      Settings(run_cpu_s=1.0),
    )
    yield request.param, made, pathlib.Path(root)
    made.close()


def test_kernels_run(boxed):
  _, made, _ = boxed
  judge = judge_lib.Judge(made, 0)
  answer = judge.evaluate(Request("", "vector_add", GOOD))
  assert answer.status == Status.PASSED
  bad = GOOD.replace("i < n", "i <= n")
  answer = judge.evaluate(Request("", "vector_add", bad))
  assert answer.status == Status.RUNTIME_ERROR
  assert answer.finding.line == 3


def test_nothing_of_the_machine_is_seen(boxed, probe):
  kind, made, root = boxed
  (root / "probe").write_bytes(probe)
  (root / "probe").chmod(0o755)
  with (
    tempfile.NamedTemporaryFile(dir=pathlib.Path.home()) as secret,
    tempfile.TemporaryDirectory(dir=pathlib.Path.home()) as outside,
    socket.create_server(("127.0.0.1", 0)) as server,
  ):
    answer = made._host.command(
      [
        str(root / "probe"),
        secret.name,
        str(server.getsockname()[1]),
        str(os.getpid()),
        outside,
      ],
      str(root),
      _LIMITS,
    )
    assert os.listdir(outside) == []
  assert answer.ok, answer
  seen = dict(line.split() for line in answer.log.splitlines())
  assert seen["own"] == "1"  # the probe works
  assert seen["descriptors"] == "0"
  hidden = ["secret", "passwords", "network", "process", "signal", "write"]
  if kind == "none":
    # No namespaces: files by Landlock alone; TCP by its fourth version,
    # signals by its sixth.
    version = landlock.abi_version()
    if not version:
      pytest.skip("this kernel has no Landlock")
    hidden = ["secret", "passwords", "write"] + ["network"] * (version >= 4)
    hidden += ["signal"] * (version >= 6)
  assert {name: seen[name] for name in hidden} == dict.fromkeys(hidden, "0")


_CALLS = {
  "read": "read(0, buffer, 1)",
  "write": "write(1, buffer, 1)",
  "open": 'open("/dev/null", 0)',
  "socket": "socket(AF_INET, SOCK_STREAM, 0)",
  "fork": "fork()",
  "kill": "kill(getppid(), 9)",
  "executable memory": "mprotect(buffer, 4096, PROT_READ | PROT_EXEC)",
  "more executable memory":
    "mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANON, -1, 0)",
}  # fmt: skip


@pytest.mark.skipif(
  platform.machine() not in ("x86_64", "aarch64"), reason="no filter"
)
@pytest.mark.parametrize("call", _CALLS)
def test_a_kernel_makes_no_system_calls(lab, tmp_path, call):
  """A library that really makes them, in the place of a kernel's."""
  text = f"""
  #include <fcntl.h>
  #include <signal.h>
  #include <sys/mman.h>
  #include <sys/socket.h>
  #include <unistd.h>
  alignas(4096) static char buffer[4096];
  extern "C" void ke_launch_0(void**) {{ if ({_CALLS[call]}) buffer[1]++; }}
  """
  (tmp_path / "k.cpp").write_text(text)
  problem = lab_lib.make_problem(outputs=[("out", "float32", 1)])
  parsed = candidate.parse("__global__ void k(float* out) {}", problem)
  with lab.executor.folder() as folder:
    library = folder / "kernel.so"
    subprocess.run(
      [
        *("g++", "-shared", "-fPIC", "-nostartfiles"),
        *(str(tmp_path / "k.cpp"), "-o", str(library)),
      ],
      check=True,
    )
    artefact = executor.Artefact(str(library), parsed.launches)
    case = spec.Case(0, {}, "", {})
    with pytest.raises(outcome.Stop, match="made a system call") as caught:
      lab.executor.run(artefact, parsed, problem, [(case, {})])
  assert caught.value.status == Status.INTEGRITY_VIOLATION


def test_a_job_that_dies_is_seen_at_once(boxed):
  _, made, root = boxed
  started = time.monotonic()
  answer = made._host.command(
    ["/bin/sh", "-c", "kill -9 $$"], str(root), _LIMITS
  )
  assert time.monotonic() - started < 1.0
  assert answer.outcome == host.Outcome.SIGNALLED
  assert answer.code == signal.SIGKILL


def test_grandchildren_end_with_their_job(boxed):
  _, made, root = boxed
  # The background process writes a file as long as it lives.
  script = "(while true; do date > alive; sleep 0.01; done) & exit 3"
  answer = made._host.command(["/bin/sh", "-c", script], str(root), _LIMITS)
  assert (answer.outcome, answer.code) == (host.Outcome.EXITED, 3)
  time.sleep(0.05)
  (root / "alive").unlink(missing_ok=True)
  time.sleep(0.1)
  assert not (root / "alive").exists()


def test_a_job_that_ignores_signals_is_killed(boxed):
  _, made, root = boxed
  limits = host.Limits(0.3, 5, 2**31, 2**20, num_processes=32)
  script = "trap '' TERM INT HUP; while true; do sleep 1; done"
  answer = made._host.command(["/bin/sh", "-c", script], str(root), limits)
  assert answer.outcome == host.Outcome.WALL_LIMIT
  assert answer.wall_ms < 1300


def _peak_memory(made):
  """Bytes: largest resident set of any process of the host's group."""
  peak = 0
  group = made._host.pid
  for entry in pathlib.Path("/proc").glob("[0-9]*"):
    try:
      stat = (entry / "stat").read_text().rpartition(")")[2].split()
      status = (entry / "status").read_text()
    except OSError:
      continue
    if group in (int(entry.name), int(stat[2]), int(stat[1])):
      line = [x for x in status.splitlines() if x.startswith("VmHWM")]
      peak = max(peak, *(int(x.split()[1]) * 1024 for x in line), 0)
  return peak


def test_a_flood_of_output_is_cut(boxed):
  _, made, root = boxed
  script = "yes xxxxxxx | head -c 100000000"
  answer = made._host.command(["/bin/sh", "-c", script], str(root), _LIMITS)
  assert answer.ok
  assert answer.total_log_bytes == 100_000_000
  assert answer.log == "xxxxxxx\n" * (host.MAX_LOG_BYTES // 8)
  assert _peak_memory(made) < 32 * 2**20


def test_files_have_a_limit(boxed):
  _, made, root = boxed
  limits = host.Limits(10, 5, 2**31, 4096, num_processes=32)
  answer = made._host.command(
    ["/bin/sh", "-c", "trap '' XFSZ; yes | head -c 100000 > big"],
    str(root),
    limits,
  )
  assert not answer.ok
  assert (root / "big").stat().st_size <= 4096
  (root / "big").unlink()


# ---- limits of an evaluation, in the strongest sandbox there is


def test_memory_of_the_compiler_is_bounded(lab, monkeypatch):
  answers = []
  command = lab.executor._host.command
  monkeypatch.setattr(
    lab.executor._host,
    "command",
    lambda *a: answers.append(command(*a)) or answers[-1],
  )
  limit = 300 * 2**20
  monkeypatch.setattr(
    lab.executor, "_settings", Settings(compile_memory_bytes=limit)
  )
  text = "#define V __VA_ARGS__\n#define A(...) V,V,V,V,V,V,V,V,V,V\n"
  text = text.replace("V", "__VA_ARGS__").partition("\n")[2]
  text += "__device__ int big[] = {A(A(A(A(A(A(A(1)))))))};\n"
  stop = lab.stop(text + "__global__ void k(float* out) { out[0] = big[0]; }")
  assert stop.status == Status.COMPILE_ERROR
  assert "out of memory" in stop.message
  assert answers[0].peak_resident_bytes < limit


def test_output_of_the_compiler_is_bounded(lab):
  text = "__device__ char big[1ull << 33] = {1};\n"
  started = time.monotonic()
  stop = lab.stop(text + "__global__ void k(float* out) { out[0] = big[0]; }")
  assert time.monotonic() - started < 5
  assert stop.status == Status.COMPILE_ERROR
  assert "output exceeds" in stop.message


def test_size_of_global_variables_is_bounded(lab):
  text = "__device__ char big[1 << 30];\n"
  stop = lab.stop(text + "__global__ void k(float* out) { out[0] = big[0]; }")
  assert stop.status == Status.COMPILE_ERROR
  assert "global variables" in stop.message


# ---- a full disk


@pytest.fixture
def small_disk(tmp_path):
  """A folder on a file system of its own with 2 MiB."""
  folder = tmp_path / "disk"
  folder.mkdir()
  done = subprocess.run(
    ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)],
    capture_output=True,
  )
  if done.returncode:
    pytest.skip("mounting is not allowed here")
  yield folder
  subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_nobody_to_blame(small_disk):
  judge, _, close = judge_process.make(small_disk, 0, Settings())
  try:
    request = Request("", "vector_add", GOOD)
    assert judge.evaluate(request).status == Status.PASSED
    filler = small_disk / "filler"
    for left in (200, 20, 4, 0):  # KiB: linker, compiler, text, folder fail
      free = os.statvfs(small_disk).f_bavail * 4096
      with open(filler, "ab") as f:
        f.write(b"x" * max(0, free - left * 1024))
      answer = judge.evaluate(request)
      assert answer.status in (Status.INFRASTRUCTURE_ERROR, Status.PASSED), left
    assert answer.status == Status.INFRASTRUCTURE_ERROR
    assert "space" in answer.message
    filler.unlink()
    assert judge.evaluate(request).status == Status.PASSED
  finally:
    close()


def test_a_candidate_cannot_feign_a_full_disk(check):
  text = "#error No space left on device\n" + GOOD
  answer = check("vector_add", text)
  assert answer.status == Status.COMPILE_ERROR
  assert "No space left on device" in answer.message


@pytest.mark.parametrize("kind", _KINDS)
def test_what_a_machine_lacks_is_said(kind):
  full = sandbox.Protections(kind, landlock=True, call_filter=True).describe()
  assert "NO Landlock" not in full and "NO system-call filter" not in full
  bare = sandbox.Protections(kind, landlock=False, call_filter=False).describe()
  assert "NO Landlock" in bare
  assert "Python functions are not judged" in bare


def test_without_a_filter_numba_is_not_judged(tmp_path, monkeypatch):
  monkeypatch.setattr(seccomp, "is_available", lambda: False)
  with pytest.raises(numba_client.UnavailableError, match="does not grant"):
    numba_client.FrontEnd(sandbox.probe(), tmp_path)
