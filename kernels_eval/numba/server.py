"""Compile server: imports numba.cuda once, then forks a child for each job.

Runs inside of the sandbox (`client.py` starts it there). The server itself is
trusted code and never runs a candidate's module: a child does, under limits and
a system-call filter (`seccomp.COMPILING`) that leave it nothing but reading
libraries and writing its result into one memory file. The child is believed in
nothing; its exit status and the result's bytes are handed on as they are.

    python -c BOOT PACKAGE_FOLDER SOCKET OUTPUT READABLE... [--first]
"""

import ctypes
import gc
import mmap
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback

import msgspec

from kernels_eval import frames, landlock, seccomp
from kernels_eval.numba import messages
from kernels_eval.numba.messages import Answer, CompileJob, LowerJob, Outcome

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_POLL_MS = 20
_ACCURACY_BYTES = 2**24
_READY = b"ready"


def _prctl(option, value):
  ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _mapped_bytes():
  """Address space in use, found by trying (a sandbox may have no /proc)."""
  before = resource.getrlimit(resource.RLIMIT_AS)
  low, high = 0, 2**40
  while high - low > _ACCURACY_BYTES:
    middle = (low + high) // 2
    resource.setrlimit(resource.RLIMIT_AS, (middle, before[1]))
    try:
      mmap.mmap(-1, resource.getpagesize()).close()
      high = middle
    except OSError:
      low = middle
  resource.setrlimit(resource.RLIMIT_AS, before)
  return high


def _limit(job, mapped_bytes):
  limits = job.limits
  values = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_AS: mapped_bytes + limits.memory_bytes,
    resource.RLIMIT_FSIZE: limits.result_bytes,
    resource.RLIMIT_NPROC: 1,
    resource.RLIMIT_CPU: int(limits.cpu_s) + 2,  # the server watches, too
    resource.RLIMIT_NOFILE: 64,
  }
  for which, value in values.items():
    resource.setrlimit(which, (value, value))


def _child(job, run, result, log, mapped_bytes):
  """The forked process; never returns."""
  status = 1
  try:
    os.setpgid(0, 0)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Descriptors 0 to 3 and no others: the socket is not for the candidate.
    null = os.open("/dev/null", os.O_RDWR)
    spare = max(result, log, null) + 1
    for i, descriptor in enumerate((null, log, log, result)):
      os.dup2(descriptor, spare + i)
    for i in range(4):
      os.dup2(spare + i, i)
    os.closerange(4, 256)
    _limit(job, mapped_bytes)
    seccomp.confine(seccomp.COMPILING)
    gc.disable()  # the process is short, and its memory is limited
    payload = msgspec.msgpack.encode(run(job))
    view = memoryview(payload)
    while view:
      view = view[os.write(3, view) :]
    status = 0
  except BaseException:
    traceback.print_exc()  # to the log
    status = messages.FAILED
  finally:
    os._exit(status)


def _cpu_s(pid):
  try:
    return time.clock_gettime((~pid << 3) | 2)
  except OSError:
    return 0.0


def _sweep(child):
  """Ends what the job may have left; it cannot fork where there is a filter."""
  try:
    os.killpg(child, signal.SIGKILL)
  except (ProcessLookupError, PermissionError):
    pass
  if os.getpid() != 1:
    return
  try:
    os.kill(-1, signal.SIGKILL)
  except ProcessLookupError:
    pass
  while True:
    try:
      os.waitpid(-1, 0)
    except ChildProcessError:
      return


class _Log:
  """What a child prints, up to a number of bytes."""

  def __init__(self, capacity):
    self.reader, self.writer = os.pipe()
    os.set_blocking(self.reader, False)
    self.capacity = capacity
    self.text = bytearray()

  def drain(self):
    while True:
      try:
        chunk = os.read(self.reader, 1 << 16)
      except BlockingIOError:
        return
      if not chunk:
        return
      self.text += chunk[: max(0, self.capacity - len(self.text))]


