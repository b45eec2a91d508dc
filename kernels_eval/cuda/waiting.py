"""The jobs that wait for a GPU, and whose turn it is."""

import os
import socket
from collections.abc import Iterator

import msgspec

from kernels_eval.cuda import jobs


class Job:
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
    self.gpu_s = job.gpu_s if isinstance(job, jobs.Run) else 0.0
    self.runs_alone = not isinstance(job, jobs.Run)
    self.has_waited = False  # for a judge that had the GPU for itself

  def drop(self) -> None:
    """Closes what it owns."""
    if self.descriptor is not None:
      os.close(self.descriptor)

  def answer(self, report: bytes) -> None:
    """Sends the judge its report; that is the job's end."""
    self.drop()
    try:
      self.judge.send(report)
    except OSError:
      pass  # the judge is gone

  def end(self, outcome: jobs.Outcome, message: str = "") -> None:
    """Answers where no launcher does."""
    self.answer(msgspec.msgpack.encode(jobs.Report(outcome, message)))


class Waiting:
  """First come, first served, but for one rule: a judge that has had the GPU
  for itself may have kept it for minutes, so the jobs that came meanwhile go
  before the next such judge. A job waits for one of them at most."""

  def __init__(self):
    self._jobs: list[Job] = []

  def __iter__(self) -> Iterator[Job]:
    return iter(self._jobs)

  def add(self, job: Job) -> None:
    """Puts a job behind the others."""
    self._jobs.append(job)

  def first(self) -> Job | None:
    """The job whose turn it is; None where there is none."""
    owed = (job for job in self._jobs if job.has_waited)
    return next(owed, next(iter(self._jobs), None))

  def take(self, job: Job) -> None:
    """Removes a job, which stays as it is."""
    self._jobs.remove(job)

  def end_turn(self) -> None:
    """A judge gives the GPU back."""
    for job in self._jobs:
      job.has_waited = not job.for_judge

  def forget(self, judge: socket.socket) -> None:
    """Drops the jobs of a judge that has hung up."""
    for job in [job for job in self._jobs if job.judge is judge]:
      self._jobs.remove(job)
      job.drop()

  def fail(self, reason: str) -> None:
    """Answers all of them that the machine has failed."""
    for job in self._jobs:
      job.end(jobs.Outcome.MACHINE_FAILED, reason)
    self._jobs.clear()
