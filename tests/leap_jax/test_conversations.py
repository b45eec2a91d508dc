"""Conversations to supervised rows."""

import numpy as np
import pytest

from kernels_eval import problem_cards
from leap_jax import conversations, prompts
from leap_jax.types import Message

TALK = [
  Message("user", "Write a kernel."),
  Message("assistant", "int x;"),
  Message("user", "Wrong."),
  Message("assistant", "int y;"),
]


def test_only_answers_are_own_and_they_include_their_ends(vocabulary):
  row = conversations.make_row(vocabulary, TALK, 1000)
  own = row.tokens[row.own].tolist()
  assert own == vocabulary.completion("int x;") + vocabulary.completion(
    "int y;"
  )
  assert (row.weights == row.own).all()
  # The header of an answer belongs to its context, not to the answer.
  header = vocabulary.inner.token_to_id("<|assistant|>")
  assert not row.own[row.tokens == header].any()


def test_long_conversations_are_left_out(vocabulary):
  n = len(conversations.make_row(vocabulary, TALK, 1000).tokens)
  assert conversations.make_row(vocabulary, TALK, n) is not None
  assert conversations.make_row(vocabulary, TALK, n - 1) is None


def test_weights_of_a_batch_sum_to_one(vocabulary):
  rows = [
    conversations.make_row(vocabulary, talk, 1000)
    for talk in (TALK, TALK[:2], TALK[:2])
  ]
  total = sum(r.weights.sum() for r in conversations.normalized(rows))
  np.testing.assert_allclose(total, 1.0, rtol=1e-6)


@pytest.mark.covers("P13")
def test_steps_go_through_every_row_of_an_epoch():
  rows = list(range(10))
  epoch = sum((conversations.at_step(rows, 3, s, 5) for s in range(2)), [])
  assert sorted(epoch) == rows
  again = conversations.at_step(rows, 3, 1, 5)
  assert again == epoch[5:]
  assert conversations.at_step(rows, 3, 2, 5) != epoch[:5]


def test_templates_hold_the_problem_and_the_verdict(cards):
  text = prompts.problem_message(cards[0]).text
  assert cards[0].statement in text and cards[0].signature in text
  assert "out of bounds" in prompts.feedback_message("out of bounds").text
  assert prompts.answer_message("int x;\n").text == "```cuda\nint x;\n```"


def test_a_function_is_asked_for_in_its_own_words():
  card = problem_cards.card("fn-even-sum")
  text = prompts.problem_message(card).text
  assert text.startswith("Write a Python function.\nGiven a list xs")
  assert text.endswith("def solve(xs: list[int]) -> int:")
  text = prompts.feedback_message("Wrong answer: x.", "python").text
  assert text == "Wrong answer: x.\nWrite the corrected function."
  text = prompts.answer_message("x = 1\n", "python").text
  assert text == "```python\nx = 1\n```"
