"""What a Python function cannot do: read, wait, reach others, blame the
machine."""

import ast
import dataclasses
import pathlib
import subprocess
import sys

import msgspec
import pytest

from kernels_eval import seccomp
from kernels_eval.cpu import host
from kernels_eval.functions import answer, child, judging, pipelines
from kernels_eval.outcome import Stop
from kernels_eval.schema import Status
from kernels_eval.settings import Settings
from tests.kernels_eval import function_lab
from tests.kernels_eval.function_lab import RIGHT, verdict_on

judge = function_lab.judge

# Ways around the list of modules: to the system, and to what is being judged.
_POSIX = (
  "m = [c for c in ().__class__.__base__.__subclasses__() "
  "if c.__name__ == 'BuiltinImporter'][0].load_module('posix'); "
)
HOSTILE = {
  "starts a program": _POSIX + "m.system('id'); return 0",
  "forks": _POSIX + "m.fork(); return 0",
  "kills": _POSIX + "m.kill(1, 9); return 0",
  "writes a file": "open('/tmp/x', 'w'); return 0",
  "removes a file": _POSIX + "m.unlink('child.py'); return 0",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_function_is_ended(judge, what):
  found = verdict_on(judge, HOSTILE[what])
  assert found.status == Status.INTEGRITY_VIOLATION, found.message


def test_a_function_that_ends_the_process_has_not_passed(judge):
  found = verdict_on(judge, _POSIX + "m._exit(0)")
  assert found.status == Status.RUNTIME_ERROR
  assert "before all tests were done" in found.message


@pytest.mark.parametrize(
  "body",
  [
    'raise ValueError("\\ud800")',
    'raise SyntaxError("x", ("answer.py", 2**70, 1, ""))',
    _POSIX + "m._exit(127)",
    _POSIX + "m._exit(126)",
  ],
)
def test_no_ending_is_taken_for_the_machine_s_fault(judge, body):
  found = verdict_on(judge, body)
  assert found.status == Status.RUNTIME_ERROR, found.message
  assert msgspec.msgpack.encode(found)  # it can be sent to the client


# ------------------------------------------------------------------- reading


def _reads(judge, path):
  return verdict_on(judge, f"return len(open({str(path)!r}).read())")


def test_nothing_of_the_machine_can_be_read(judge, tmp_path):
  (tmp_path / "file").write_text("1")
  paths = [pipelines.__file__, tmp_path / "file", "/etc/ld.so.cache"]
  # Python's own files, the sandbox's, what it is given: its process has them.
  paths += [ast.__file__, sys.executable, "child.py", "job.json"]
  for path in paths:
    found = _reads(judge, path)
    assert found.status == Status.RUNTIME_ERROR, found.message
    assert "PermissionError" in found.message or "NotFound" in found.message
  found = verdict_on(judge, _POSIX + "return len(m.listdir('.'))")
  assert "PermissionError" in found.message


def test_a_package_in_the_readable_folder_is_closed(tmp_path, monkeypatch):
  """As where this one is installed beside Python's own."""
  prefix = tmp_path / "prefix"
  package = prefix / "site-packages" / "kernels_eval"
  package.mkdir(parents=True)
  secret = package / "pipelines.py"
  secret.write_text("STEPS = 1")
  folders = (*judging._READABLE, str(prefix))
  monkeypatch.setattr(judging, "_READABLE", folders)
  (tmp_path / "root").mkdir()
  judge = judging.FunctionJudge(tmp_path / "root", Settings(), seed=5)
  try:
    found = _reads(judge, secret)
    seen = judge._host.command(
      ["/bin/cat", str(secret)],
      str(tmp_path / "root"),
      host.Limits(5, 5, 2**30, 2**20, 1),
    )
  finally:
    judge.close()
  assert seen.ok  # the sandbox as such shows it
  assert found.status == Status.RUNTIME_ERROR
  assert "PermissionError" in found.message


def test_what_modules_load_later_is_loaded_before():
  """Their functions import at a call, when nothing can be read any more."""
  loaded = set(
    subprocess.run(
      [
        *(sys.executable, "-I", "-S", "-c"),
        "import sys, json, traceback\n"
        f"for name in {(*answer.MODULES, *child.LOADED_LATER)}:\n"
        "  __import__(name)\n"
        "print(*sys.modules)",
      ],
      capture_output=True,
      text=True,
      check=True,
    ).stdout.split()
  )
  num_imports = 0
  for name in answer.MODULES:
    path = getattr(__import__(name), "__file__", None)
    if path is None or not path.endswith(".py"):
      continue
    tree = ast.parse(pathlib.Path(path).read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for node in (n for f in functions for n in ast.walk(f)):
      if isinstance(node, ast.Import):
        imported = [alias.name for alias in node.names]
      elif isinstance(node, ast.ImportFrom) and not node.level:
        imported = [node.module]
      else:
        continue
      num_imports += 1
      assert loaded >= set(imported), (name, imported)
  assert num_imports > 2


# ------------------------------------------------------------------- waiting

_MODULE = _POSIX.replace("posix", "{}")
WAITS = {
  "sleeps": _MODULE.format("time") + "m.sleep(9)",
  "pauses": _MODULE.format("_signal") + "m.pause()",
  "waits for itself": _MODULE.format("_thread")
  + "l = m.allocate_lock(); l.acquire(); l.acquire(True, 9)",
  "reads": _POSIX + "m.read(0, 1)",
}


@pytest.mark.parametrize("what", WAITS)
def test_a_function_cannot_wait(judge, what):
  found = verdict_on(judge, f"{WAITS[what]}; {RIGHT}")
  # pause() says nothing of an error; it is over at once as well.
  passes = what == "pauses"
  assert found.status == (Status.PASSED if passes else Status.RUNTIME_ERROR)
  assert found.run_ms < 2000


def test_one_that_got_no_processor_is_not_held_to_account():
  settings = Settings(run_wall_s=20.0, run_cpu_s=5.0)
  idle = host.Answer(host.Outcome.WALL_LIMIT, 9, 2e4, "", 0, 0, False, 900.0)
  with pytest.raises(host.HostError, match="too busy: in 20 s the function"):
    judging._bad_end(idle, settings, has_begun=True)
  busy = dataclasses.replace(idle, cpu_ms=4900.0)
  stop = judging._bad_end(busy, settings, has_begun=True)
  assert isinstance(stop, Stop) and stop.status == Status.TIMEOUT
  assert "20 s" in stop.message


# ------------------------------------------------------- machines without it


def test_without_a_filter_no_function_is_judged(tmp_path, monkeypatch):
  """The file that the child is given says what such a kernel says."""
  copy = tmp_path / "seccomp.py"
  text = pathlib.Path(seccomp.__file__).read_text()
  copy.write_text(f"{text}\n\ndef is_available():\n  return False\n")
  files = [p for p in judging._FILES if p.name != "seccomp.py"]
  monkeypatch.setattr(judging, "_FILES", (*files, copy))
  (tmp_path / "root").mkdir()
  judge = judging.FunctionJudge(tmp_path / "root", Settings(), seed=5)
  found = verdict_on(judge, RIGHT)
  judge.close()
  assert found.status == Status.INFRASTRUCTURE_ERROR
  assert "no system-call filter" in found.message
