"""A pool that takes candidates one by one, from any thread."""

import os
import signal
import time

import pytest

from kernels_eval import client, feed
from kernels_eval.schema import Status
from kernels_eval.settings import Settings
from tests.kernels_eval.machine import processes, wait_for
from tests.kernels_eval.test_processes import BUSY, GOOD, _request, _unique


@pytest.fixture
def feeding():
  settings = Settings(run_cpu_s=1.0)
  feeding = feed.Feed(client.Pool(num_workers=2, settings=settings))
  root = feeding._pool._root
  yield feeding
  feeding.close()
  assert processes(root) == set()
  assert not root.exists()


def test_a_candidate_that_comes_later_does_not_wait_for_the_first(feeding):
  slow = feeding.submit(_request(BUSY))
  assert wait_for(lambda: any(w.job for w in feeding._pool._workers), 5)
  quick = [feeding.submit(_request(_unique(i))) for i in range(3)]
  assert [q.result(10).status for q in quick] == [Status.PASSED] * 3
  assert not slow.done()
  assert slow.result(10).status == Status.TIMEOUT


def test_what_is_abandoned_ends_at_once_and_later_candidates_are_judged(
  feeding,
):
  dropped = [feeding.submit(_request(f"// {i}\n" + BUSY)) for i in range(9)]
  started = time.monotonic()
  feeding.abandon()
  later = feeding.submit(_request(GOOD))
  for future in dropped:
    with pytest.raises(feed.FeedError, match="abandoned"):
      future.result(10)
  assert later.result(10).status == Status.PASSED
  assert time.monotonic() - started < 6  # not nine times a second


def test_a_pool_that_fails_says_so_to_all_who_wait(feeding, monkeypatch):
  waiting = feeding.submit(_request(BUSY))
  assert wait_for(lambda: any(w.job for w in feeding._pool._workers), 5)
  monkeypatch.setenv("PATH", "/nowhere")  # no compiler for a new judge
  for worker in feeding._pool._workers:
    os.kill(worker.process.pid, signal.SIGKILL)
  with pytest.raises(feed.FeedError, match="no C\\+\\+ compiler"):
    waiting.result(20)
  assert wait_for(lambda: not feeding._thread.is_alive(), 10)
  for ask in (feeding.check, lambda: feeding.submit(_request(GOOD))):
    with pytest.raises(feed.FeedError, match="no C\\+\\+ compiler"):
      ask()
