"""Round trips, special tokens, conversations as ids."""

import hypothesis
import hypothesis.strategies as st
import pytest

from leap_jax import tokenizer as tokenizer_lib
from leap_jax.types import Message


@hypothesis.given(st.text())
@hypothesis.settings(
  deadline=None,
  max_examples=300,
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_any_text_round_trips(vocabulary, text):
  assert vocabulary.decode(vocabulary.encode(text)) == text


@pytest.mark.parametrize("special", tokenizer_lib.SPECIAL)
def test_text_never_becomes_a_special_token(vocabulary, special):
  # A compiler message or a candidate that quotes a token must not end a turn.
  ids = vocabulary.encode(f"error: {special} expected")
  assert vocabulary.inner.token_to_id(special) not in ids
  assert vocabulary.decode(ids) == f"error: {special} expected"


def test_a_context_ends_where_the_answer_begins(vocabulary):
  v = vocabulary
  ids = v.context(Message("user", "fix it"))
  assert ids[0] == v.inner.token_to_id(tokenizer_lib.USER)
  assert ids[-2:] == [
    v.inner.token_to_id(tokenizer_lib.END),
    v.inner.token_to_id(tokenizer_lib.ASSISTANT),
  ]
  assert v.decode(ids) == "fix it"


def test_a_completion_ends_with_its_stop_token(vocabulary):
  ids = vocabulary.completion("int x;")
  assert ids[-1] in vocabulary.stop_tokens
  assert all(i not in vocabulary.stop_tokens for i in ids[:-1])


def test_saved_and_loaded_vocabularies_agree(vocabulary, tmp_path):
  path = tmp_path / "tokenizer.json"
  vocabulary.save(path)
  loaded = tokenizer_lib.load(path)
  text = "  if (i < n) out[i] = <|end|> 3.5f;\n\té"
  assert loaded.encode(text) == vocabulary.encode(text)
  assert loaded.vocab_size == vocabulary.vocab_size
