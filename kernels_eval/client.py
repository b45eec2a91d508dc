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
import numpy as np

from kernels_eval import addresses, batches, problems, temporary, verdict_cache
from kernels_eval import worker as worker_lib
from kernels_eval.cuda import presence, server_process
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.executors import AUTO, CPU, CUDA, EXECUTORS
from kernels_eval.functions import pipelines
from kernels_eval.judge import Hello
from kernels_eval.problems import composer
from kernels_eval.schema import (
  HARNESS_VERSION,
  Evaluation,
  Phase,
  ProblemCard,
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


def card(name: str) -> ProblemCard:
  """What a policy may know of a problem; UnknownProblem if there is none."""
  if pipelines.is_name(name):
    function = _function(name)
    return ProblemCard(
      name, function.level, function.statement, function.signature, "", "python"
    )
  problem = problems.get(name)
  return ProblemCard(
    problem.name,
    problem.level,
    problem.statement,
    problem.signature,
    problem.launch,
  )


def _function(name):
  try:
    return pipelines.get(name)
  except pipelines.PipelineError as error:
    raise problems.UnknownProblem(f"no problem `{name}`: {error}") from None


def function_key(name: str) -> str:
  """The same for problems that ask for the same function.

  Raises:
    UnknownProblem: there is no such problem.
  """
  if pipelines.is_name(name):
    return pipelines.function_key(_function(name).name)
  if problems.get(name).name.startswith(composer.PREFIX):
    return composer.function_key(name)
  return name


def compositions(
  seed: int, count: int, num_operators: tuple[int, int], reduced: float
) -> list[str]:
  """Names of composed problems, no two of the same function; the same ones for
  the same arguments.

  Args:
    seed: of the draw.
    count: how many.
    num_operators: shortest and longest chain.
    reduced: fraction that ends in a reduction.
  """
  return _distinct(seed, count, num_operators, reduced, composer)


def functions(
  seed: int, count: int, num_steps: tuple[int, int], with_result: float
) -> list[str]:
  """The same for Python functions of lists (functions/pipelines.py).

  Args:
    seed: of the draw.
    count: how many.
    num_steps: fewest and most steps.
    with_result: fraction that ends in one number.
  """
  return _distinct(seed, count, num_steps, with_result, pipelines)


def _distinct(seed, count, lengths, reduced, source):
  """Names of `source` (composer or pipelines), each of another function."""
  rng = np.random.default_rng(seed)
  names: dict[str, str] = {}  # by function
  seen = set()
  for _ in range(100 * count):
    length = int(rng.integers(lengths[0], lengths[1] + 1))
    name = source.sample(rng, length, reduced)
    if name in seen or not source.is_sound(name):
      continue
    seen.add(name)
    names.setdefault(source.function_key(name), name)
    if len(names) == count:
      return list(names.values())
  raise ValueError(
    f"{count} distinct compositions of {lengths[0]} to {lengths[1]} operators "
    f"do not exist ({len(names)} found)"
  )


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
      cuda_settings: which GPU (a pool uses one), and what is done there beside
        judging.
      cache: of verdicts; stays the caller's to close. None means a
        `verdict_cache.Memory`, which ends with the pool.

    Raises:
      HarnessError: this machine cannot judge (no compiler, say).
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
    temporary.remove_stale()
    self._seed, self._device = seed, cuda_settings.device
    super().__init__(
      settings, verdict_cache.Memory() if cache is None else cache
    )
    self._root = temporary.make_root()
    self._server: server_process.ServerProcess | None = None
    self._executor_arguments: list[str] = []
    self._serial = 0
    self._workers: list[worker_lib.Worker] = []
    self._num_failed_starts = 0
    atexit.register(self.close)
    count = num_workers or len(os.sched_getaffinity(0))
    try:
      if executor != CPU and obstacle is None:
        self._start_server(cuda_settings)
      # The first judge builds what is missing; the others find it built.
      self._workers.append(self._spawn())
      self.hello = self._await_hello(self._workers[0])
      self.make_key = addresses.make_address(
        self.hello, settings, cuda_settings, seed
      )
      self._workers += [self._spawn() for _ in range(count - 1)]
    except BaseException:
      self.close()
      raise

  def _start_server(self, settings):
    self._server = server_process.ServerProcess(self._root, settings.device)
    self.executor_name = CUDA
    self._executor_arguments = [
      *("--server", str(self._server.socket)),
      *("--cuda-settings", msgspec.json.encode(settings).decode()),
    ]

  def _spawn(self):
    self._serial += 1
    return worker_lib.Worker(
      self._root / f"judge-{self._serial}",
      self._seed,
      self._settings,
      self._executor_arguments,
    )

  def _await_hello(self, worker):
    while time.monotonic() < worker.deadline:
      frames_in = worker.receive()
      if frames_in is None:
        raise HarnessError("the judge process ended at its start")
      if frames_in:
        return self._greet(worker, frames_in[0])
      time.sleep(0.005)
    raise HarnessError(
      f"the judge did not start within {worker_lib.START_S:g} s"
    )

  def _greet(self, worker, frame):
    message = msgspec.msgpack.decode(frame, type=Hello | str)
    if isinstance(message, str):
      raise HarnessError(message)
    worker.hello = message
    worker.deadline = float("inf")
    self._num_failed_starts = 0
    return message

  @property
  def num_workers(self) -> int:
    """Judge processes."""
    return len(self._workers)

  @property
  def description(self) -> str:
    """One line: executor, toolchain and active protections."""
    place = f" on GPU {self._device}" if self._server else ""
    return (
      f"{len(self._workers)} judges, executor {self.hello.executor}{place} "
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
    for worker in self._workers:
      if waiting and worker.hello is not None and worker.job is None:
        worker.start(waiting.popleft(), self.seconds_allowed)
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
          self._greet(worker, frame)
          continue
        evaluation = msgspec.msgpack.decode(frame, type=Evaluation)
        job, worker.job, worker.deadline = worker.job, None, float("inf")
        if not evaluation.counts and job.num_tries == 0:
          job.num_tries += 1
          waiting.append(job)
        else:
          yield job, evaluation
    for i, worker in enumerate(self._workers):
      if time.monotonic() > worker.deadline:
        worker.kill()
        yield from self._replace(i, waiting, "the judge did not answer in time")

  @property
  def seconds_allowed(self) -> float:
    """For one judge's answer to one request. Jobs on a GPU stand in a queue."""
    if self._server is None:
      return super().seconds_allowed
    return super().seconds_allowed + gpu_queue_s(len(self._workers))

  def _replace(self, i, waiting, reason):
    worker = self._workers[i]
    job = worker.job
    worker.stop()
    self.num_restarts += 1
    if worker.hello is None:
      self._num_failed_starts += 1
      if self._num_failed_starts >= _MAX_FAILED_STARTS:
        raise HarnessError(reason + " while it was starting")
    self._workers[i] = self._spawn()
    if job is None:
      return
    job.num_tries += 1
    if job.num_tries < 2:
      waiting.append(job)
      return
    yield (
      job,
      Evaluation(
        id=job.request.id,
        problem=job.request.problem,
        status=Status.INFRASTRUCTURE_ERROR,
        phase=Phase.RUN,
        message=f"{reason}, twice",
        executor=self.executor_name,
        harness_version=HARNESS_VERSION,
      ),
    )

  def abandon(self) -> None:
    """Replaces the judges that are at work."""
    for i, worker in enumerate(self._workers):
      if worker.job is not None:
        worker.stop()
        self._workers[i] = self._spawn()

  def close(self) -> None:
    """Ends all processes and removes all files. May be called twice."""
    for worker in self._workers:
      worker.hang_up()  # all at once; they need some milliseconds
    for worker in self._workers:
      worker.stop()
    self._workers = []
    if self._server is not None:
      self._server.stop()
    shutil.rmtree(self._root, ignore_errors=True)
    atexit.unregister(self.close)
