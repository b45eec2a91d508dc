"""Judges a Python function by hidden tests. Trusted code.

The candidate's own code runs in a process of its own in the sandbox, which is
given inputs and gives back values, as JSON (a tuple counts as a list). Right
answers never leave this process.
"""

import hashlib
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from typing import Any

import msgspec

from kernels_eval import landlock, sandbox, seccomp
from kernels_eval.cpu import failures, toolchain
from kernels_eval.cpu import host as host_lib
from kernels_eval.functions import answer, child, pipelines
from kernels_eval.outcome import Stop
from kernels_eval.schema import (
  HARNESS_VERSION,
  Diagnostic,
  Evaluation,
  Finding,
  Phase,
  Request,
  Status,
)
from kernels_eval.settings import Settings

NAME = "python"
_MEMORY_BYTES = 2**29
_RESULT_BYTES = 2**20
_MOST_LINES = 10**6  # of a candidate, beyond what any text can have
_SHOWN = 80  # characters of a list in a message
_READABLE = (sys.base_prefix,)  # until the candidate begins
_FILES = tuple(
  pathlib.Path(module.__file__) for module in (child, landlock, seccomp)
)


class _Record(msgspec.Struct, frozen=True):
  """What the child has written; every field as untrusted as the child."""

  kind: str
  values: list[Any] = []
  text: str = ""
  line: int | None = None


class FunctionJudge:
  """Owns a sandboxed host process from the first candidate on; close it."""

  def __init__(self, root: pathlib.Path, settings: Settings, seed: int):
    """Args: an existing folder for temporary files, limits, the judge's
    secret."""
    self._root = root
    self._settings = settings
    self._seed = seed
    self._tools: toolchain.Toolchain | None = None
    self._host: host_lib.Host | None = None

  def close(self) -> None:
    """Ends the host. Any thread may call it."""
    host, self._host = self._host, None
    tools, self._tools = self._tools, None
    if host is not None:
      host.close()
    if tools is not None:
      tools.release()

  def evaluate(self, request: Request) -> Evaluation:
    """The verdict; never raises for anything that a candidate does."""
    facts: dict[str, Any] = {
      "id": request.id,
      "problem": request.problem,
      "executor": NAME,
      "source_sha256": hashlib.sha256(
        request.text.encode("utf-8", "replace")
      ).hexdigest(),
      "harness_version": HARNESS_VERSION,
      "phase": Phase.PARSE,
    }
    try:
      self._steps(request, facts)
    except Stop as stop:
      facts |= {
        "status": stop.status,
        "message": stop.message,
        "diagnostics": stop.diagnostics,
        "finding": stop.finding,
      }
    except (
      pipelines.PipelineError,
      host_lib.HostError,
      toolchain.ToolchainError,
      OSError,
      MemoryError,
    ) as error:
      self.close()
      facts |= {
        "status": Status.INFRASTRUCTURE_ERROR,
        "message": str(error) or "the judge ran out of memory",
      }
    return Evaluation(**facts)

  def _steps(self, request, facts):
    """Adds to `facts` as it goes; raises Stop."""
    tests = pipelines.tests(request.problem, self._seed)
    facts["num_cases"] = len(tests)
    source = answer.source_of(request.text)
    answer.check(source)
    facts["phase"] = Phase.RUN
    started = time.perf_counter()
    record = self._run(source, [xs for xs, _ in tests])
    facts["run_ms"] = (time.perf_counter() - started) * 1000
    _check_ending(record, facts)
    facts["phase"] = Phase.JUDGE
    _compare(record.values, tests, facts)
    facts |= {
      "status": Status.PASSED,
      "message": f"right on all {len(tests)} tests",
    }

  def _start(self):
    self._tools = toolchain.prepare()
    self._host = host_lib.Host(
      self._tools, sandbox.probe(), self._root, readable=_READABLE
    )

  def _run(self, source, inputs) -> _Record:
    """The child's record.

    Raises:
      Stop: it came to no end, or to a bad one.
      HostError: a fault of the machine.
    """
    if self._host is None:
      self._start()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="job-", dir=self._root))
    try:
      for path in _FILES:
        shutil.copy(path, folder)
      job = {"source": source, "inputs": inputs, "modules": answer.MODULES}
      # Lone surrogates cannot be written: they become question marks.
      (folder / "job.json").write_text(json.dumps(job), "utf-8", "replace")
      settings = self._settings
      done = self._host.command(
        [
          str(pathlib.Path(sys.executable).resolve()),
          *("-I", "-S", "-B"),
          child.__file__.rpartition("/")[2],
        ],
        str(folder),
        host_lib.Limits(
          settings.run_wall_s,
          settings.run_cpu_s,
          _MEMORY_BYTES,
          _RESULT_BYTES,
          num_processes=1,
        ),
      )
      if not done.ok:
        raise _bad_end(done, settings, _has_begun(folder / "result.json"))
      return _read(folder / "result.json")
    finally:
      shutil.rmtree(folder, ignore_errors=True)