def _wait(pid, limits, log, connection):
  """(outcome, code) of a child, which is gone afterwards."""
  started = time.monotonic()
  poll = select.poll()
  process = os.pidfd_open(pid)
  poll.register(process, select.POLLIN)
  poll.register(log.reader, select.POLLIN)
  poll.register(connection, 0)
  cut = None
  while True:
    events = dict(poll.poll(_POLL_MS))
    log.drain()
    if process in events:
      break
    if events.get(connection.fileno(), 0) & select.POLLHUP:
      cut = Outcome.WALL_LIMIT  # the judge is gone
    elif time.monotonic() - started > limits.wall_s:
      cut = Outcome.WALL_LIMIT
    elif _cpu_s(pid) > limits.cpu_s:
      cut = Outcome.CPU_LIMIT
    if cut is not None:
      os.kill(pid, signal.SIGKILL)
      break
  _, status = os.waitpid(pid, 0)
  os.close(process)
  log.drain()
  if cut is not None:
    return cut, 0
  if os.WIFSIGNALED(status):
    number = os.WTERMSIG(status)
    if number == signal.SIGXCPU:
      return Outcome.CPU_LIMIT, 0
    return Outcome.SIGNALLED, number
  return Outcome.EXITED, os.WEXITSTATUS(status)


def _serve(job, run, connection, mapped_bytes):
  started = time.monotonic()
  log = _Log(job.limits.log_bytes)
  # Not close-on-exec of importance: the child executes nothing.
  result = os.memfd_create("result")
  try:
    try:
      pid = os.fork()
    except OSError as error:
      return Answer(Outcome.NOT_STARTED, error.errno, 0.0, "", b"")
    if pid == 0:
      _child(job, run, result, log.writer, mapped_bytes)
    outcome, code = _wait(pid, job.limits, log, connection)
    _sweep(pid)
    size = min(os.fstat(result).st_size, job.limits.result_bytes)
    contents = os.pread(result, size, 0) if outcome == Outcome.EXITED else b""
    wall_ms = (time.monotonic() - started) * 1000
    text = log.text.decode("utf-8", "replace")
    return Answer(outcome, code, wall_ms, text, contents)
  finally:
    for descriptor in (log.reader, log.writer, result):
      os.close(descriptor)


def _become_first():
  """Goes on as the first process of the PID namespace that was unshared."""
  pid = os.fork()
  if pid:
    os.closerange(3, 256)
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def serve(
  descriptor: int, output: str, readable: list[str], is_first: bool
) -> None:
  """Answers jobs until the socket closes."""
  _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
  if is_first:
    _become_first()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
  # Not before: libraries start threads and processes when they are imported.
  from kernels_eval.cpu.numba import lower
  from kernels_eval.numba import front_end

  front_end.warm_up(output)
  lower.warm_up()
  # From here on our own files (canonical solutions are among them) are closed
  # to the server's children, and nothing can be written.
  landlock.restrict(readable, ("/dev/null",))
  _prctl(_PR_SET_CHILD_SUBREAPER, 1)
  _prctl(_PR_SET_DUMPABLE, 0)
  gc.collect()
  gc.freeze()
  mapped_bytes = _mapped_bytes()
  decoder = msgspec.msgpack.Decoder(CompileJob | LowerJob)
  with (
    socket.socket(fileno=descriptor) as connection,
    connection.makefile("rwb", buffering=0) as stream,
  ):
    frames.write(stream, _READY)
    while (frame := frames.read(stream)) is not None:
      job = decoder.decode(frame)
      run = front_end.run if isinstance(job, CompileJob) else lower.run
      answer = _serve(job, run, connection, mapped_bytes)
      frames.write(stream, msgspec.msgpack.encode(answer))


def main(arguments: list[str]) -> None:
  """Arguments: SOCKET OUTPUT READABLE... [--first]."""
  is_first = arguments[-1] == "--first"
  if is_first:
    arguments = arguments[:-1]
  os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a forking process has no threads
  try:
    serve(int(arguments[0]), arguments[1], arguments[2:], is_first)
  except (BrokenPipeError, ConnectionResetError):
    sys.exit(0)  # the judge has ended
