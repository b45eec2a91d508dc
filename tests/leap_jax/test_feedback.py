"""What the policy is told."""

import pytest

from kernels_eval.schema import Mismatch, Status
from leap_jax import feedback, rollout
from leap_jax.types import StopReason


@pytest.mark.parametrize(
  "status", [s for s in Status if s != Status.INFRASTRUCTURE_ERROR]
)
def test_every_status_has_words(verdict, status):
  class Request:
    id, problem = "1", "p"

  text = feedback.render(
    verdict(Request, status, "line 3: something"), StopReason.STOP
  )
  assert "line 3: something" in text


@pytest.mark.parametrize("stop_reason", list(StopReason))
def test_our_own_faults_are_never_told(verdict, stop_reason):
  class Request:
    id, problem = "1", "p"

  with pytest.raises(ValueError, match="never told"):
    feedback.render(verdict(Request, Status.INFRASTRUCTURE_ERROR), stop_reason)


@pytest.mark.parametrize(
  "status", [s for s in Status if s != Status.INFRASTRUCTURE_ERROR]
)
def test_a_cut_answer_is_told_so_and_never_that_it_is_right(verdict, status):
  class Request:
    id, problem = "1", "p"

  evaluation = verdict(Request, status, "line 3: something")
  text = feedback.render(evaluation, StopReason.LENGTH)
  assert text.startswith("The answer was cut at its token limit.")
  assert "is right" not in text
  whole = feedback.render(evaluation, StopReason.STOP)
  assert "cut" not in whole
  # A failure keeps its words behind the headline.
  assert (whole in text) == (status != Status.PASSED)


# The shipped policy was trained on these texts.
WORDS = {
  Status.WRONG_ANSWER: "Wrong answer: m.",
  Status.NO_KERNEL: "No kernel found: m.",
  Status.CONTRACT_VIOLATION: "Not allowed: m.",
  Status.COMPILE_ERROR: "Compile error: m.",
  Status.LAUNCH_ERROR: "Launch error: m.",
  Status.RUNTIME_ERROR: "Runtime error: m.",
  Status.TIMEOUT: "Timeout: m.",
  Status.INTEGRITY_VIOLATION: "Integrity violation: m.",
}


@pytest.mark.parametrize("status", WORDS)
def test_the_words_that_a_policy_learned_stay(verdict, status):
  class Request:
    id, problem = "1", "p"

  evaluation = verdict(Request, status, "m")
  assert feedback.render(evaluation, StopReason.STOP) == WORDS[status]


def test_a_wrong_answer_names_the_place(verdict):
  import msgspec

  class Request:
    id, problem = "1", "p"

  mismatch = Mismatch(
    output="out",
    shape=(4, 8),
    first_wrong_index=(1, 7),
    expected=0.123456,
    got=float("nan"),
    num_wrong=5,
    num_elements=32,
    max_abs_error=1.0,
    relative_rms_error=0.1,
    num_not_finite=5,
    num_unwritten=0,
  )
  evaluation = msgspec.structs.replace(
    verdict(Request), mismatch=mismatch, case="n=5"
  )
  text = feedback.render(evaluation, StopReason.STOP)
  assert "out[1, 7] is nan, expected 0.123" in text
  assert "some elements" in text and "n=5" in text


@pytest.mark.covers("P10")
def test_cut_keeps_head_and_tail():
  ids = list(range(100))
  got = feedback.cut(ids, 11, [-1, -2, -3])
  assert got == [0, 1, 2, 3, -1, -2, -3, 96, 97, 98, 99]
  assert feedback.cut(ids, 100, [-1]) == ids
  for budget in range(12):
    assert len(feedback.cut(ids, budget, [-1, -2, -3])) <= budget


@pytest.mark.parametrize("stop_reason", list(StopReason))
@pytest.mark.covers("P10")
def test_long_feedback_keeps_its_frame(vocabulary, verdict, stop_reason):
  class Request:
    id, problem = "1", "p"

  long = verdict(Request, Status.COMPILE_ERROR, "error: x y z " * 2000)
  ids, _, was_cut = rollout.feedback_context(vocabulary, long, stop_reason, 60)
  assert was_cut and len(ids) == 60
  # The frame of the turn is whole: [end,] user ... end, assistant.
  stopped = stop_reason == StopReason.STOP
  begin = 0 if stopped else 1
  if not stopped:
    assert ids[0] == vocabulary.stop_tokens[0]
  assert ids[begin] == vocabulary.inner.token_to_id("<|user|>")
  assert ids[-2:] == [
    vocabulary.inner.token_to_id("<|end|>"),
    vocabulary.inner.token_to_id("<|assistant|>"),
  ]
  assert "\n...\n" in vocabulary.decode(ids)
