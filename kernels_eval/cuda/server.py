"""One GPU's launchers: hands them jobs, ends and replaces them.

`python -m kernels_eval.cuda.server`, a process of our own code. Judges connect
to its Unix socket; a job travels on to an idle launcher with its descriptor.
A launcher that exceeds a job's deadline is killed, and so is one whose context
is spoilt; others stand ready, and nobody waits for the driver to take the old
one down. A timing job runs alone on the GPU, and a judge may ask to be alone
with it, for processes of its own. When launchers fail again and again for
reasons of their own, the device is quarantined: every job is answered with the
reason, and no candidate is blamed.

Kernels of several launchers take turns on the GPU, so the clock alone would
blame one for its neighbours. A job that is beyond its deadline is killed only
when it has also had its `gpu_s`: an equal part of all time in which it was one
of several. Nor does anybody know which of several keeps the GPU, or whether the
driver is busy with the fault of one: only one is killed at a time, that which
runs for longest, none while one that has failed or was killed is being taken
down, and the others get some more time afterwards. (To run each once more alone
would keep the whole GPU, for as long again, for each kernel that does not end.)
A job is late by its kernel's fault or the driver's: which of them, its judge is
told when the killed launcher is gone, or stays although it is killed.
"""

import argparse
import dataclasses
import os
import pathlib
import select
import selectors
import socket
import sys
import time
from collections.abc import Callable

import msgspec

from kernels_eval.cuda import jobs, launcher_process, nursery
from kernels_eval.cuda.waiting import Job, Waiting

# Two launchers keep a GPU busy. The others stand ready where one is being
# replaced, or waits a second for the GPU to say that its kernel has failed. A
# launcher takes a gigabyte of the device.
MIN_LAUNCHERS, MAX_LAUNCHERS = 2, 4
BYTES_PER_LAUNCHER = 16 * 2**30  # of the device's memory
MAX_FAILURES = 3  # in a row, of launchers that no candidate has spoilt
# In a row, by launchers that live: a candidate, tried twice, may be the cause.
MAX_FAILED_JOBS = 12
START_S = 60.0
_RETRY_S = 0.02
_REAP_S = 10.0  # a killed process that is still there is stuck in the driver
_REQUEST = jobs.Run | jobs.Timing | jobs.Alone | jobs.Release
_MAX_JOBS = 2000  # of one launcher: what a context cannot give back is little


