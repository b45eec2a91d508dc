"""What every pool does with a batch of candidates: texts that are too long are
refused, equal texts are judged once, verdicts are remembered, answers stand in
the order of the requests."""

import collections
from collections.abc import Callable, Iterator, Sequence

import msgspec

from kernels_eval import candidate, verdict_cache
from kernels_eval import worker as worker_lib
from kernels_eval.cpu.executor import NAME as CPU_EXECUTOR
from kernels_eval.schema import HARNESS_VERSION, Evaluation, Phase, Request
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
    self, waiting: collections.deque[worker_lib.Job]
  ) -> Iterator[tuple[worker_lib.Job, Evaluation]]:
    """Gives out work, waits for news once; yields what has ended."""
    raise NotImplementedError

  def abandon(self) -> None:
    """Forgets what is running."""
    raise NotImplementedError

  def close(self) -> None:
    """Ends all processes and removes all files. May be called twice."""
    raise NotImplementedError

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
      refused = self._refusal(request)
      if refused is not None:
        yield index, refused
        continue
      key = self.make_key(request)
      known = self._cache.get(key)
      if known is not None:
        self.num_remembered += 1
        yield index, _renamed(known, request)
      elif key in jobs:
        jobs[key].indices.append(index)
      else:
        jobs[key] = worker_lib.Job(request, [index], key)
    waiting = collections.deque(jobs.values())
    num_left = len(waiting)
    try:
      while num_left:
        for job, evaluation in self.turn(waiting):
          num_left -= 1
          self.num_evaluated += 1
          self._cache.put(job.key, evaluation)
          for index in job.indices:
            yield index, _renamed(evaluation, requests[index])
    finally:
      # Whoever stops listening must not find old answers in the next batch.
      self.abandon()

  def _refusal(self, request):
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
        executor=self.executor_name,
        harness_version=HARNESS_VERSION,
      )
    return None

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
