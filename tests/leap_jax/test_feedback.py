"""What the policy is told."""

import pytest

from kernels_eval.schema import Mismatch, Status
from leap_jax import feedback, rollout


@pytest.mark.parametrize(
  "status", [s for s in Status if s != Status.INFRASTRUCTURE_ERROR]
)
def test_every_status_has_words(verdict, status):
  class Request:
    id, problem = "1", "p"

  text = feedback.render(verdict(Request, status, "line 3: something"))
  assert "line 3: something" in text


def test_our_own_faults_are_never_told(verdict):
  class Request:
    id, problem = "1", "p"

  with pytest.raises(ValueError, match="never told"):
    feedback.render(verdict(Request, Status.INFRASTRUCTURE_ERROR))


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
  text = feedback.render(evaluation)
  assert "out[1, 7] is nan, expected 0.123" in text
  assert "some elements" in text and "n=5" in text


def test_cut_keeps_head_and_tail():
  ids = list(range(100))
  got = feedback.cut(ids, 11, [-1, -2, -3])
  assert got == [0, 1, 2, 3, -1, -2, -3, 96, 97, 98, 99]
  assert feedback.cut(ids, 100, [-1]) == ids
  for budget in range(12):
    assert len(feedback.cut(ids, budget, [-1, -2, -3])) <= budget


@pytest.mark.parametrize("stopped", [True, False])
def test_long_feedback_keeps_its_frame(vocabulary, verdict, stopped):
  class Request:
    id, problem = "1", "p"

  long = verdict(Request, Status.COMPILE_ERROR, "error: x y z " * 2000)
  ids, _, was_cut = rollout.feedback_context(
    vocabulary, long, 60, stopped=stopped
  )
  assert was_cut and len(ids) == 60
  # The frame of the turn is whole: [end,] user ... end, assistant.
  begin = 0 if stopped else 1
  if not stopped:
    assert ids[0] == vocabulary.stop_tokens[0]
  assert ids[begin] == vocabulary.id_of("<|user|>")
  assert ids[-2:] == [
    vocabulary.id_of("<|end|>"),
    vocabulary.id_of("<|assistant|>"),
  ]
  assert "\n...\n" in vocabulary.decode(ids)