def _has_begun(path):
  """Whether the child has come to the candidate's first line."""
  try:
    return path.stat().st_size > 0
  except FileNotFoundError:
    return False


def _bad_end(done, settings, has_begun):
  """A Stop for a child that did not exit with status 0."""
  outcome = host_lib.Outcome
  if done.outcome == outcome.NOT_STARTED:
    raise host_lib.HostError(f"cannot fork for Python (errno {done.code})")
  if not has_begun:
    last = (done.log.strip().splitlines() or [done.outcome.name.lower()])[-1]
    raise host_lib.HostError(f"cannot run Python: {last[:200]}")
  limit_s = failures.limit_reached(
    done, "function", settings.run_wall_s, settings.run_cpu_s
  )
  if limit_s is not None:
    return Stop(Status.TIMEOUT, f"no end within {limit_s:g} s")
  if done.outcome == outcome.SIGNALLED and done.code == signal.SIGSYS:
    return Stop(
      Status.INTEGRITY_VIOLATION, "a system call that a function needs not make"
    )
  if done.outcome == outcome.SIGNALLED and done.code == signal.SIGKILL:
    raise host_lib.HostError("something killed Python; out of memory?")
  how = "signal" if done.outcome == outcome.SIGNALLED else "status"
  return Stop(Status.RUNTIME_ERROR, f"Python ended with {how} {done.code}")


def _read(path) -> _Record:
  try:
    with open(path, "rb") as file:
      raw = file.read(_RESULT_BYTES + 1)
    # Not msgspec's decoder, for whole numbers of any size.
    record = msgspec.convert(json.loads(raw), _Record)
  except (FileNotFoundError, ValueError, RecursionError):
    raise Stop(
      Status.RUNTIME_ERROR, "Python ended before all tests were done"
    ) from None
  # Neither lone surrogates nor lines of any size can be sent on.
  has_line = record.line is not None and 0 < record.line <= _MOST_LINES
  return msgspec.structs.replace(
    record,
    text=record.text.encode("utf-8", "replace").decode(),
    line=record.line if has_line else None,
  )


def _check_ending(record, facts):
  """Raises Stop for a text that does not compile, or an exception."""
  if record.kind == "values":
    return
  facts["num_cases_passed"] = 0
  diagnostic = Diagnostic("error", record.text, record.line, None)
  if record.kind == "compile":
    raise Stop(Status.COMPILE_ERROR, _at(record), diagnostics=(diagnostic,))
  raise Stop(
    Status.RUNTIME_ERROR,
    _at(record),
    diagnostics=(diagnostic,),
    finding=Finding("exception", record.text, record.line),
  )


def _at(record):
  where = f" (line {record.line})" if record.line else ""
  return f"{record.text}{where}"


def _shown(value):
  text = json.dumps(value)
  return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _same(got, expected):
  """Equal and of the same types: True is not 1, and 1.0 is not either."""
  if type(got) is not type(expected):
    return False
  if isinstance(expected, list):
    return len(got) == len(expected) and all(
      _same(a, b) for a, b in zip(got, expected, strict=True)
    )
  return got == expected


def _compare(values, tests, facts):
  """Raises Stop at the first test whose value is wrong."""
  for i, (xs, expected) in enumerate(tests):
    facts["num_cases_passed"] = i
    if i >= len(values):
      raise Stop(
        Status.RUNTIME_ERROR, "Python ended before all tests were done"
      )
    if not _same(values[i], expected):
      raise Stop(
        Status.WRONG_ANSWER,
        f"solve({_shown(xs)}) is {_shown(values[i])}, expected "
        f"{_shown(expected)}",
      )
  facts["num_cases_passed"] = len(tests)
