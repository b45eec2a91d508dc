"""Hostile Numba modules, past the check of the text and into the sandbox."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import msgspec
import pytest

from kernels_eval import landlock, outcome, sandbox
from kernels_eval.numba import build, client
from kernels_eval.numba.messages import Code, Compiled, Kernel, Refusal
from kernels_eval.problems import spec
from kernels_eval.schema import Status
from kernels_eval.settings import Settings

_SETTINGS = Settings(
  compile_wall_s=10.0, compile_cpu_s=1.0, compile_memory_bytes=2**30
)
_KERNEL = """
from numba import cuda
@cuda.jit
def k(x):
  x[0] = 1.0
"""
_KERNELS = (Kernel("k", (("float32", 1),)),)
_CANONICAL = pathlib.Path(spec.__file__).parent / "numba" / "vector_add.py"


def _running(code):
  """A module that runs any code when it is imported. (The check of the text
  believes that `array` is NumPy's.)"""
  return (
    "import numba\n"
    'array = numba.core.config.os.sys.modules["builtins"].exec\n'
    f"RUN = array({code!r})\n{_KERNEL}"
  )


@pytest.fixture(scope="module", params=("bubblewrap", "namespaces", "none"))
def front_end(request):
  if request.param == "none":
    protections = dataclasses.replace(sandbox.probe(), kind="none")
  else:
    protections = sandbox.probe(allow_bubblewrap=request.param == "bubblewrap")
    if protections.kind != request.param:
      pytest.skip(f"this machine grants no {request.param}")
  with tempfile.TemporaryDirectory() as root:
    made = client.FrontEnd(protections, pathlib.Path(root))
    yield made
    made.close()


def _compile(front_end, source):
  return build.compile_kernels(
    front_end, source, _KERNELS, "ir", (8, 0), _SETTINGS
  )


def _stop(front_end, code):
  started = time.monotonic()
  with pytest.raises(outcome.Stop) as caught:
    _compile(front_end, _running(code))
  assert time.monotonic() - started < 5.0
  return caught.value


def test_the_way_in_works(front_end):
  """Else the tests below would show nothing."""
  stop = _stop(front_end, "raise ValueError('was run')")
  assert stop.status == Status.COMPILE_ERROR
  assert "was run" in stop.message
  assert _compile(front_end, _running("pass")).kernels[0].texts


_SYSTEM_CALLS = {
  "system": "import os; os.system('true')",
  "fork": "import os; os.fork()",
  "fork_bomb": "import os\nwhile True: os.fork()",
  "thread": "import threading; threading.Thread(target=print).start()",
  "spawn": "import os; os.posix_spawn('/bin/true', ['true'], {})",
  "socket": "import socket; socket.socket()",
  "kill_server": "import os; os.kill(os.getppid(), 9)",
  "kill_all": "import os; os.kill(-1, 9)",
  "kill_itself": "import os; os.kill(os.getpid(), 9)",
  "write_file": "open('/tmp/x', 'w')",
  "remove_file": "import os; os.unlink('/tmp/x')",
  "memory_file": "import os; os.memfd_create('x')",
}


@pytest.mark.parametrize("name", _SYSTEM_CALLS)
def test_system_calls_end_the_module(front_end, name):
  stop = _stop(front_end, _SYSTEM_CALLS[name])
  assert stop.status == Status.INTEGRITY_VIOLATION
  assert "system call" in stop.message


def test_files_of_the_machine_are_not_there(front_end, tmp_path):
  (tmp_path / "secret").write_text("1")
  paths = [tmp_path / "secret", "/etc/passwd"]
  if landlock.abi_version():
    paths += [_CANONICAL, "/proc/self/environ"]
  for path in paths:
    stop = _stop(front_end, f"raise ValueError(open({str(path)!r}).read())")
    assert stop.status == Status.COMPILE_ERROR
    assert "PermissionError" in stop.message or "FileNotFound" in stop.message


def test_an_endless_module_is_stopped(front_end):
  assert _stop(front_end, "while True: pass").status == Status.TIMEOUT


def test_memory_is_bounded(front_end):
  stop = _stop(front_end, "x = bytearray(2**30)")
  assert stop.status == Status.COMPILE_ERROR
  assert "out of memory" in stop.message


@pytest.mark.parametrize("code", ("0", "7"))
def test_leaving_is_no_result(front_end, code):
  stop = _stop(front_end, f"import os; os._exit({code})")
  assert stop.status == Status.INTEGRITY_VIOLATION
  assert "ended the compiler" in stop.message


def test_exit_is_an_error_of_the_module(front_end):
  stop = _stop(front_end, "import sys; sys.exit(0)")
  assert stop.status == Status.COMPILE_ERROR
  assert "SystemExit" in stop.message


def test_a_broken_compiler_is_told(front_end):
  code = (
    "import kernels_eval.numba.front_end as f\n"
    "f._shared_names = lambda tree: 1 / 0"
  )
  stop = _stop(front_end, code)
  assert stop.status == Status.COMPILE_ERROR
  assert "the compiler failed: ZeroDivisionError" in stop.message


def test_a_crash_is_the_modules(front_end):
  stop = _stop(front_end, "import ctypes; ctypes.string_at(8)")
  assert stop.status == Status.COMPILE_ERROR
  assert "signal 11" in stop.message


def test_a_flood_of_output_does_nothing(front_end):
  source = _running("for i in range(64): print('x' * 2**20)")
  assert _compile(front_end, source).kernels[0].texts


@pytest.mark.parametrize(
  "payload",
  (b"junk", b"", b"\xff" * 100, msgspec.msgpack.encode({"type": "compiled"})),
  ids=("junk", "nothing", "bytes", "incomplete"),
)
def test_a_result_that_is_none(front_end, payload):
  code = f"import os; os.write(3, {payload!r}); os._exit(0)"
  assert _stop(front_end, code).status == Status.INTEGRITY_VIOLATION


def test_a_result_has_a_limit(front_end):
  code = "import os\nfor i in range(64): os.write(3, b'x' * 2**20)"
  stop = _stop(front_end, code)
  assert stop.status in (Status.COMPILE_ERROR, Status.INTEGRITY_VIOLATION)


def test_a_forged_refusal_is_cut_to_size(front_end):
  refusal = Refusal("compile", "\x1b[31m\n" + "x" * 10_000, -5)
  forged = msgspec.msgpack.encode(refusal)
  stop = _stop(front_end, f"import os; os.write(3, {forged!r}); os._exit(0)")
  assert stop.status == Status.COMPILE_ERROR
  assert len(stop.message) < 700 and stop.message.isprintable()
  assert stop.diagnostics[0].line is None


def test_an_abort_is_the_modules(front_end):
  stop = _stop(front_end, "import os; os.abort()")
  assert stop.status == Status.COMPILE_ERROR
  assert "signal 6" in stop.message


def test_results_do_not_mix(front_end):
  forged = msgspec.msgpack.encode(Compiled((Code("a", ("b",)),) * 2, ()))
  code = f"import os; os.write(3, {forged!r}); os._exit(0)"
  stop = _stop(front_end, code)  # two kernels where one was asked for
  assert stop.status == Status.INTEGRITY_VIOLATION


def test_the_server_still_works(front_end):
  """After all of the above; one module leaves nothing for the next."""
  _compile(front_end, _running("import numba; numba.cuda.changed = True"))
  stop = _stop(front_end, "import numba; raise ValueError(numba.cuda.changed)")
  assert "AttributeError" in stop.message


def test_the_server_finds_packages_that_only_pythonpath_names(tmp_path):
  # The server starts isolated; a package that the judge has from PYTHONPATH
  # (or any other entry of its search path) must be there all the same.
  shutil.copytree(pathlib.Path(msgspec.__file__).parent, tmp_path / "msgspec")
  program = (
    "from kernels_eval.numba import client; "
    "print(client._library_folders()[0]); print(client._readable()[0])"
  )
  environment = os.environ | {
    "PYTHONPATH": f"{tmp_path}{os.pathsep}{pathlib.Path.cwd()}"
  }
  done = subprocess.run(
    [sys.executable, "-c", program],
    env=environment,
    capture_output=True,
    text=True,
    check=True,
  )
  first, readable = done.stdout.splitlines()
  assert first == str(tmp_path)
  assert str(tmp_path) in readable
