"""The sampler: what it stores is what the trainer computes; rows are alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import compilations, draws, losses, sampler
from leap_jax import sampling as sampling_lib
from leap_jax.models import transformer, whole_rows
from leap_jax.models.config import ModelConfig
from leap_jax.models.sizes import SIZES

TEMPERATURE = 0.8  # of the `sampling` fixture
ROWS = np.arange(8)


@pytest.fixture(scope="module")
def prompt(shape):
  tokens = np.zeros((2, shape.max_prompt_tokens), np.int32)
  tokens[0, :5] = [5, 9, 30, 2, 77]
  tokens[1, :3] = [7, 7, 300]
  return tokens, np.asarray([5, 3], np.int32)


def turn_of(made, weights, state, rows, turn=0, seed=0):
  key = jax.random.key(seed)
  answers, state, _ = sampler.all_answers(
    made.answer(weights, state, key, rows, turn), rows
  )
  return answers, state


def first_turn(made, params, prompt, seed=0, rows=ROWS):
  weights = made.prepare(params)
  state = made.begin(weights, *prompt)
  answers, state = turn_of(made, weights, state, rows, seed=seed)
  return answers, state, weights


def trainer_logprobs(model, params, ids):
  """Of each token but the first, by the training path."""
  tokens = np.zeros((1, 128), np.int32)  # one length: compiled once
  tokens[0, : len(ids)] = ids
  return np.asarray(_trainer_logprobs(model, params, tokens))[: len(ids) - 1]


@functools.partial(jax.jit, static_argnums=0)
def _trainer_logprobs(model, params, tokens):
  hidden = whole_rows.hidden_states(model, params, tokens[:, :-1])
  logits = transformer.logits_of(model, params, hidden)
  return losses.token_logprobs(logits, tokens[:, 1:], temperature=TEMPERATURE)[
    0
  ]


def check_against_trainer(model, params, contexts, answers, atol=1e-4):
  """Stored log-probabilities of answers behind their contexts."""
  for i, context in enumerate(contexts):
    own = answers.tokens[i, : answers.lengths[i]].tolist()
    got = trainer_logprobs(model, params, [*context, *own])
    stored = answers.logprobs[i, : answers.lengths[i]]
    np.testing.assert_allclose(stored, got[len(context) - 1 :], atol=atol)


def contexts_of(prompt, rows=ROWS):
  tokens, lengths = prompt
  return [tokens[r // 4, : lengths[r // 4]].tolist() for r in rows]


def conversation(made, model, params, prompt, rows=(6, 1, 3, 0)):
  """Two turns, checked against the trainer; returns both answers."""
  first, state, weights = first_turn(made, params, prompt)
  check_against_trainer(model, params, contexts_of(prompt), first)
  told = [(50 + np.arange(1 + i)).tolist() for i in range(len(rows))]
  state = made.tell(weights, state, rows, told, 1)
  second, _ = turn_of(made, weights, state, rows, 1, seed=3)
  own = lambda row: first.tokens[row, : first.lengths[row]].tolist()
  contexts = [
    context + own(row) + told[i]
    for i, (row, context) in enumerate(
      zip(rows, contexts_of(prompt, rows), strict=True)
    )
  ]
  check_against_trainer(model, params, contexts, second)
  return first, second


@pytest.mark.covers("P03")
def test_stored_logprobs_are_the_trainers_in_every_turn(
  sampling, params, model, prompt
):
  conversation(sampling, model, params, prompt)


def test_a_completion_does_not_depend_on_its_neighbours(
  sampling, params, prompt
):
  every, _, _ = first_turn(sampling, params, prompt)
  # The same rows with the other problem's prompt changed and half of the rows
  # idle.
  tokens, lengths = prompt[0].copy(), prompt[1].copy()
  tokens[1, :6] = [300, 2, 2, 40, 41, 42]
  lengths[1] = 6
  rows = [0, 2, 4, 6]
  some, _, _ = first_turn(sampling, params, (tokens, lengths), rows=rows)
  for i in (0, 1):
    np.testing.assert_array_equal(some.tokens[i], every.tokens[rows[i]])
    np.testing.assert_array_equal(some.logprobs[i], every.logprobs[rows[i]])


def test_batch_size_does_not_change_a_completion(sampling, params, prompt):
  def second(rows):
    _, state, weights = first_turn(sampling, params, prompt)
    state = sampling.tell(weights, state, rows, [[50, 50]] * len(rows), 1)
    return turn_of(sampling, weights, state, rows, 1, seed=5)[0]

  wide, narrow = second(ROWS), second(ROWS[4:])
  np.testing.assert_array_equal(wide.tokens[4:], narrow.tokens)


def test_samples_of_a_group_differ_and_seeds_matter(sampling, params, prompt):
  one, _, _ = first_turn(sampling, params, prompt, seed=0)
  again, _, _ = first_turn(sampling, params, prompt, seed=0)
  other, _, _ = first_turn(sampling, params, prompt, seed=1)
  np.testing.assert_array_equal(one.tokens, again.tokens)
  assert (one.tokens != other.tokens).any()
  assert len({tuple(row) for row in one.tokens[:4].tolist()}) == 4


@pytest.fixture(scope="module")
def two_turns(shape):
  """Fewer programs to compile."""
  return dataclasses.replace(
    shape, num_turns=2, max_context_tokens=140, row_buckets=(8,)
  )


def likely_to_stop(params, vocabulary):
  """The end token's logit pushed up by way of its embedding."""
  biased = jax.tree.map(jnp.array, params)
  table = biased["embedding"]["embedding"]
  (end,) = vocabulary.stop_tokens
  biased["embedding"]["embedding"] = table.at[end].mul(6.0)
  return biased


