"""One GPU's launchers: hands them jobs, ends and replaces them.

`python -m kernels_eval.cuda.server`, a process of our own code. Judges connect
to its Unix socket; a job travels on to an idle launcher with its descriptor.
A launcher that exceeds a job's deadline is killed, and so is one whose context
is spoilt; others stand ready, and nobody waits for the driver to take the old
one down. A timing job runs alone on the GPU, and a judge may ask to be alone
with it, for processes of its own. When launchers fail again and again for
reasons of their own, the device is quarantined: every job is answered with the
reason, and no candidate is blamed.
"""

import argparse
import collections
import os
import pathlib
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable

import msgspec

from kernels_eval.cuda import jobs, nursery

# Two launchers keep a GPU busy. The others stand ready where one is being
# replaced, or waits a second for the GPU to say that its kernel has failed. A
# launcher takes a gigabyte of the device.
MIN_LAUNCHERS, MAX_LAUNCHERS = 2, 4
BYTES_PER_LAUNCHER = 16 * 2**30  # of the device's memory
MAX_FAILURES = 3  # in a row, of launchers that no candidate has spoilt
START_S = 60.0
_REAP_S = 10.0  # a killed process that is still there is stuck in the driver
_REQUEST = jobs.Run | jobs.Timing | jobs.Alone | jobs.Release
_MAX_JOBS = 2000  # of one launcher: what a context cannot give back is little


class _Launcher:
  """A launcher process, and the job that it has."""

  def __init__(self, spawn: Callable[[int], int]):
    self.socket, theirs = socket.socketpair(
      socket.AF_UNIX, socket.SOCK_SEQPACKET
    )
    with theirs:
      self.pid = spawn(theirs.fileno())
    self.hello: jobs.Hello | None = None
    self.job: _Job | None = None
    self.num_jobs = 0
    self.deadline = time.monotonic() + START_S

  def start(self, job: "_Job") -> None:
    self.job = job
    self.num_jobs += 1
    self.deadline = time.monotonic() + job.wall_s
    try:
      socket.send_fds(self.socket, [job.message], [job.descriptor])
    except OSError:
      pass  # it is dead: its end of file says so in a moment

  def kill(self) -> None:
    """Kills it; it is gone when `waitpid` says so."""
    self.socket.close()
    for end in (os.killpg, os.kill):  # it may not lead its group yet
      try:
        end(self.pid, signal.SIGKILL)
      except ProcessLookupError:
        pass


def _is_gone(pid):
  try:
    return os.waitpid(pid, os.WNOHANG)[0] == pid
  except ChildProcessError:
    return True


class _Job:
  """A judge's request. It may own a descriptor."""

  def __init__(
    self,
    judge: socket.socket,
    message: bytes,
    descriptor: int | None,
    job: jobs.Run | jobs.Timing | jobs.Alone,
  ):
    self.judge = judge
    self.message = message
    self.descriptor = descriptor
    self.for_judge = isinstance(job, jobs.Alone)
    self.wall_s = 0.0 if self.for_judge else job.wall_s
    self.runs_alone = not isinstance(job, jobs.Run)

  def drop(self) -> None:
    if self.descriptor is not None:
      os.close(self.descriptor)

  def answer(self, report: bytes) -> None:
    self.drop()
    try:
      self.judge.send(report)
    except OSError:
      pass  # the judge is gone


def _report(outcome, message):
  return msgspec.msgpack.encode(jobs.Report(outcome, message))


