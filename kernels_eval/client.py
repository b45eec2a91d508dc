"""A pool of judge processes, and the client side of their protocol.

The calling process never compiles, loads or runs a candidate. A judge that
dies or does not answer is replaced within a second; its candidate is tried once
more, then reported as `infrastructure_error`, which is nobody's reward.
"""

import atexit
import collections
import hashlib
import os
import selectors
import shutil
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from kernels_eval import candidate, problems, temporary
from kernels_eval import worker as worker_lib
from kernels_eval.cpu.executor import NAME as CPU_EXECUTOR
from kernels_eval.cpu.executor import Settings
from kernels_eval.cuda import presence, server_process
from kernels_eval.judge import Hello
from kernels_eval.problems import composer
from kernels_eval.schema import (
  HARNESS_VERSION,
  Evaluation,
  Phase,
  ProblemCard,
  Request,
  Status,
)

_GRACE_S = 15.0
QUEUE_S = 600.0
_MAX_FAILED_STARTS = 3
_MAX_CACHED = 100_000
DEFAULT_SETTINGS = Settings()
EXECUTORS = ("auto", "cpu", "cuda")
CUDA_EXECUTOR = "cuda"


class HarnessError(Exception):
  """The harness cannot work on this machine; one line says why."""


def card(name: str) -> ProblemCard:
  """What a policy may know of a problem; UnknownProblem if there is none."""
  problem = problems.get(name)
  return ProblemCard(
    problem.name,
    problem.level,
    problem.statement,
    problem.signature,
    problem.launch,
  )


def function_key(name: str) -> str:
  """The same for problems that ask for the same function.

  Raises:
    UnknownProblem: there is no such problem.
  """
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
  rng = np.random.default_rng(seed)
  names: dict[str, str] = {}  # by function
  seen = set()
  for _ in range(100 * count):
    length = int(rng.integers(num_operators[0], num_operators[1] + 1))
    name = composer.sample(rng, length, reduced)
    if name in seen or not composer.is_sound(name):
      continue
    seen.add(name)
    names.setdefault(composer.function_key(name), name)
    if len(names) == count:
      return list(names.values())
  raise ValueError(
    f"{count} distinct compositions of {num_operators[0]} to "
    f"{num_operators[1]} operators do not exist ({len(names)} found)"
  )


def _key(request):
  return hashlib.sha256(
    b"\0".join(
      (
        HARNESS_VERSION.encode(),
        request.problem.encode(),
        request.text.encode("utf-8", "surrogatepass"),
      )
    )
  ).digest()


