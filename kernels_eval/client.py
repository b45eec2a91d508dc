"""A pool of judge processes, and the client side of their protocol.

The calling process never compiles, loads or runs a candidate. A judge that dies
is replaced within a second, one that does not answer when the limits of its
candidate are over (`Settings`, 95 seconds by default). Its candidate is tried
once more, then reported as `infrastructure_error`, which is nobody's reward.
"""

import atexit
import collections
import os
import selectors
import shutil
import time
from collections.abc import Iterator

import msgspec

from kernels_eval import addresses, batches, temporary, verdict_cache
from kernels_eval import worker as worker_lib
from kernels_eval.cuda import presence, servers
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.executors import AUTO, CPU, CUDA, EXECUTORS
from kernels_eval.judge import Hello
from kernels_eval.schema import (
  Evaluation,
  Phase,
  Status,
)
from kernels_eval.settings import Settings

_GRACE_S = 15.0
# In the queue of a GPU: for judges that have it for themselves, and for a long
# job of each of the others.
QUEUE_S, QUEUE_S_PER_JUDGE = 600.0, 60.0
_MAX_FAILED_STARTS = 3
DEFAULT_SETTINGS = Settings()


def gpu_queue_s(num_judges: int) -> float:
  """How long a job of one of a GPU's judges may have to wait for it."""
  return QUEUE_S + QUEUE_S_PER_JUDGE * num_judges


DEFAULT_CUDA_SETTINGS = CudaSettings()


class HarnessError(Exception):
  """The harness cannot work on this machine; one line says why."""


def _kind(hello):
  """What verdicts depend on."""
  return hello.executor, hello.toolchain, hello.is_timing


