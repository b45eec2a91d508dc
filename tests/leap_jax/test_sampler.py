"""The sampler: what it stores is what the trainer computes; rows are alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import compilations, losses
from leap_jax.models import transformer

TEMPERATURE = 0.8  # of the `sampling` fixture


@pytest.fixture(scope="module")
def prompt(shape):
  tokens = np.zeros((2, shape.max_prompt_tokens), np.int32)
  tokens[0, :5] = [5, 9, 30, 2, 77]
  tokens[1, :3] = [7, 7, 300]
  return tokens, np.asarray([5, 3], np.int32)


def first_turn(sampling, params, prompt, seed=0, alive=None):
  state = sampling.prefill(params, *prompt)
  rows = np.arange(8, dtype=np.int32)
  alive = np.ones(8, bool) if alive is None else alive
  answers, state = sampling.decode[0, 8](
    params, state, jax.random.key(seed), rows, alive
  )
  return jax.device_get(answers), state


def trainer_logprobs(model, params, ids):
  """Of each token but the first, by the training path."""
  tokens = jnp.asarray([ids])
  hidden = transformer.forward(model, params, tokens[:, :-1])
  logits = transformer.logits_of(model, params, hidden)
  return np.asarray(
    losses.token_logprobs(logits, tokens[:, 1:], temperature=TEMPERATURE)[0]
  )


@pytest.mark.covers("P03")
def test_stored_logprobs_are_the_trainers(sampling, params, model, prompt):
  answers, _ = first_turn(sampling, params, prompt)
  tokens, lengths = prompt
  for row in range(8):
    p = row // 4
    own = answers.tokens[row, : answers.lengths[row]].tolist()
    ids = tokens[p, : lengths[p]].tolist() + own
    got = trainer_logprobs(model, params, ids)[lengths[p] - 1 :]
    stored = answers.logprobs[row, : answers.lengths[row]]
    np.testing.assert_allclose(stored, got, atol=1e-4)


def test_second_turn_continues_the_conversation(
  sampling, params, model, prompt, shape
):
  answers, state = first_turn(sampling, params, prompt)
  rows = np.asarray([6, 1, 3, 0], np.int32)  # compacted, in another order
  feedback = np.zeros((4, shape.max_feedback_tokens), np.int32)
  lengths = np.asarray([2, 3, 1, 2], np.int32)
  for i, n in enumerate(lengths):
    feedback[i, :n] = 50 + np.arange(n)
  state = sampling.next_turn[1, 8, 4](params, state, rows, feedback, lengths)
  more, _ = sampling.decode[1, 4](
    params, state, jax.random.key(3), rows, np.ones(4, bool)
  )
  more = jax.device_get(more)
  for i, row in enumerate(rows):
    p = row // 4
    ids = (
      prompt[0][p, : prompt[1][p]].tolist()
      + answers.tokens[row, : answers.lengths[row]].tolist()
      + feedback[i, : lengths[i]].tolist()
    )
    begin = len(ids)
    ids += more.tokens[i, : more.lengths[i]].tolist()
    got = trainer_logprobs(model, params, ids)[begin - 1 :]
    np.testing.assert_allclose(
      more.logprobs[i, : more.lengths[i]], got, atol=1e-4
    )


def test_a_completion_does_not_depend_on_its_neighbours(
  sampling, params, prompt
):
  every, _ = first_turn(sampling, params, prompt)
  # The same rows with the other problem's prompt changed and half of the rows
  # idle.
  tokens, lengths = prompt[0].copy(), prompt[1].copy()
  tokens[1, :6] = [300, 2, 2, 40, 41, 42]
  lengths[1] = 6
  alive = np.asarray([True, False] * 4)
  some, _ = first_turn(sampling, params, (tokens, lengths), alive=alive)
  for row in (0, 2):
    np.testing.assert_array_equal(some.tokens[row], every.tokens[row])
    np.testing.assert_array_equal(some.logprobs[row], every.logprobs[row])
  assert (some.lengths[~alive] == 0).all()
  assert (some.tokens[~alive] == 0).all()


def test_batch_size_does_not_change_a_completion(
  sampling, params, prompt, shape
):
  _, state = first_turn(sampling, params, prompt)
  feedback = np.full((8, shape.max_feedback_tokens), 50, np.int32)
  two = lambda n: np.full(n, 2, np.int32)
  key = jax.random.key(5)
  rows = np.arange(8, dtype=np.int32)
  wide = sampling.next_turn[1, 8, 8](params, state, rows, feedback, two(8))
  _, state = first_turn(sampling, params, prompt)
  narrow = sampling.next_turn[1, 8, 4](
    params, state, rows[4:], feedback[:4], two(4)
  )
  a, _ = sampling.decode[1, 8](params, wide, key, rows, np.ones(8, bool))
  b, _ = sampling.decode[1, 4](params, narrow, key, rows[4:], np.ones(4, bool))
  np.testing.assert_array_equal(a.tokens[4:], b.tokens)


def test_samples_of_a_group_differ_and_seeds_matter(sampling, params, prompt):
  one, _ = first_turn(sampling, params, prompt, seed=0)
  again, _ = first_turn(sampling, params, prompt, seed=0)
  other, _ = first_turn(sampling, params, prompt, seed=1)
  np.testing.assert_array_equal(one.tokens, again.tokens)
  assert (one.tokens != other.tokens).any()
  assert len({tuple(row) for row in one.tokens[:4].tolist()}) == 4


@pytest.mark.covers("P09")
def test_a_row_stops_at_its_end_token_which_it_keeps(
  sampling, params, prompt, vocabulary
):
  (end,) = vocabulary.stop_tokens
  # Push the end token's logit up by way of its embedding.
  biased = jax.tree.map(jnp.array, params)
  table = biased["embedding"]["embedding"]
  biased["embedding"]["embedding"] = table.at[end].mul(6.0)
  answers, _ = first_turn(sampling, biased, prompt)
  assert answers.stopped.any()
  for row in range(8):
    own = answers.tokens[row, : answers.lengths[row]]
    if answers.stopped[row]:
      assert own[-1] == end and (own[:-1] != end).all()
      # The log-probability of stopping is stored like any other.
      assert answers.logprobs[row, answers.lengths[row] - 1] != 0
    assert (answers.tokens[row, answers.lengths[row] :] == 0).all()


@pytest.mark.covers("P09")
def test_a_padding_id_that_is_sampled_is_a_token(
  sampling, params, model, prompt, vocabulary
):
  # Masks come from lengths: id 0 (the padding) inside of an answer counts.
  pad = 0
  biased = jax.tree.map(jnp.array, params)
  table = biased["embedding"]["embedding"]
  biased["embedding"]["embedding"] = table.at[pad].set(3.0 * table[77])
  answers, _ = first_turn(sampling, biased, prompt)
  row = int(np.argmax((answers.tokens == pad).any(1)))
  own = answers.tokens[row, : answers.lengths[row]].tolist()
  assert pad in own
  tokens, lengths = prompt
  p = row // 4
  ids = tokens[p, : lengths[p]].tolist() + own
  got = trainer_logprobs(model, biased, ids)[lengths[p] - 1 :]
  np.testing.assert_allclose(answers.logprobs[row, : len(own)], got, atol=1e-4)


def test_decoding_ends_when_every_row_has(sampling, params, prompt):
  idle, _ = first_turn(sampling, params, prompt, alive=np.zeros(8, bool))
  assert int(idle.num_steps) == 0


@pytest.mark.covers("P10")
def test_a_full_context_ends_a_row(model, params, shape, vocabulary):
  import dataclasses

  from leap_jax import sampler

  narrow = dataclasses.replace(
    shape, max_context_tokens=shape.max_prompt_tokens + 4, num_turns=1
  )
  sampling = sampler.make_sampler(
    model, narrow, params, temperature=1.0, stop_tokens=vocabulary.stop_tokens
  )
  tokens = np.full((2, shape.max_prompt_tokens), 9, np.int32)
  lengths = np.asarray([shape.max_prompt_tokens, 10], np.int32)
  state = sampling.prefill(params, tokens, lengths)
  answers, state = sampling.decode[0, 8](
    params,
    state,
    jax.random.key(0),
    np.arange(8, dtype=np.int32),
    np.ones(8, bool),
  )
  room = np.where(np.arange(8) < 4, 4, shape.max_new_tokens)
  assert (np.asarray(answers.lengths) <= room).all()
  assert (np.asarray(answers.lengths)[:4] == 4).any()


@pytest.mark.covers("P28")
def test_no_program_compiles_twice(sampling, params, prompt, shape):
  first_turn(sampling, params, prompt)
  with compilations.counted() as compiled:
    for seed in range(3):
      tokens, lengths = prompt[0].copy(), prompt[1] + seed
      _, state = first_turn(sampling, params, (tokens, lengths), seed=seed)
      for batch in shape.row_buckets:
        rows = np.arange(batch, dtype=np.int32)
        sampling.next_turn[1, 8, batch](
          params,
          state,
          rows,
          np.zeros((batch, shape.max_feedback_tokens), np.int32),
          np.full(batch, 1 + seed, np.int32),
        )
  assert compiled.count == 0
