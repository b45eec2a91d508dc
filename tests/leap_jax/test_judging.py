"""Answers are judged while others are sampled; order changes nothing."""

import threading
import time

import numpy as np
import pytest

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


def test_the_harness_works_while_the_sampler_does():
  sampling_again, judged_first = threading.Event(), threading.Event()

  def calls():
    yield call([5, 3])
    sampling_again.set()
    # The first two are judged before the last one has been sampled.
    assert judged_first.wait(20)
    yield call([8])

  def evaluate(requests):
    if len(requests) == 2:
      assert sampling_again.wait(20)
      judged_first.set()
    return [f"verdict on {r.text}" for r in requests]

  got = judging.judge_as_they_end(calls(), PROBLEMS, 1, decode, evaluate)
  assert {row: v for row, (_, v) in got.verdicts.items()} == {
    5: "verdict on 5",
    3: "verdict on 3",
    8: "verdict on 8",
  }
  request = got.verdicts[3][0]
  assert (request.id, request.problem, request.text) == (
    "3/1",
    "problem 3",
    "3",
  )
  assert len(got.calls) == 2
  assert min(got.sample_seconds, got.wait_seconds, got.judge_seconds) >= 0


def test_one_call_is_judged_by_this_thread():
  threads = []

  def evaluate(requests):
    threads.append(threading.current_thread())
    return list(requests)

  judging.judge_as_they_end([call([3, 5, 8])], PROBLEMS, 0, decode, evaluate)
  assert threads == [threading.current_thread()]


def test_what_ends_while_a_batch_is_judged_is_the_next_batch():
  began, goes_on, batches = threading.Event(), threading.Event(), []

  def calls():
    yield call([3])
    assert began.wait(20)
    yield call([5])
    yield call([])
    yield call([8, 9])
    goes_on.set()
    yield call([11])

  def evaluate(requests):
    began.set()
    assert goes_on.wait(20)
    batches.append([request.text for request in requests])
    return [f"verdict on {r.text}" for r in requests]

  problems = {row: Card("a problem") for row in (3, 5, 8, 9, 11)}
  got = judging.judge_as_they_end(calls(), problems, 0, decode, evaluate)
  assert batches[0] == ["3"] and batches[1][:3] == ["5", "8", "9"]
  assert sum(batches, []) == ["3", "5", "8", "9", "11"]
  assert {row: v for row, (_, v) in got.verdicts.items()} == {
    row: f"verdict on {row}" for row in problems
  }


@pytest.mark.parametrize("fails_on", [1, 2])
def test_a_harness_that_fails_is_heard(fails_on):
  first = threading.Event()

  def calls():
    yield call([3, 5])
    assert first.wait(20)
    yield call([8])

  def evaluate(requests):
    first.set()
    if len(requests) == fails_on:
      raise OSError("gone")
    return list(requests)

  with pytest.raises(OSError, match="gone"):
    judging.judge_as_they_end(calls(), PROBLEMS, 0, decode, evaluate)


def test_a_harness_that_fails_ends_the_sampling():
  failed, sampled = threading.Event(), []

  def calls():
    for row in PROBLEMS:
      sampled.append(row)
      yield call([row])
      assert failed.wait(20)
      time.sleep(0.1)  # until the future knows

  def evaluate(requests):
    failed.set()
    raise OSError("gone")

  with pytest.raises(OSError, match="gone"):
    judging.judge_as_they_end(calls(), PROBLEMS, 0, decode, evaluate)
  assert sampled == [3, 5]


def test_an_interrupt_does_not_wait_for_what_is_queued():
  began, goes_on, judged = threading.Event(), threading.Event(), []

  def calls():
    yield call([3])
    assert began.wait(20)
    yield call([5])
    threading.Timer(0.1, goes_on.set).start()
    raise KeyboardInterrupt

  def evaluate(requests):
    began.set()
    assert goes_on.wait(20)
    judged.extend(requests)
    return list(requests)

  with pytest.raises(KeyboardInterrupt):
    judging.judge_as_they_end(calls(), PROBLEMS, 0, decode, evaluate)
  assert [request.id for request in judged] == ["3/0"]
