"""Answers are judged while others are sampled; order changes nothing."""

import signal
import threading
import time

import jax
import numpy as np
import pytest

from kernels_eval.inbox import Abandoned
from leap_jax import judging, sampler


class Card:
  def __init__(self, name):
    self.name = name


PROBLEMS = {row: Card(f"problem {row}") for row in (3, 5, 8)}


def call(rows):
  """Each row says its own number, in one token."""
  rows = np.asarray(rows, np.int32)
  one = np.ones(len(rows), np.int32)
  zeros = np.zeros((len(rows), 2), np.float32)
  tokens = np.stack([rows, np.zeros_like(rows)], 1)
  answers = sampler.Completions(tokens, zeros, zeros, one, one.astype(bool))
  return sampler.Call("state", rows, answers, num_steps=1, num_slots=4)


def decode(ids):
  return " ".join(map(str, ids))


def verdicts(got):
  return {row: verdict for row, (_, verdict) in got.verdicts.items()}


def judge_each(requests, on_result=lambda _: None):
  """A harness with one judge."""
  answers = []
  for request in requests:
    answers.append(f"verdict on {request.text}")
    on_result(answers[-1])
  return answers


def test_what_has_ended_is_judged_while_the_rest_is_sampled():
  judged = {row: threading.Event() for row in PROBLEMS}

  def calls():
    yield call([5, 3])
    assert judged[5].wait(20) and judged[3].wait(20)
    yield call([])
    yield call([8])

  def evaluate(requests, on_result):
    answers = []
    for request in requests:
      judged[int(request.text)].set()
      answers += judge_each([request], on_result)
    return answers

  got = judging.judge_as_they_end(calls(), PROBLEMS, 1, decode, evaluate)
  assert verdicts(got) == {row: f"verdict on {row}" for row in PROBLEMS}
  request = got.verdicts[3][0]
  assert (request.id, request.problem, request.text) == (
    "3/1",
    "problem 3",
    "3",
  )
  assert len(got.calls) == 3
  assert 0 < got.judge_seconds <= got.sample_seconds + got.wait_seconds


def test_a_candidate_that_hangs_delays_no_later_one():
  later = threading.Event()

  def calls():
    yield call([3])
    yield call([5])
    assert later.wait(20)  # judged, while that of row 3 is not
    yield call([8])

  def evaluate(requests, on_result):
    """Two judges; one hangs with the first candidate until all others end."""
    requests = iter(requests)
    hanging, others = next(requests), []
    for request in requests:
      others += judge_each([request], on_result)
      later.set()
    return judge_each([hanging], on_result) + others

  got = judging.judge_as_they_end(calls(), PROBLEMS, 0, decode, evaluate)
  assert verdicts(got) == {row: f"verdict on {row}" for row in PROBLEMS}


def test_one_call_is_judged_by_this_thread():
  asked = []

  def evaluate(requests, on_result=None):
    asked.append((threading.current_thread(), len(requests)))
    return judge_each(requests)

  got = judging.judge_as_they_end(
    [call([3, 5, 8])], PROBLEMS, 0, decode, evaluate
  )
  assert asked == [(threading.current_thread(), 3)]
  assert verdicts(got) == {row: f"verdict on {row}" for row in PROBLEMS}
  assert got.judge_seconds <= got.wait_seconds


def test_with_other_processes_all_is_one_batch_at_the_end(monkeypatch):
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  asked, sampled = [], []

  def calls():
    for row in PROBLEMS:
      sampled.append(row)
      yield call([row])

  def evaluate(requests, on_result=None):
    asked.append((threading.current_thread(), [r.text for r in requests]))
    assert sampled == list(PROBLEMS)
    return judge_each(requests)

  got = judging.judge_as_they_end(calls(), PROBLEMS, 0, decode, evaluate)
  assert asked == [(threading.current_thread(), ["3", "5", "8"])]
  assert verdicts(got) == {row: f"verdict on {row}" for row in PROBLEMS}


@pytest.mark.parametrize("fails_on", ["5", "8"])
def test_a_harness_that_fails_is_heard(fails_on):
  def evaluate(requests, on_result):
    for request in requests:
      if request.text == fails_on:
        raise OSError("gone")

  calls = [call([3, 5]), call([8])]
  with pytest.raises(OSError, match="gone"):
    judging.judge_as_they_end(calls, PROBLEMS, 0, decode, evaluate)


def test_a_harness_that_fails_ends_the_sampling():
  failed, sampled = threading.Event(), []

  def calls():
    for row in PROBLEMS:
      sampled.append(row)
      yield call([row])
      assert failed.wait(20)
      time.sleep(0.1)  # until the future knows

  def evaluate(requests, on_result):
    next(iter(requests))
    failed.set()
    raise OSError("gone")

  with pytest.raises(OSError, match="gone"):
    judging.judge_as_they_end(calls(), PROBLEMS, 0, decode, evaluate)
  assert sampled == [3, 5]


def look_on(requests, heard):
  """As a pool does between two answers, until nobody waits for any."""
  try:
    while True:
      time.sleep(0.01)
      requests.take()
  except Abandoned as abandoned:
    heard.append(abandoned)
    raise


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_sampler_that_fails_waits_for_no_verdict(error):
  began, heard = threading.Event(), []

  def calls():
    yield call([3])
    assert began.wait(20)
    yield call([5])
    raise error

  def evaluate(requests, on_result):
    assert [next(iter(requests)).text] == ["3"]
    began.set()
    look_on(requests, heard)

  with pytest.raises(error):
    judging.judge_as_they_end(calls(), PROBLEMS, 0, decode, evaluate)
  assert len(heard) == 1


def test_an_interrupt_while_only_verdicts_are_missing_ends_the_judging():
  heard = []

  def evaluate(requests, on_result):
    while not requests.has_ended:
      requests.take()
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    look_on(requests, heard)

  calls = [call([3]), call([5]), call([8])]
  with pytest.raises(KeyboardInterrupt):
    judging.judge_as_they_end(calls, PROBLEMS, 0, decode, evaluate)
  assert len(heard) == 1


def test_texts_that_cannot_be_made_are_heard():
  def fail(ids):
    raise UnicodeError("no text")

  calls = [call([3]), call([5]), call([8])]
  with pytest.raises(UnicodeError, match="no text"):
    judging.judge_as_they_end(calls, PROBLEMS, 0, fail, judge_each)


def test_the_time_with_candidates_is_counted_once():
  # Two come at 1, one more at 2; they are answered at 3, 4 and 6: 5 seconds.
  # From 8 to 8.5 there is another one.
  changes = [(1.0, 2), (3.0, -1), (4.0, -1), (6.0, -1), (2.0, 1)]
  changes += [(8.0, 1), (8.5, -1), (9.0, 0)]
  assert judging.seconds_busy(changes) == 5.5
  assert judging.seconds_busy([]) == 0.0
