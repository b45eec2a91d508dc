"""Sampling and judging side by side, within one turn.

Answers are judged as they end, by another thread, while the rows that have not
ended are still sampled: those that have ended while a batch was judged are the
next one, together. The policy is the same for all of them: nothing is stale,
and which answer ended when changes no result. Verdicts are all there before the
turn is over, since the gate looks at all of them.
"""

import collections
import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import jax

from kernels_eval.schema import Evaluation, ProblemCard, Request
from leap_jax.sampler import Call

Evaluate = Callable[[Sequence[Request]], list[Evaluation]]


class Judged(NamedTuple):
  """One turn of some rows."""

  calls: list[Call]
  verdicts: dict[int, tuple[Request, Evaluation]]  # by row
  sample_seconds: float
  # With nothing left to sample: for verdicts, and the last texts are made.
  wait_seconds: float
  judge_seconds: float  # in which the harness had candidates


def _requests(call, problems, turn, decode):
  """(row, what the policy has sampled in this turn, and nothing else)."""
  requests = []
  for place, row in enumerate(call.rows.tolist()):
    own = call.completions.tokens[place, : call.completions.lengths[place]]
    text = decode(own.tolist())
    request = Request(f"{row}/{turn}", problems[row].name, text)
    requests.append((row, request))
  return requests


@contextlib.contextmanager
def _other_thread() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
  """One thread. Whatever fails here, an interrupt too, ends what waits for it:
  only the batch at hand is waited for, since its judges are in use: at most
  all that ended while the one before was judged."""
  executor = concurrent.futures.ThreadPoolExecutor(1)
  try:
    yield executor
  finally:
    executor.shutdown(cancel_futures=True)


def judge_as_they_end(
  calls: Iterable[Call],
  problems: Mapping[int, ProblemCard],
  turn: int,
  decode: Callable[[list[int]], str],
  evaluate: Evaluate,
) -> Judged:
  """Samples all rows and has them judged.

  Args:
    calls: of Sampler.answer; each is run when it is asked for.
    problems: of each row that the calls will end.
    turn: from 0.
    decode: ids to text.
    evaluate: the harness; called by one thread at a time.

  Raises:
    Exception: whatever `evaluate` raises, when the call that is sampled
      meanwhile has ended.
  """
  seen, beside, num_ended = [], [], 0
  verdicts, judge_seconds = {}, 0.0
  waiting: collections.deque[Call] = collections.deque()
  # Processes exchange verdicts (hosts.SharedPool): all of them in the same
  # order among the sampler's own exchanges, so by this thread, at the end.
  is_alone = jax.process_count() == 1

  def judge():
    """All that waits, as one batch. By one thread at a time."""
    nonlocal judge_seconds
    requests = []
    while waiting:
      requests += _requests(waiting.popleft(), problems, turn, decode)
    if not requests:  # an earlier batch has had them
      return
    started = time.perf_counter()
    evaluations = evaluate([request for _, request in requests])
    judge_seconds += time.perf_counter() - started
    for (row, request), evaluation in zip(requests, evaluations, strict=True):
      verdicts[row] = request, evaluation

  with _other_thread() as other_thread:
    started = time.perf_counter()
    for call in calls:
      for future in beside:
        if future.done():
          future.result()  # raises what the harness did
      seen.append(call)
      waiting.append(call)
      num_ended += len(call.rows)
      # After the last ones this thread has nothing else to do.
      if is_alone and num_ended < len(problems):
        beside.append(other_thread.submit(judge))
    sample_seconds = time.perf_counter() - started
    started = time.perf_counter()
    for future in beside:
      future.result()
    judge()
    wait_seconds = time.perf_counter() - started
  return Judged(seen, verdicts, sample_seconds, wait_seconds, judge_seconds)
