"""Sampling and judging side by side, within one turn.

Each answer is handed to the harness when it has ended, while the rows that have
not ended are still sampled; verdicts come back in any order, and one candidate
that hangs keeps one judge busy. The policy is the same for all of them: nothing
is stale, and which answer ended when changes no result. Verdicts are all there
before the turn is over, since the gate looks at all of them.
"""

import concurrent.futures
import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import jax

from kernels_eval.inbox import Inbox
from kernels_eval.schema import Evaluation, ProblemCard, Request
from leap_jax.sampler import Call


class Evaluate(Protocol):
  """The harness (kernels_eval.batches.Judges.evaluate)."""

  def __call__(
    self,
    requests: Sequence[Request] | Inbox[Request],
    on_result: Callable[[Evaluation], None] | None = None,
  ) -> list[Evaluation]:
    """Answers in the order of the requests, each told when it is there."""


class Judged(NamedTuple):
  """One turn of some rows."""

  calls: list[Call]
  verdicts: dict[int, tuple[Request, Evaluation]]  # by row
  sample_seconds: float
  # With nothing left to sample: for verdicts, and the last texts are made.
  wait_seconds: float
  # In which at least one answer had ended and had no verdict yet.
  judge_seconds: float


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
    evaluate: the harness; called once.

  Raises:
    Exception: whatever `evaluate` raises, when the call that is sampled
      meanwhile has ended.
  """

  def requests_of(call):
    """What the policy has sampled in this turn, and nothing else."""
    for place, row in enumerate(call.rows.tolist()):
      own = call.completions.tokens[place, : call.completions.lengths[place]]
      text = decode(own.tolist())
      yield Request(f"{row}/{turn}", problems[row].name, text)

  started = time.perf_counter()
  calls = iter(calls)
  first = list(itertools.islice(calls, 1))
  # Another thread is of no use to the last answers. And processes exchange
  # verdicts (hosts.SharedPool): all of them in the same order among the
  # sampler's own exchanges, so in this thread, at the end.
  is_all = sum(len(call.rows) for call in first) == len(problems)
  judge = _behind if is_all or jax.process_count() > 1 else _beside
  return judge(itertools.chain(first, calls), requests_of, evaluate, started)


def _behind(calls, requests_of, evaluate, started):
  """Samples, then judges."""
  calls = list(calls)
  sampled = time.perf_counter()
  requests = [request for call in calls for request in requests_of(call)]
  asked = time.perf_counter()
  verdicts = _by_row(calls, requests, evaluate(requests))
  ended = time.perf_counter()
  return Judged(
    calls, verdicts, sampled - started, ended - sampled, ended - asked
  )


def _beside(calls, requests_of, evaluate, started):
  """Samples in this thread; another one drives the harness."""
  seen, requests = [], []
  changes: list[tuple[float, int]] = []  # of the number without a verdict

  def making(call):
    # Runs in the other thread: while texts are made here, nothing is sampled.
    for request in requests_of(call):
      requests.append(request)
      yield request

  def on_result(_):
    changes.append((time.perf_counter(), -1))

  with _harness(evaluate, on_result) as (candidates, answers):
    for call in calls:
      if answers.done():
        answers.result()  # raises what the harness did
      seen.append(call)
      changes.append((time.perf_counter(), len(call.rows)))
      candidates.put(making(call))
    candidates.end()
    sampled = time.perf_counter()
    verdicts = _by_row(seen, requests, answers.result())
    ended = time.perf_counter()
  return Judged(
    seen, verdicts, sampled - started, ended - sampled, seconds_busy(changes)
  )


@contextlib.contextmanager
def _harness(
  evaluate, on_result
) -> Iterator[tuple[Inbox[Request], concurrent.futures.Future]]:
  """Where candidates go, and their answers to be. Whatever fails here, an
  interrupt too, ends the judging at once: what runs is abandoned."""
  with Inbox() as candidates:
    with concurrent.futures.ThreadPoolExecutor(1) as other_thread:
      try:
        yield (
          candidates,
          other_thread.submit(evaluate, candidates, on_result),
        )
      except BaseException:
        candidates.abandon()
        raise


def _by_row(calls, requests, evaluations):
  """Row -> (request, verdict); both stand in the order of the calls' rows."""
  rows = [row for call in calls for row in call.rows.tolist()]
  return {
    row: (request, evaluation)
    for row, request, evaluation in zip(
      rows, requests, evaluations, strict=True
    )
  }


def seconds_busy(changes: Sequence[tuple[float, int]]) -> float:
  """Seconds in which a number was above 0.

  Args:
    changes: (time in seconds, what is added to the number), in any order; it
      begins at 0.
  """
  busy, number, last = 0.0, 0, 0.0
  for now, change in sorted(changes, key=lambda pair: pair[0]):
    if number > 0:
      busy += now - last
    number, last = number + change, now
  return busy
