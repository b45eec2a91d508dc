"""What every pool does with candidates, all there or still coming: texts that
are too long are refused, equal texts are judged once, verdicts are remembered,
answers stand in the order of the requests."""

import collections
from collections.abc import Callable, Iterator, Sequence

import msgspec

from kernels_eval import candidate, verdict_cache
from kernels_eval import worker as worker_lib
from kernels_eval.cpu.executor import NAME as CPU_EXECUTOR
from kernels_eval.inbox import Inbox
from kernels_eval.schema import (
  HARNESS_VERSION,
  Evaluation,
  Phase,
  Request,
  Status,
)
from kernels_eval.settings import Settings

_GRACE_S = 15.0


class Judges:
  """Judges batches. A pool of processes (`client.Pool`) or of machines
  (`ray_pool.RayPool`) gives `turn`, `abandon` and `close`."""

  # Content address of a request: equal ones are judged once.
  make_key: Callable[[Request], bytes]
  executor_name: str = CPU_EXECUTOR

  def __init__(self, settings: Settings, cache: verdict_cache.Cache):
    """Args: limits of an evaluation, and what remembers verdicts."""
    self._settings = settings
    self._cache = cache
    self.num_evaluated = 0  # different texts given to a judge, faults too
    self.num_remembered = 0  # answered from the cache
    self.num_restarts = 0

  def turn(
    self,
    waiting: collections.deque[worker_lib.Job],
    wake_fd: int | None = None,
  ) -> Iterator[tuple[worker_lib.Job, Evaluation]]:
    """Gives out work, waits for news once; yields what has ended.

    Args:
      waiting: jobs to take from the left; one that is tried again comes back.
      wake_fd: a descriptor that ends the waiting when it can be read, at once
        or soon.
    """
    raise NotImplementedError

  def abandon(self) -> None:
    """Forgets what is running."""
    raise NotImplementedError

  def close(self) -> None:
    """Ends all processes and removes all files. May be called twice."""
    raise NotImplementedError

  def evaluate(
    self,
    requests: Sequence[Request] | Inbox[Request],
    on_result: Callable[[Evaluation], None] | None = None,
  ) -> list[Evaluation]:
    """Judges candidates; the answers stand in the order of the requests.

    Args:
      requests: as for `stream`.
      on_result: called with each answer as it arrives (progress bars).

    Raises:
      inbox.Abandoned: as for `stream`.
    """
    answers: dict[int, Evaluation] = {}
    for index, evaluation in self.stream(requests):
      answers[index] = evaluation
      if on_result is not None:
        on_result(evaluation)
    return [answers[index] for index in range(len(answers))]

  def stream(
    self, requests: Sequence[Request] | Inbox[Request]
  ) -> Iterator[tuple[int, Evaluation]]:
    """Yields (place among the requests, answer) as answers arrive.

    Args:
      requests: candidates; equal texts for one problem are judged once. Those
        of an inbox are given to judges as they come, and counted in the order
        in which they were put; the stream ends when the inbox has.

    Raises:
      inbox.Abandoned: the inbox was; what was running is abandoned too.
    """
    inbox = requests if isinstance(requests, Inbox) else None
    wake_fd = None if inbox is None else inbox.fileno()
    arrived = requests if inbox is None else ()
    seen: list[Request] = []
    jobs: dict[bytes, worker_lib.Job] = {}  # those that have not ended
    # Also what the cache does not keep (faults, timeouts): what equal texts
    # get must not depend on when they came.
    ended: dict[bytes, Evaluation] = {}
    waiting: collections.deque[worker_lib.Job] = collections.deque()
    try:
      while True:
        if inbox is not None:
          arrived = inbox.take()
        for index, request in enumerate(arrived, len(seen)):
          seen.append(request)
          refused = self._refusal(request)
          if refused is not None:
            yield index, refused
            continue
          key = self.make_key(request)
          if key in jobs:
            jobs[key].indices.append(index)
            continue
          known = ended[key] if key in ended else self._remembered(key)
          if known is not None:
            yield index, _renamed(known, request)
            continue
          jobs[key] = worker_lib.Job(request, [index], key)
          waiting.append(jobs[key])
        arrived = ()
        if not jobs and (inbox is None or inbox.has_ended):
          return
        for job, evaluation in self.turn(waiting, wake_fd):
          del jobs[job.key]
          ended[job.key] = evaluation
          self.num_evaluated += 1
          self._cache.put(job.key, evaluation)
          for index in job.indices:
            yield index, _renamed(evaluation, seen[index])
    finally:
      # Whoever stops listening must not find old answers in the next batch.
      self.abandon()

  def _remembered(self, key):
    """The verdict of an earlier batch, or None."""
    known = self._cache.get(key)
    self.num_remembered += known is not None
    return known

  def _refusal(self, request):
    """The answer for a text that is too long for a judge's frame, or None."""
    try:
      candidate.check_size(request.text)
    except candidate.CandidateError as error:
      return self.unjudged(request, error.status, Phase.PARSE, error.message)
    return None

  def unjudged(
    self, request: Request, status: Status, phase: Phase, message: str
  ) -> Evaluation:
    """An answer that no judge has given."""
    return Evaluation(
      id=request.id,
      problem=request.problem,
      status=status,
      phase=phase,
      message=message,
      executor=self.executor_name,
      harness_version=HARNESS_VERSION,
    )

  @property
  def seconds_allowed(self) -> float:
    """For one judge's answer to one request."""
    s = self._settings
    return 2 * s.compile_wall_s + s.run_wall_s + _GRACE_S

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self.close()


def _renamed(evaluation, request):
  if evaluation.id == request.id:
    return evaluation
  return msgspec.structs.replace(evaluation, id=request.id)