def as_if_fused(monkeypatch):
  """cuDNN's place is taken by XLA's attention with the same masks."""
  from leap_jax.models import attention

  def fused(query, keys, values, **options):
    return jax.nn.dot_product_attention(query, keys, values, **options)

  monkeypatch.setattr(attention, "_fused", fused)


@pytest.mark.parametrize(
  "implementation,shares_prompts,joins_kernels,token_implementation",
  [
    ("xla", False, False, None),
    ("cudnn", False, False, None),
    ("cudnn", True, False, None),
    ("cudnn", False, False, "pallas"),
    ("cudnn", True, True, "pallas"),
  ],
)
def test_slots_change_no_completion(
  implementation,
  shares_prompts,
  joins_kernels,
  token_implementation,
  model,
  params,
  two_turns,
  vocabulary,
  sampling,
  prompt,
  monkeypatch,
):
  if implementation == "cudnn":
    as_if_fused(monkeypatch)
  params = likely_to_stop(params, vocabulary)
  # Three slots for eight rows, refilled and given up as rows end, prompts one
  # by one, and, for XLA, attention that widens with the longest row.
  settings = sampling_lib.Settings(
    draws.Rule(TEMPERATURE),
    vocabulary.stop_tokens,
    implementation=implementation,
    max_slots=3,
    idle_fraction=0.3,
    prefix_step=64,
    prompts_per_call=1,
    shares_prompts=shares_prompts,
    joins_kernels=joins_kernels,
    draws_by_kernel=joins_kernels,
    token_implementation=token_implementation,
  )
  made = sampler.make_sampler(model, two_turns, settings, params)
  calls = list(
    made.answer(
      weights := made.prepare(params),
      made.begin(weights, *prompt),
      jax.random.key(0),
      ROWS,
      0,
    )
  )
  assert len(calls) >= 3 and {call.num_slots for call in calls} == {3}
  assert sorted(np.concatenate([c.rows for c in calls])) == ROWS.tolist()
  got = conversation(made, model, params, prompt)
  want = conversation(sampling, model, params, prompt)
  assert 0 < want[0].stopped.sum() < 8
  for a, b in zip(got, want, strict=True):
    np.testing.assert_array_equal(a.tokens, b.tokens)
    np.testing.assert_array_equal(a.stopped, b.stopped)