class Pool:
  """Judges candidates in parallel. Owns processes: close it, or use `with`."""

  def __init__(
    self,
    *,
    num_workers: int | None = None,
    seed: int = 0,
    settings: Settings = DEFAULT_SETTINGS,
    executor: str = "auto",
    with_timing: bool = False,
    device: int = 0,
  ):
    """Starts the judges.

    Args:
      num_workers: judge processes; None means one for each processor.
      seed: of all test inputs. Known to the judges, never to a candidate.
      settings: limits of an evaluation.
      executor: where candidates run: one of EXECUTORS; "auto" is the GPU where
        one is usable.
      with_timing: whether candidates that are right are timed (GPU).
      device: index of the GPU.

    Raises:
      HarnessError: this machine cannot judge (no compiler, say).
    """
    if executor not in EXECUTORS:
      raise HarnessError(
        f"no executor `{executor}`; there are {', '.join(EXECUTORS)}"
      )
    obstacle = presence.obstacle()
    if executor == "cuda" and obstacle is not None:
      raise HarnessError(obstacle)
    temporary.remove_stale()
    self._seed = seed
    self._settings = settings
    self._root = temporary.make_root()
    self._server: server_process.ServerProcess | None = None
    self._executor_arguments: list[str] = []
    self._executor_name = CPU_EXECUTOR
    self._serial = 0
    self._workers: list[worker_lib.Worker] = []
    self._cache: collections.OrderedDict[bytes, Evaluation] = (
      collections.OrderedDict()
    )
    self.num_evaluated = 0  # different texts given to a judge, faults too
    self.num_restarts = 0
    self._num_failed_starts = 0
    atexit.register(self.close)
    count = num_workers or len(os.sched_getaffinity(0))
    try:
      if executor != "cpu" and obstacle is None:
        self._start_server(device, with_timing)
      # The first judge builds what is missing; the others find it built.
      self._workers.append(self._spawn())
      self.hello = self._await_hello(self._workers[0])
      self._workers += [self._spawn() for _ in range(count - 1)]
    except BaseException:
      self.close()
      raise

  def _start_server(self, device, with_timing):
    self._server = server_process.ServerProcess(self._root, device)
    self._executor_name = CUDA_EXECUTOR
    self._executor_arguments = ["--server", str(self._server.socket)]
    if with_timing:
      self._executor_arguments.append("--timing")

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
  def description(self) -> str:
    """One line: executor, toolchain and active protections."""
    return (
      f"{len(self._workers)} judges, executor {self.hello.executor} "
      f"({self.hello.toolchain}); sandbox: {self.hello.protections}"
    )

  def evaluate(
    self,
    requests: Sequence[Request],
    on_result: Callable[[Evaluation], None] | None = None,
  ) -> list[Evaluation]:
    """Judges a batch; the answers stand in the order of the requests.

    Args:
      requests: candidates; equal texts for one problem are judged once.
      on_result: called with each answer as it arrives (progress bars).
    """
    answers: list[Evaluation | None] = [None] * len(requests)
    for index, evaluation in self.stream(requests):
      answers[index] = evaluation
      if on_result is not None:
        on_result(evaluation)
    return answers

  def stream(
    self, requests: Sequence[Request]
  ) -> Iterator[tuple[int, Evaluation]]:
    """Yields (place in `requests`, answer) as answers arrive."""
    jobs: dict[bytes, worker_lib.Job] = {}
    for index, request in enumerate(requests):
      refused = _refusal(request)
      if refused is not None:
        yield index, refused
        continue
      key = _key(request)
      if key in self._cache:
        self._cache.move_to_end(key)
        yield index, _renamed(self._cache[key], request)
      elif key in jobs:
        jobs[key].indices.append(index)
      else:
        jobs[key] = worker_lib.Job(request, [index], key)
    waiting = collections.deque(jobs.values())
    num_left = len(waiting)
    try:
      while num_left:
        for job, evaluation in self._turn(waiting):
          num_left -= 1
          self.num_evaluated += 1
          if evaluation.counts:
            self._cache[job.key] = evaluation
            if len(self._cache) > _MAX_CACHED:
              self._cache.popitem(last=False)
          for index in job.indices:
            yield index, _renamed(evaluation, requests[index])
    finally:
      # Whoever stops listening must not find old answers in the next batch.
      for i, worker in enumerate(self._workers):
        if worker.job is not None:
          worker.stop()
          self._workers[i] = self._spawn()

  def _turn(self, waiting):
    """Gives out work, waits for news once; yields what has ended."""
    for worker in self._workers:
      if waiting and worker.hello is not None and worker.job is None:
        worker.start(waiting.popleft(), self._seconds_allowed())
    with selectors.DefaultSelector() as selector:
      for i, worker in enumerate(self._workers):
        if worker.hello is None or worker.job is not None:
          selector.register(worker.process.stdout, selectors.EVENT_READ, i)
      nearest = min(w.deadline for w in self._workers)
      timeout = max(0.0, min(nearest - time.monotonic(), 1.0))
      ready = [key.data for key, _ in selector.select(timeout)]
    for i in ready:
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
        yield from self._replace(i, waiting, "the judge did not answer in time")

  def _seconds_allowed(self):
    s = self._settings
    seconds = 2 * s.compile_wall_s + s.run_wall_s + _GRACE_S
    # Jobs on a GPU stand in a queue.
    return seconds if self._server is None else seconds + QUEUE_S

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
        executor=self._executor_name,
        harness_version=HARNESS_VERSION,
      ),
    )

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

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self.close()


def _refusal(request):
  """The answer for a text that is too long for a judge's frame, or None."""
  try:
    candidate.check_size(request.text)
  except candidate.CandidateError as error:
    return Evaluation(
      id=request.id,
      problem=request.problem,
      status=error.status,
      phase=Phase.PARSE,
      message=error.message,
      executor=CPU_EXECUTOR,
      harness_version=HARNESS_VERSION,
    )
  return None


def _renamed(evaluation, request):
  if evaluation.id == request.id:
    return evaluation
  return msgspec.structs.replace(evaluation, id=request.id)