class Pool(batches.Judges):
  """Judges candidates in parallel. Owns processes: close it, or use `with`."""

  def __init__(
    self,
    *,
    num_workers: int | None = None,
    seed: int = 0,
    settings: Settings = DEFAULT_SETTINGS,
    executor: str = AUTO,
    cuda_settings: CudaSettings = DEFAULT_CUDA_SETTINGS,
    cache: verdict_cache.Cache | None = None,
  ):
    """Starts the judges.

    Args:
      num_workers: judge processes, at least 1; None means one for each
        processor.
      seed: of all test inputs. Known to the judges, never to a candidate.
      settings: limits of an evaluation.
      executor: where candidates run: one of EXECUTORS; "auto" is the GPU where
        one is usable.
      cuda_settings: which GPUs, and what is done there beside judging. Judges
        are shared out among them; one that fails for good is given up while
        others are left.
      cache: of verdicts; stays the caller's to close. None means a
        `verdict_cache.Memory`, which ends with the pool.

    Raises:
      HarnessError: this machine cannot judge (no compiler, say), the GPUs are
        not alike, or more than the judges.
      ValueError: no judges are asked for.
    """
    if num_workers is not None and num_workers < 1:
      raise ValueError(f"num_workers={num_workers}; at least 1")
    if executor not in EXECUTORS:
      raise HarnessError(
        f"no executor `{executor}`; there are {', '.join(EXECUTORS)}"
      )
    obstacle = presence.obstacle()
    if executor == CUDA and obstacle is not None:
      raise HarnessError(obstacle)
    on_gpu = executor != CPU and obstacle is None
    if on_gpu:
      reason = servers.obstacle(cuda_settings, num_workers)
      if reason is not None:
        raise HarnessError(reason)
    temporary.remove_stale()
    self._seed = seed
    super().__init__(
      settings, verdict_cache.Memory() if cache is None else cache
    )
    self._root = temporary.make_root()
    self._gpus: servers.Servers | None = None
    self.hello: Hello | None = None
    self._serial = 0
    self._workers: list[worker_lib.Worker] = []
    # Of judges in a row, by GPU (None: the CPU).
    self._failed_starts: collections.Counter[int | None] = collections.Counter()
    atexit.register(self.close)
    count = num_workers or len(os.sched_getaffinity(0))
    firsts = 1
    try:
      if on_gpu:
        self._gpus = servers.Servers(self._root, cuda_settings)
        self.executor_name = CUDA
        firsts = len(cuda_settings.devices)
        count = max(count, firsts)
      # The first judge builds what is missing, the others find it built; the
      # first one of each GPU says whether that can be used.
      for _ in range(firsts):
        self._workers.append(self._spawn())
        self._await_hello(self._workers[-1])
      self.make_key = addresses.make_address(
        self.hello, settings, cuda_settings, seed
      )
      while len(self._workers) < count:
        self._workers.append(self._spawn())
    except BaseException:
      self.close()
      raise

  def _spawn(self, instead_of: worker_lib.Worker | None = None):
    self._serial += 1
    device, arguments = None, []
    if self._gpus is not None:
      others = (w.device for w in self._workers if w is not instead_of)
      device = self._gpus.least_loaded(others)
      arguments = self._gpus.arguments_for(device)
    return worker_lib.Worker(
      self._root / f"judge-{self._serial}",
      self._seed,
      self._settings,
      arguments,
      device,
    )

  def _await_hello(self, worker):
    while time.monotonic() < worker.deadline:
      frames_in = worker.receive()
      if frames_in is None:
        raise HarnessError("the judge process ended at its start")
      if frames_in:
        self._greet(worker, frames_in[0])
        return
      time.sleep(0.005)
    raise HarnessError(
      f"the judge did not start within {worker_lib.START_S:g} s"
    )

  def _greet(self, worker, frame):
    message = msgspec.msgpack.decode(frame, type=Hello | str)
    if isinstance(message, str):
      raise HarnessError(message)
    self.hello = self.hello or message
    if _kind(message) != _kind(self.hello):
      # One content address stands for the verdicts of all of them.
      raise HarnessError(
        f"GPU {worker.device} is not like the others: {message.toolchain}, not "
        f"{self.hello.toolchain}; a pool needs GPUs that are alike"
      )
    worker.hello = message
    worker.deadline = float("inf")
    self._failed_starts[worker.device] = 0

  @property
  def num_workers(self) -> int:
    """Judge processes."""
    return len(self._workers)

  @property
  def place(self) -> str:
    """Where candidates run: the executor, and of a GPU which one."""
    if self._gpus is None:
      return self.hello.executor
    devices = ", ".join(map(str, self._gpus.devices))
    return f"{self.hello.executor} on GPU {devices}"

  @property
  def description(self) -> str:
    """One line: executor, toolchain and active protections."""
    return (
      f"{len(self._workers)} judges, executor {self.place} "
      f"({self.hello.toolchain}); sandbox: {self.hello.protections}"
    )

  def turn(
    self,
    waiting: collections.deque[worker_lib.Job],
    wake_fd: int | None = None,
  ) -> Iterator[tuple[worker_lib.Job, Evaluation]]:
    """Gives out work, waits for news once; yields what has ended.

    Args:
      waiting: jobs to take from the left; one whose judge died comes back.
      wake_fd: a descriptor that ends the waiting when it can be read.
    """
    yield from self._check_servers(waiting)
    for worker in self._workers:
      if worker.hello is not None and worker.job is None:
        job = self._take(waiting, worker)
        if job is not None:
          worker.start(job, self.seconds_allowed)
    with selectors.DefaultSelector() as selector:
      for i, worker in enumerate(self._workers):
        if worker.hello is None or worker.job is not None:
          selector.register(worker.process.stdout, selectors.EVENT_READ, i)
      if wake_fd is not None:
        selector.register(wake_fd, selectors.EVENT_READ, None)
      nearest = min(w.deadline for w in self._workers)
      timeout = max(0.0, min(nearest - time.monotonic(), 1.0))
      ready = [key.data for key, _ in selector.select(timeout)]
    for i in ready:
      if i is None:
        continue
      worker = self._workers[i]
      received = worker.receive()
      if received is None:
        yield from self._replace(i, waiting, "the judge process ended")
        continue
      for frame in received:
        if worker.hello is None:
          try:
            self._greet(worker, frame)
          except HarnessError as error:
            # No good: its GPU, or the machine at this moment.
            if not self._has_others(worker.device):
              raise
            yield from self._replace(i, waiting, str(error))
            break
          continue
        evaluation = msgspec.msgpack.decode(frame, type=Evaluation)
        job, worker.job, worker.deadline = worker.job, None, float("inf")
        if not evaluation.counts and job.num_tries == 0:
          job.num_tries += 1
          job.failed_on = worker.device
          waiting.append(job)
        else:
          yield job, evaluation
    for i, worker in enumerate(self._workers):
      if time.monotonic() > worker.deadline:
        worker.kill()
        yield from self._replace(i, waiting, "the judge did not answer in time")

  def _check_servers(self, waiting):
    """Nothing starts the server of a GPU again."""
    for device, reason in self._gpus.ended() if self._gpus else ():
      yield from self._give_up_gpu(device, reason, waiting)

  def _take(self, waiting, worker):
    """A job for this judge; what has failed on its GPU is left to others, if
    any are up."""
    others = any(w.hello and w.device != worker.device for w in self._workers)
    for i, job in enumerate(waiting):
      if job.failed_on is None or job.failed_on != worker.device or not others:
        del waiting[i]
        return job
    return None

  def _has_others(self, device):
    return self._gpus is not None and self._gpus.devices != [device]

  @property
  def seconds_allowed(self) -> float:
    """For one judge's answer to one request. Jobs on a GPU stand in a queue."""
    if self._gpus is None:
      return super().seconds_allowed
    judges_of_one = -(-len(self._workers) // len(self._gpus.devices))
    return super().seconds_allowed + gpu_queue_s(judges_of_one)

  def _give_up_gpu(self, device, reason, waiting):
    """Its judges are replaced by others of the GPUs that are left; raises
    HarnessError where there are none."""
    if not self._has_others(device):
      raise HarnessError(reason)
    self._gpus.give_up(device, reason)
    theirs = [i for i, w in enumerate(self._workers) if w.device == device]
    for i in theirs:
      self._workers[i].hang_up()  # all at once
    for worker in [self._renew(i) for i in theirs]:
      yield from self._again(worker, waiting, reason)

  def _replace(self, i, waiting, reason):
    worker = self._workers[i]
    if worker.hello is None:
      self._failed_starts[worker.device] += 1
      if self._failed_starts[worker.device] >= _MAX_FAILED_STARTS:
        reason = f"{reason} while it was starting"
        yield from self._give_up_gpu(worker.device, reason, waiting)
        return
    yield from self._again(self._renew(i), waiting, reason)

  def _renew(self, i):
    """Another judge in the place of one, which is returned."""
    worker = self._workers[i]
    worker.stop()
    self.num_restarts += 1
    self._workers[i] = self._spawn(worker)
    return worker

  def _again(self, worker, waiting, reason):
    """Puts the job of a judge that is gone back, or yields its end."""
    job = worker.job
    if job is None:
      return
    job.num_tries += 1
    job.failed_on = worker.device
    if job.num_tries < 2:
      waiting.append(job)
      return
    fault = Status.INFRASTRUCTURE_ERROR
    yield (
      job,
      self.unjudged(job.request, fault, Phase.RUN, f"{reason}, twice"),
    )

  def abandon(self) -> None:
    """Replaces the judges that are at work."""
    for i, worker in enumerate(self._workers):
      if worker.job is not None:
        worker.stop()
        self._workers[i] = self._spawn(worker)

  def close(self) -> None:
    """Ends all processes and removes all files. May be called twice."""
    for worker in self._workers:
      worker.hang_up()  # all at once; they need some milliseconds
    for worker in self._workers:
      worker.stop()
    self._workers = []
    if self._gpus is not None:
      self._gpus.stop()
    shutil.rmtree(self._root, ignore_errors=True)
    atexit.unregister(self.close)