FAMILIES = {
  "qwen2": dict(has_qk_norm=False, has_qkv_bias=True, padding_ids=9),
  "gemma3": dict(
    has_post_norms=True,
    norm_offset=1.0,
    embedding_scale=8.0,
    activation="gelu_tanh",
    local_layers=(0,),
    local_window=4,
    local_rope_theta=100.0,
  ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.covers("P03")
def test_every_family_stores_the_trainers_logprobs(
  family, two_turns, vocabulary, prompt
):
  config = ModelConfig(
    **(
      SIZES["micro"] | dict(vocab_size=vocabulary.vocab_size) | FAMILIES[family]
    )
  )
  params = transformer.init(config, jax.random.key(1))
  # Biases and norms begin at 0 or 1: made to matter.
  keys = iter(jax.random.split(jax.random.key(2), 100))
  params = jax.tree.map(
    lambda x: x + 0.1 * jax.random.normal(next(keys), x.shape), params
  )
  settings = sampling_lib.Settings(
    draws.Rule(TEMPERATURE), vocabulary.stop_tokens
  )
  one_turn = dataclasses.replace(two_turns, num_turns=1)
  made = sampler.make_sampler(config, one_turn, settings, params)
  answers, _, _ = first_turn(made, params, prompt)
  check_against_trainer(config, params, contexts_of(prompt), answers)
  assert (answers.tokens < config.num_ids).all()


def test_weights_side_by_side_are_the_same_model(model, params, monkeypatch):
  from leap_jax.models import decoding

  as_if_fused(monkeypatch)
  tokens, lengths = jnp.asarray([[5, 6, 7, 0]]), jnp.asarray([3])
  weights = decoding.weights_of(model, params, jnp.float32)
  caches = decoding.empty_caches(model, 1, 8, jnp.float32)
  rows = jnp.zeros((1, 1), jnp.int32)
  read = lambda weights, implementation: decoding.read_prompts(
    model, weights, caches, tokens, lengths, rows, implementation
  )[0]
  np.testing.assert_allclose(
    read(weights, "xla"),
    read(decoding.side_by_side(weights), "cudnn"),
    atol=1e-5,
  )


@pytest.mark.covers("P09")
def test_a_row_stops_at_its_end_token_which_it_keeps(
  sampling, params, prompt, vocabulary
):
  (end,) = vocabulary.stop_tokens
  biased = likely_to_stop(params, vocabulary)
  answers, _, _ = first_turn(sampling, biased, prompt)
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
  sampling, params, model, prompt
):
  # Masks come from lengths: id 0 (the padding) inside of an answer counts.
  pad = 0
  biased = jax.tree.map(jnp.array, params)
  table = biased["embedding"]["embedding"]
  biased["embedding"]["embedding"] = table.at[pad].set(3.0 * table[77])
  answers, _, _ = first_turn(sampling, biased, prompt)
  row = int(np.argmax((answers.tokens == pad).any(1)))
  assert pad in answers.tokens[row, : answers.lengths[row]].tolist()
  check_against_trainer(model, biased, contexts_of(prompt), answers)


def test_decoding_ends_when_every_row_has(sampling, params, prompt):
  weights = sampling.prepare(params)
  state = sampling.begin(weights, *prompt)
  assert not list(sampling.answer(weights, state, jax.random.key(0), [], 0))


@pytest.mark.covers("P10")
def test_a_full_context_ends_a_row(model, params, shape, vocabulary):
  narrow = dataclasses.replace(
    shape, max_context_tokens=shape.max_prompt_tokens + 4, num_turns=1
  )
  made = sampler.make_sampler(
    model,
    narrow,
    sampling_lib.Settings(draws.Rule(), vocabulary.stop_tokens),
    params,
  )
  tokens = np.full((2, shape.max_prompt_tokens), 9, np.int32)
  lengths = np.asarray([shape.max_prompt_tokens, 10], np.int32)
  answers, _, _ = first_turn(made, params, (tokens, lengths))
  room = np.where(np.arange(8) < 4, 4, shape.max_new_tokens)
  assert (answers.lengths <= room).all()
  assert (answers.lengths[:4] == 4).any()


@pytest.mark.covers("P28")
def test_no_program_compiles_twice(sampling, params, prompt, shape):
  first_turn(sampling, params, prompt)
  with compilations.counted() as compiled:
    for seed in range(3):
      tokens, lengths = prompt[0].copy(), prompt[1] + seed
      _, state, weights = first_turn(
        sampling, params, (tokens, lengths), seed=seed
      )
      for batch in shape.row_buckets:
        told = [[9] * (1 + seed)] * batch
        state = sampling.tell(weights, state, ROWS[:batch], told, 1)
        _, state = turn_of(sampling, weights, state, ROWS[:batch], 1, seed)
  assert compiled.count == 0
