"""What is put in by one thread comes out in another: all, once, in order."""

import os
import random
import select
import threading
import time

import pytest

from kernels_eval.inbox import Abandoned, Inbox


def _is_awake(inbox):
  return bool(select.select([inbox], [], [], 0)[0])


def _fill(inbox, parts):
  """A thread that puts the parts, then ends it."""

  def fill():
    for part in parts:
      inbox.put(part)
      if not part:
        time.sleep(0.0005)  # so that the other one catches up
    inbox.end()

  thread = threading.Thread(target=fill)
  thread.start()
  return thread


def _parts(seed):
  """Lists of 0 to 3 numbers that count up over all of them."""
  rng, numbers = random.Random(seed), iter(range(10_000))
  return [[next(numbers) for _ in range(rng.randrange(4))] for _ in range(300)]


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_doubled_and_the_order_stays(seed):
  parts = _parts(seed)
  with Inbox() as inbox:
    thread = _fill(inbox, parts)
    assert list(inbox) == sum(parts, [])
    thread.join()
    assert inbox.has_ended


@pytest.mark.parametrize("seed", range(3))
def test_the_same_by_select(seed):
  parts, taken = _parts(seed), []
  with Inbox() as inbox:
    thread = _fill(inbox, parts)
    while not inbox.has_ended:
      assert select.select([inbox], [], [], 20)[0]
      taken += inbox.take()
    thread.join()
  assert taken == sum(parts, [])


def test_the_descriptor_says_that_there_is_news():
  with Inbox() as inbox:
    assert not _is_awake(inbox)
    inbox.put([1])
    inbox.put([2])
    assert _is_awake(inbox)
    assert inbox.take() == [1, 2]
    assert not _is_awake(inbox)
    assert inbox.take() == [] and not inbox.has_ended
    inbox.put([3])
    inbox.end()
    assert not inbox.has_ended  # something is left
    assert inbox.take() == [3]
    assert inbox.has_ended and not _is_awake(inbox)
    inbox.abandon()  # nobody waits for the answers any more
    assert _is_awake(inbox)


def test_more_news_than_the_pipe_holds():
  with Inbox() as inbox:
    for i in range(70_000):
      inbox.put([i])
    inbox.end()
    assert inbox.take() == list(range(70_000))
    while _is_awake(inbox):
      assert inbox.take() == []
    assert inbox.has_ended


def test_a_generator_runs_where_it_is_taken():
  ran_in = []

  def make():
    ran_in.append(threading.current_thread())
    yield 1

  with Inbox() as inbox:
    thread = _fill(inbox, [make(), make()])
    thread.join()
    assert ran_in == []
    assert inbox.take() == [1, 1]
    assert ran_in == [threading.current_thread()] * 2


def test_an_abandoned_one_ends_whoever_waits():
  with Inbox() as inbox:
    inbox.put([1, 2])
    waiting = iter(inbox)
    assert [next(waiting), next(waiting)] == [1, 2]
    timer = threading.Timer(0.05, inbox.abandon)
    timer.start()
    with pytest.raises(Abandoned):
      next(waiting)
    timer.join()
    with pytest.raises(Abandoned):
      inbox.take()
    inbox.abandon()


def test_nothing_comes_behind_the_end():
  with Inbox() as inbox:
    inbox.end()
    inbox.end()
    with pytest.raises(ValueError, match="behind the end"):
      inbox.put([1])
    assert list(inbox) == []


def test_what_is_closed_is_abandoned_and_its_pipe_is_gone():
  before = len(os.listdir("/proc/self/fd"))
  with pytest.raises(ZeroDivisionError):
    with Inbox() as inbox:
      inbox.put([1])
      assert len(os.listdir("/proc/self/fd")) == before + 2
      raise ZeroDivisionError
  inbox.close()
  assert len(os.listdir("/proc/self/fd")) == before
  with pytest.raises(Abandoned):
    inbox.take()
