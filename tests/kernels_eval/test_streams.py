"""Candidates that come while others are judged."""

import concurrent.futures
import contextlib
import resource
import threading
import time

import pytest

from kernels_eval import client
from kernels_eval.inbox import Abandoned, Inbox
from kernels_eval.schema import Status
from kernels_eval.settings import Settings
from tests.kernels_eval.machine import wait_for
from tests.kernels_eval.test_processes import BUSY, GOOD, _request, _unique

HANG_S = 1.0


@pytest.fixture(scope="module")
def pool():
  settings = Settings(run_cpu_s=HANG_S)
  with client.Pool(num_workers=2, settings=settings) as pool:
    pool.evaluate([_request(_unique(i)) for i in range(2)])  # all are awake
    yield pool


class _Answers:
  """Answers of a stream by place, in the order in which they came."""

  def __init__(self):
    self.by_place = {}
    self._changed = threading.Condition()

  def add(self, place, answer):
    with self._changed:
      assert place not in self.by_place
      self.by_place[place] = answer
      self._changed.notify_all()

  def wait_for(self, *places):
    """Statuses of these."""
    with self._changed:
      assert self._changed.wait_for(
        lambda: all(place in self.by_place for place in places), 20
      )
      return [self.by_place[place].status for place in places]


@contextlib.contextmanager
def _streaming(pool):
  """(inbox, answers, the stream's future); ends the inbox."""
  answers = _Answers()

  def drive():
    for place, answer in pool.stream(inbox):
      answers.add(place, answer)

  with Inbox() as inbox, concurrent.futures.ThreadPoolExecutor(1) as thread:
    future = thread.submit(drive)
    try:
      yield inbox, answers, future
    except BaseException:
      inbox.abandon()
      raise
    inbox.end()
    future.result(20)


def test_one_that_hangs_does_not_delay_those_that_come_later(pool):
  with _streaming(pool) as (inbox, answers, _):
    inbox.put([_request("// later\n" + BUSY, "a")])
    assert wait_for(lambda: any(w.job for w in pool._workers), 5)
    inbox.put([_request(_unique(i), "b") for i in (10, 11)])
    inbox.put([])
    inbox.put([_request("no kernel", "c"), _request("x" * 300_000, "d")])
    assert answers.wait_for(1, 2) == [Status.PASSED] * 2
    assert answers.wait_for(3, 4) == [
      Status.NO_KERNEL,
      Status.CONTRACT_VIOLATION,
    ]
    assert 0 not in answers.by_place
  assert answers.wait_for(0) == [Status.TIMEOUT]
  assert [answers.by_place[i].id for i in range(5)] == list("abbcd")


def test_equal_texts_are_judged_once_whenever_they_come(pool):
  judged, remembered = pool.num_evaluated, pool.num_remembered
  slow, new = "// equal\n" + BUSY, _unique(20)
  with _streaming(pool) as (inbox, answers, _):
    inbox.put([_request(slow), _request(new)])
    answers.wait_for(1)
    # One that runs, one that was judged, one that an earlier batch knows.
    inbox.put([_request(slow), _request(new), _request(_unique(0))])
    assert answers.wait_for(3, 4) == [Status.PASSED] * 2
    assert answers.wait_for(0, 2) == [Status.TIMEOUT] * 2
    # A timeout is not remembered, but is the answer of this stream.
    started = time.monotonic()
    inbox.put([_request(slow, "again")])
    assert answers.wait_for(5) == [Status.TIMEOUT]
    assert time.monotonic() - started < HANG_S / 2
    assert answers.by_place[5].id == "again"
  assert pool.num_evaluated == judged + 2
  assert pool.num_remembered == remembered + 1


def test_evaluate_answers_in_the_order_in_which_they_were_put(pool):
  seen = []
  with Inbox() as inbox, concurrent.futures.ThreadPoolExecutor(1) as thread:
    future = thread.submit(pool.evaluate, inbox, seen.append)
    texts = ["// order\n" + BUSY, *(_unique(30 + i) for i in range(4)), GOOD]
    for place, text in enumerate(texts):
      inbox.put([_request(text, str(place))])
    inbox.end()
    answers = future.result(20)
  assert [a.id for a in answers] == [str(i) for i in range(len(texts))]
  assert sorted(a.id for a in seen) == [a.id for a in answers]
  assert seen[-1].id == "0"
  assert [a.status for a in answers[1:]] == [Status.PASSED] * 5


def test_a_failure_of_who_fills_it_ends_the_stream_at_once(pool):
  started = time.monotonic()
  with pytest.raises(ZeroDivisionError):
    with _streaming(pool) as (inbox, _, future):
      inbox.put([_request(f"// failure {i}\n" + BUSY) for i in range(9)])
      assert wait_for(lambda: all(w.job for w in pool._workers), 5)
      raise ZeroDivisionError
  assert isinstance(future.exception(), Abandoned)
  assert time.monotonic() - started < 4 * HANG_S  # all would take 4.5
  assert not any(worker.job for worker in pool._workers)
  (answer,) = pool.evaluate([_request(_unique(40))])
  assert answer.status == Status.PASSED


def test_waiting_for_candidates_costs_nothing(pool):
  with _streaming(pool) as (inbox, answers, _):
    inbox.put([_request(GOOD)])
    answers.wait_for(0)
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_SELF)
  spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
  assert spent_s < 0.1


def test_a_stream_of_nothing_ends(pool):
  with _streaming(pool) as (_, answers, future):
    pass
  assert answers.by_place == {} and future.result() is None
  assert pool.evaluate([]) == []