class Server:
  """Launchers and waiting jobs. A class because it owns processes."""

  def __init__(
    self, device: int, spawn: Callable[[int], int], listener: socket.socket
  ):
    """Args: index of the GPU, what starts a launcher on a socket's descriptor
    and returns its process id, a listening socket."""
    self._device = device
    self._spawn = spawn
    self._listener = listener
    self._selector = selectors.DefaultSelector()
    self._selector.register(listener, selectors.EVENT_READ, self._accept)
    self._judges: set[socket.socket] = set()
    self._greeted: set[socket.socket] = set()
    self._waiting: collections.deque[_Job] = collections.deque()
    self._launchers: list[_Launcher] = []
    self._dying: dict[int, tuple[int, float]] = {}  # pidfd: pid, deadline
    self._alone: socket.socket | None = None  # the judge that has the GPU
    self._hello: jobs.Hello | None = None
    self._num_failures = 0
    self._reason = ""  # of the last failure
    self.is_quarantined = False

  def serve(self, until_closed: int) -> None:
    """Serves until the descriptor's other end is closed."""
    self._selector.register(until_closed, selectors.EVENT_READ, None)
    try:
      self._fill_up()
      while True:
        deadlines = [k.deadline for k in self._launchers]
        if not self.is_quarantined:  # afterwards nothing follows from them
          deadlines += [deadline for _, deadline in self._dying.values()]
        nearest = min(deadlines, default=float("inf"))
        wait = max(0.0, min(nearest - time.monotonic(), 1.0))
        for key, _ in self._selector.select(wait):
          if key.data is None:
            return
          key.data(key.fileobj)
        self._check_deadlines()
        self._hand_out()
    finally:
      busy = [k.job for k in self._launchers if k.job is not None]
      for launcher in list(self._launchers):
        self._remove(launcher)
      for pidfd, (pid, deadline) in list(self._dying.items()):
        select.select([pidfd], [], [], max(0, deadline - time.monotonic()))
        _is_gone(pid)
        os.close(pidfd)
      for job in [*busy, *self._waiting]:
        job.drop()
      for judge in self._judges:
        judge.close()
      self._listener.close()
      self._selector.close()

  def _accept(self, listener):
    judge, _ = listener.accept()
    self._judges.add(judge)
    self._selector.register(judge, selectors.EVENT_READ, self._receive_job)
    self._greet()

  def _greet(self):
    """Tells those who wait what there is."""
    if self.is_quarantined:
      message = jobs.StartFailed(self._reason)
    elif self._hello is not None:
      message = self._hello
    else:
      return
    for judge in self._judges - self._greeted:
      try:
        judge.send(msgspec.msgpack.encode(message))
      except OSError:
        pass
    self._greeted |= self._judges

  def _receive_job(self, judge):
    try:
      message, descriptors, _, _ = socket.recv_fds(
        judge, jobs.MAX_MESSAGE_BYTES, 1
      )
    except OSError:
      message, descriptors = b"", []
    if not message:
      self._forget(judge)
      return
    try:
      request = msgspec.msgpack.decode(message, type=_REQUEST)
    except msgspec.MsgspecError:  # cut: `connection.py` sends none too long
      for descriptor in descriptors:
        os.close(descriptor)
      self._forget(judge)
      return
    if isinstance(request, jobs.Release):
      self._release(judge)
      return
    job = _Job(judge, message, next(iter(descriptors), None), request)
    if self.is_quarantined:
      job.answer(_report(jobs.Outcome.MACHINE_FAILED, self._reason))
    else:
      self._waiting.append(job)

  def _release(self, judge):
    if self._alone is judge:
      self._alone = None

  def _forget(self, judge):
    self._release(judge)
    self._selector.unregister(judge)
    judge.close()
    self._judges.discard(judge)
    self._greeted.discard(judge)
    kept = collections.deque()
    for job in self._waiting:
      if job.judge is judge:
        job.drop()
      else:
        kept.append(job)
    self._waiting = kept

  @property
  def _num_launchers(self):
    if self._hello is None:
      return MIN_LAUNCHERS
    affordable = self._hello.memory_bytes // BYTES_PER_LAUNCHER
    return min(max(MIN_LAUNCHERS, affordable), MAX_LAUNCHERS)

  def _fill_up(self):
    while (
      len(self._launchers) < self._num_launchers and not self.is_quarantined
    ):
      launcher = _Launcher(self._spawn)
      self._launchers.append(launcher)
      self._selector.register(
        launcher.socket,
        selectors.EVENT_READ,
        lambda _, launcher=launcher: self._receive_report(launcher),
      )

  def _receive_report(self, launcher):
    try:
      message = launcher.socket.recv(jobs.MAX_MESSAGE_BYTES)
    except OSError:
      message = b""
    if not message:
      self._failed(launcher, "the launcher process ended")
    elif launcher.hello is None:
      self._started(launcher, message)
    else:
      self._finished(launcher, message)

  def _started(self, launcher, message):
    hello = msgspec.msgpack.decode(message, type=jobs.Hello | jobs.StartFailed)
    if isinstance(hello, jobs.StartFailed):
      self._failed(launcher, hello.reason)
      return
    launcher.hello = self._hello = hello
    launcher.deadline = float("inf")
    self._greet()
    self._fill_up()

  def _finished(self, launcher, message):
    report = msgspec.msgpack.decode(message, type=jobs.Report)
    job, launcher.job, launcher.deadline = launcher.job, None, float("inf")
    job.answer(message)
    if report.outcome == jobs.Outcome.MACHINE_FAILED:
      self._failed(launcher, report.message)
      return
    self._num_failures = 0
    if (
      report.outcome == jobs.Outcome.KERNEL_FAILED
      or launcher.num_jobs >= _MAX_JOBS
    ):
      self._remove(launcher)
    self._fill_up()

  def _failed(self, launcher, reason):
    """It failed for a reason of its own or the device's."""
    self._num_failures += 1
    self._reason = reason
    if launcher.job is not None:
      launcher.job.answer(_report(jobs.Outcome.MACHINE_FAILED, reason))
      launcher.job = None
    self._remove(launcher)
    if self._num_failures >= MAX_FAILURES:
      self._quarantine(reason)
    self._fill_up()

  def _remove(self, launcher):
    self._selector.unregister(launcher.socket)
    self._launchers.remove(launcher)
    launcher.kill()
    # Taking a context down, above all one with a running kernel, can take the
    # driver a second. The others go on.
    pidfd = os.pidfd_open(launcher.pid)
    self._dying[pidfd] = (launcher.pid, time.monotonic() + _REAP_S)
    self._selector.register(pidfd, selectors.EVENT_READ, self._reap)

  def _reap(self, pidfd):
    pid, _ = self._dying[pidfd]
    if _is_gone(pid):
      del self._dying[pidfd]
      self._selector.unregister(pidfd)
      os.close(pidfd)

  def _quarantine(self, reason):
    self.is_quarantined = True
    self._reason = f"GPU {self._device} is not usable: {reason}"
    print(f"kernels_eval: {self._reason}", file=sys.stderr)
    for job in self._waiting:
      job.answer(_report(jobs.Outcome.MACHINE_FAILED, self._reason))
    self._waiting.clear()
    self._greet()

  def _check_deadlines(self):
    now = time.monotonic()
    if any(deadline <= now for _, deadline in self._dying.values()):
      if not self.is_quarantined:
        self._quarantine("a killed launcher does not end: stuck in the driver")
    for launcher in list(self._launchers):
      if time.monotonic() < launcher.deadline:
        continue
      if launcher.job is None:
        self._failed(launcher, f"no launcher started within {START_S:g} s")
        continue
      job, launcher.job = launcher.job, None
      self._remove(launcher)
      job.answer(_report(jobs.Outcome.TIMED_OUT, "killed"))
      self._fill_up()

  def _hand_out(self):
    while self._waiting and self._alone is None:
      ready = [k for k in self._launchers if k.hello and k.job is None]
      busy = [k.job for k in self._launchers if k.job is not None]
      if not ready or any(job.runs_alone for job in busy):
        return
      # No other kernel beside it, none that is still being killed, and no
      # context in the making.
      starting = any(k.hello is None for k in self._launchers)
      others = busy or starting or self._dying
      if self._waiting[0].runs_alone and others:
        return
      job = self._waiting.popleft()
      if job.for_judge:
        self._alone = job.judge
        job.answer(_report(jobs.Outcome.DONE, ""))
      else:
        ready[0].start(job)


def main(argv: list[str]) -> int:
  """Serves until standard input closes."""
  parser = argparse.ArgumentParser(prog="python -m kernels_eval.cuda.server")
  parser.add_argument("--socket", type=pathlib.Path, required=True)
  parser.add_argument("--device", type=int, default=0)
  arguments = parser.parse_args(argv)
  listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  listener.bind(str(arguments.socket))
  listener.listen(256)
  helpers = arguments.socket.with_name(f"{arguments.socket.name}.helpers")
  spawn = nursery.prepare(arguments.device, helpers)
  Server(arguments.device, spawn, listener).serve(0)
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
