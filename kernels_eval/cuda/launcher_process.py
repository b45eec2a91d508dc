"""A launcher, seen from the server that starts it."""

import os
import signal
import socket
import time
from collections.abc import Callable

from kernels_eval.cuda import jobs
from kernels_eval.cuda.waiting import Job

_RELIEF_S = 1.5  # of the GPU: a driver takes up to two seconds over a fault
_MAX_RELIEFS = 8  # of one job: it may be the one that does not end


class LauncherProcess:
  """A launcher and the job that it has. A class because it owns a process, a
  socket and the descriptor `pidfd`, which outlives `kill`."""

  def __init__(self, spawn: Callable[[int], int], start_s: float):
    """Starts it.

    Args:
      spawn: starts a launcher on a socket's descriptor, returns its process id.
      start_s: until it has to be ready.

    Raises:
      OSError: there is no process or no descriptor to be had now.
    """
    self.socket, theirs = socket.socketpair(
      socket.AF_UNIX, socket.SOCK_SEQPACKET
    )
    try:
      with theirs:
        self.pid = spawn(theirs.fileno())
      self.pidfd = _pidfd(self.pid)
    except OSError:
      self.socket.close()
      raise
    self.hello: jobs.Hello | None = None
    self.job: Job | None = None
    self.num_jobs = 0
    self.gpu_s = 0.0  # what the job has had of the GPU
    self.num_reliefs = 0
    self.started = time.monotonic()
    self.deadline = self.started + start_s

  def start(self, job: Job) -> None:
    """Gives it a job."""
    self.job = job
    self.num_jobs += 1
    self.gpu_s, self.num_reliefs = 0.0, 0
    self.started = time.monotonic()
    self.deadline = self.started + job.wall_s
    try:
      socket.send_fds(self.socket, [job.message], [job.descriptor])
    except OSError:
      pass  # it is dead: its end of file says so in a moment

  @property
  def may_be_relieved(self) -> bool:
    """Whether its job is one of several, and not yet often relieved."""
    return (
      self.job is not None
      and not self.job.runs_alone
      and self.num_reliefs < _MAX_RELIEFS
    )

  def relieve(self) -> None:
    """What may have kept the GPU from its job is gone: it gets some time."""
    if self.may_be_relieved and self.gpu_s > self.job.gpu_s - _RELIEF_S:
      self.gpu_s = self.job.gpu_s - _RELIEF_S
      self.num_reliefs += 1

  def end_job(self) -> Job:
    """Takes the job from it."""
    job, self.job, self.deadline = self.job, None, float("inf")
    return job

  def expected_end(self, now: float, num_rivals: int) -> float:
    """When its time is over: its deadline and, while `num_rivals` launchers
    share the GPU, the moment at which the job has had its part of that."""
    if self.job is None or self.gpu_s >= self.job.gpu_s:
      return self.deadline
    missing_s = self.job.gpu_s - self.gpu_s
    return max(self.deadline, now + missing_s * num_rivals)

  def kill(self) -> None:
    """Kills it; it is gone when `is_gone` says so."""
    self.socket.close()
    for end in (os.killpg, os.kill):  # it may not lead its group yet
      try:
        end(self.pid, signal.SIGKILL)
      except ProcessLookupError:
        pass


def _pidfd(pid):
  try:
    return os.pidfd_open(pid)
  except OSError:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise


def is_gone(pid: int) -> bool:
  """Whether a child has ended; it is reaped then."""
  try:
    return os.waitpid(pid, os.WNOHANG)[0] == pid
  except ChildProcessError:
    return True