@dataclasses.dataclass
class _Dying:
  """A launcher that is killed and not gone yet."""

  pid: int
  deadline: float
  job: Job | None  # that was late, and is answered when this is over


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
    self._waiting = Waiting()
    self._launchers: list[launcher_process.LauncherProcess] = []
    self._dying: dict[int, _Dying] = {}  # by pidfd
    self._alone: socket.socket | None = None  # the judge that has the GPU
    self._hello: jobs.Hello | None = None
    self._num_failures = self._num_failed_jobs = 0
    self._reason = ""  # of the last failure
    self._shared_until = time.monotonic()
    self._short_since: float | None = None  # no launcher could be started
    self.is_quarantined = False

  def serve(self, until_closed: int) -> None:
    """Serves until the descriptor's other end is closed."""
    self._selector.register(until_closed, selectors.EVENT_READ, None)
    try:
      while True:
        self._check_deadlines()
        self._fill_up()
        self._hand_out()
        events = self._selector.select(self._wait_s())
        self._share_out()
        for key, _ in events:
          if key.data is None:
            return
          key.data(key.fileobj)
    finally:
      busy = [k.job for k in self._launchers if k.job is not None]
      for launcher in list(self._launchers):
        self._remove(launcher)
      late = [d.job for d in self._dying.values() if d.job is not None]
      for pidfd, dying in list(self._dying.items()):
        left_s = max(0, dying.deadline - time.monotonic())
        select.select([pidfd], [], [], left_s)
        launcher_process.is_gone(dying.pid)
        os.close(pidfd)
      for job in [*busy, *late, *self._waiting]:
        job.drop()
      for judge in self._judges:
        judge.close()
      self._listener.close()
      self._selector.close()

  @property
  def _busy(self):
    return [k for k in self._launchers if k.job is not None]

  @property
  def _num_rivals(self):
    """Launchers that share the GPU; one that is killed keeps its part."""
    return len(self._busy) + len(self._dying)

  def _wait_s(self):
    now, rivals = time.monotonic(), self._num_rivals
    ends = [
      k.expected_end(now, rivals)
      for k in self._launchers
      if not self._is_spared(k)
    ]
    if not self.is_quarantined:  # afterwards nothing follows from them
      ends += [dying.deadline for dying in self._dying.values()]
    nearest = min(ends, default=float("inf"))
    return max(0.0, min(nearest - now, 1.0))

  def _is_spared(self, launcher):
    """What is being taken down may be what its job waits for. Of a device that
    is given up nobody waits for anything."""
    return (
      bool(self._dying) and launcher.may_be_relieved and not self.is_quarantined
    )

  def _share_out(self):
    """Adds to each job what it has had of the GPU since the last time."""
    now = time.monotonic()
    for launcher in self._busy:
      launcher.gpu_s += (now - self._shared_until) / self._num_rivals
    self._shared_until = now

  def _accept(self, listener):
    try:
      judge, _ = listener.accept()
    except OSError:  # too many open files, say; it is there the next time, too
      time.sleep(_RETRY_S)
      return
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
    job = Job(judge, message, next(iter(descriptors), None), request)
    if self.is_quarantined:
      job.end(jobs.Outcome.MACHINE_FAILED, self._reason)
    elif job.descriptor is None and not job.for_judge:
      job.end(
        jobs.Outcome.MACHINE_FAILED,
        "the job's memory was lost: too many open files?",
      )
    else:
      self._waiting.add(job)

  def _release(self, judge):
    if self._alone is judge:
      self._alone = None
      self._waiting.end_turn()

  def _forget(self, judge):
    self._release(judge)
    self._selector.unregister(judge)
    judge.close()
    self._judges.discard(judge)
    self._greeted.discard(judge)
    self._waiting.forget(judge)

  @property
  def _num_launchers(self):
    if self._hello is None:
      return MIN_LAUNCHERS
    affordable = self._hello.memory_bytes // BYTES_PER_LAUNCHER
    return min(max(MIN_LAUNCHERS, affordable), MAX_LAUNCHERS)

  @property
  def _is_taken(self):
    """Whether nothing else may run or start."""
    return self._alone is not None or any(k.job.runs_alone for k in self._busy)

  def _fill_up(self):
    while (
      len(self._launchers) < self._num_launchers
      and not self.is_quarantined
      and not self._is_taken
    ):
      try:
        launcher = launcher_process.LauncherProcess(self._spawn, START_S)
      except OSError as error:  # too many processes; this is tried again
        now = time.monotonic()
        self._short_since = self._short_since or now
        if not self._launchers and now > self._short_since + START_S:
          self._quarantine(f"no launcher can be started: {error}")
        return
      self._short_since = None
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

  def _finished(self, launcher, message):
    report = msgspec.msgpack.decode(message, type=jobs.Report)
    launcher.end_job().answer(message)
    if report.outcome == jobs.Outcome.MACHINE_FAILED:
      self._num_failed_jobs += 1
      self._remove(launcher)
      if self._num_failed_jobs >= MAX_FAILED_JOBS:
        self._quarantine(report.message)
      return
    self._num_failures = self._num_failed_jobs = 0
    if (
      report.outcome == jobs.Outcome.KERNEL_FAILED
      or launcher.num_jobs >= _MAX_JOBS
    ):
      self._remove(launcher)

  def _failed(self, launcher, reason):
    """It failed for a reason of its own or the device's."""
    self._num_failures += 1
    if launcher.job is not None:
      launcher.end_job().end(jobs.Outcome.MACHINE_FAILED, reason)
    self._remove(launcher)
    if self._num_failures >= MAX_FAILURES:
      self._quarantine(reason)

  def _remove(self, launcher, late=None):
    """Kills a launcher; the judge of a job that was late is told when it is
    known why."""
    self._selector.unregister(launcher.socket)
    self._launchers.remove(launcher)
    launcher.kill()
    # Taking a context down, above all one with a running kernel, can take the
    # driver a second. The others go on.
    deadline = time.monotonic() + _REAP_S
    self._dying[launcher.pidfd] = _Dying(launcher.pid, deadline, late)
    self._selector.register(launcher.pidfd, selectors.EVENT_READ, self._reap)

  def _reap(self, pidfd):
    dying = self._dying[pidfd]
    if launcher_process.is_gone(dying.pid):
      del self._dying[pidfd]
      self._selector.unregister(pidfd)
      os.close(pidfd)
      if dying.job is not None:
        dying.job.end(jobs.Outcome.TIMED_OUT, "killed")
      for launcher in self._busy:
        launcher.relieve()

  def _quarantine(self, reason):
    self.is_quarantined = True
    self._reason = f"GPU {self._device} is not usable: {reason}"
    print(f"kernels_eval: {self._reason}", file=sys.stderr)
    self._waiting.fail(self._reason)
    for dying in self._dying.values():
      late, dying.job = dying.job, None
      if late is not None:
        late.end(jobs.Outcome.MACHINE_FAILED, self._reason)
    self._greet()

  def _check_deadlines(self):
    now = time.monotonic()
    if any(dying.deadline <= now for dying in self._dying.values()):
      if not self.is_quarantined:
        self._quarantine("a killed launcher does not end: stuck in the driver")
    overdue = [
      k
      for k in self._launchers
      if now >= k.expected_end(now, self._num_rivals) and not self._is_spared(k)
    ]
    for launcher in sorted(overdue, key=lambda k: k.started):
      if self._is_spared(launcher):  # since one has been killed
        continue
      if launcher.job is None:
        self._failed(launcher, f"no launcher started within {START_S:g} s")
        continue
      late = launcher.end_job()
      if self.is_quarantined:
        late.end(jobs.Outcome.MACHINE_FAILED, self._reason)
        late = None
      self._remove(launcher, late)

  def _hand_out(self):
    while (job := self._waiting.first()) is not None and not self._is_taken:
      ready = [k for k in self._launchers if k.hello and k.job is None]
      # No other kernel beside it, none that is still being killed, and no
      # context in the making.
      starting = any(k.hello is None for k in self._launchers)
      others = self._busy or starting or self._dying
      if not ready or (job.runs_alone and others):
        return
      self._waiting.take(job)
      if job.for_judge:
        self._alone = job.judge
        job.end(jobs.Outcome.DONE)
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
