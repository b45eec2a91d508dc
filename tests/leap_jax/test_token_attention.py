"""Decoding's own attention: the definition's numbers, on the CPU."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax.models import (
  attention,
  attention_choice,
  cache_rows,
  decoding,
  sizes,
  token_attention,
  transformer,
)

# Of one token: nothing else in a block, at a block's edges, a full row.
LENGTHS = np.asarray([1, 63, 64, 65, 128, 150, 150])
ROOM = LENGTHS.max()


def tensors(dtype, *shapes):
  rng = np.random.default_rng(0)
  normal = lambda shape: rng.standard_normal(shape, np.float32).astype(dtype)
  return [normal(shape) for shape in shapes]


def wide(tree):
  return jax.tree.map(lambda x: np.asarray(x, np.float32), tree)


def compiled(function, implementation, **options):
  return jax.jit(
    functools.partial(function, implementation=implementation, **options)
  )


def hide(keys, lengths):
  """What is behind the rows' ends must not be looked at."""
  is_live = np.arange(keys.shape[1])[None] < np.asarray(lengths)[:, None]
  return np.where(is_live[..., None, None], keys, np.nan).astype(keys.dtype)


@pytest.mark.parametrize(
  "dtype,heads,kv_heads,size,window,most_parts",
  [
    (np.float32, 6, 2, 16, None, 1),
    (np.float32, 6, 2, 16, None, 4),
    (np.float32, 6, 2, 16, 3, 1),
    (np.float32, 3, 1, 32, 70, 2),
    (np.float32, 20, 1, 16, None, 1),
    (jnp.bfloat16, 2, 2, 64, None, 2),
    (np.float16, 4, 2, 16, 64, 1),
  ],
)
def test_one_token_is_the_definition(
  dtype, heads, kv_heads, size, window, most_parts, monkeypatch
):
  monkeypatch.setattr(token_attention, "_LEAST_KEYS", 32)
  monkeypatch.setattr(token_attention, "_MOST_PARTS", most_parts)
  rows = LENGTHS.size
  query, keys, values = tensors(
    dtype, (rows, 1, heads, size), *[(rows, ROOM, kv_heads, size)] * 2
  )
  options = dict(scale=0.3, window=window)
  got = compiled(attention.one_token, "pallas", **options)(
    query, hide(keys, LENGTHS), hide(values, LENGTHS), LENGTHS
  )
  want = compiled(attention.one_token, "xla", **options)(
    *wide((query, keys, values)), LENGTHS
  )
  assert got.dtype == dtype
  close = 1e-6 if dtype == np.float32 else 0.01
  np.testing.assert_allclose(wide(got), want, atol=close)


@pytest.mark.parametrize(
  "dtype,group,heads,kv_heads,most_parts",
  [
    (np.float32, 3, 6, 2, 1),
    (np.float32, 24, 6, 2, 2),  # more queries than a program takes
    (jnp.bfloat16, 4, 7, 1, 4),
  ],
)
def test_rows_behind_a_shared_prompt_see_what_they_would_alone(
  dtype, group, heads, kv_heads, most_parts, monkeypatch
):
  monkeypatch.setattr(token_attention, "_LEAST_KEYS", 32)
  monkeypatch.setattr(token_attention, "_MOST_PARTS", most_parts)
  prompt_lengths, size = np.asarray([65, 1]), 16
  rows = 2 * group
  lengths = np.resize(LENGTHS, rows)
  query, *own, before, before_values = tensors(
    dtype,
    (rows, 1, heads, size),
    *[(rows, ROOM, kv_heads, size)] * 2,
    *[(2, 70, kv_heads, size)] * 2,
  )
  prompts = (before, before_values)
  got = compiled(attention.behind_prompts, "pallas")(
    query,
    tuple(hide(x, lengths) for x in own),
    lengths,
    tuple(hide(x, prompt_lengths) for x in prompts),
    prompt_lengths,
  )
  want = compiled(attention.behind_prompts, "xla")(
    *wide((query, tuple(own))), lengths, wide(prompts), prompt_lengths
  )
  close = 1e-6 if dtype == np.float32 else 0.01
  np.testing.assert_allclose(wide(got), want, atol=close)


@pytest.mark.parametrize("most_parts", [1, 4])
def test_slots_find_their_rows_behind_shared_prompts(most_parts, monkeypatch):
  monkeypatch.setattr(token_attention, "_LEAST_KEYS", 32)
  monkeypatch.setattr(token_attention, "_MOST_PARTS", most_parts)
  prompt_lengths = np.asarray([65, 33, 1])  # each with four rows
  rows_of = np.asarray([9, 2, 12, 0, 10, 3])  # the third slot has none
  slots_of = np.full(12, 6)
  slots_of[rows_of[rows_of < 12]] = np.flatnonzero(rows_of < 12)
  lengths = np.resize(LENGTHS, 12)
  query, *own, before, before_values = tensors(
    np.float32,
    (12, 1, 6, 16),
    *[(12, ROOM, 2, 16)] * 2,
    *[(3, 70, 2, 16)] * 2,
  )
  prompts = (before, before_values)
  want = compiled(attention.behind_prompts, "xla")(
    query, tuple(own), lengths, prompts, prompt_lengths
  )
  # Nobody reads the second prompt; what nobody reads must not be looked at.
  is_read = np.asarray([1, 0, 1])
  taken = np.minimum(rows_of, 11)
  got = compiled(
    attention.behind_prompts,
    "pallas",
    places=cache_rows.Places(rows_of, slots_of),
  )(
    query[taken],
    tuple(hide(x, lengths) for x in own),
    lengths[taken],
    tuple(hide(x, prompt_lengths * is_read) for x in prompts),
    prompt_lengths * is_read,
  )
  has_row = rows_of < 12
  np.testing.assert_allclose(
    got[has_row], want[rows_of[has_row]], atol=1e-6, rtol=1e-5
  )


def test_a_step_of_some_slots_is_that_of_all_rows():
  """Decoding's own part of it: who is where, and whom nobody needs."""
  model = sizes.model_config("micro", 50)
  weights = decoding.weights_of(
    model, transformer.init(model, jax.random.key(0)), jnp.float32
  )
  rng = np.random.default_rng(0)
  filled = lambda count, room: tuple(
    decoding.Cache(
      *rng.standard_normal(
        (2, count, room, model.num_kv_heads, model.head_size)
      ).astype(np.float32)
    )
    for _ in range(model.num_layers)
  )
  caches = filled(8, 24)
  prompts = decoding.Prompts(filled(2, 12), jnp.asarray([12, 5]))
  lengths = np.repeat([12, 5], 4) + np.arange(8)
  tokens, is_idle = np.arange(8) + 7, np.arange(8) % 3 == 1
  everywhere, whole = jax.jit(
    functools.partial(
      decoding.add_token, model, places=None, implementation="xla"
    )
  )(weights, caches, prompts, tokens, lengths, is_idle)
  rows = np.asarray([6, 0, 8, 5, 2])  # the third slot has none
  slots = np.full(8, 5)
  slots[[6, 0, 5, 2]] = [0, 1, 3, 4]
  taken = np.minimum(rows, 7)
  got, local = jax.jit(
    functools.partial(decoding.add_token, model, implementation="pallas")
  )(
    weights,
    caches,
    prompts,
    tokens[taken],
    lengths[taken],
    is_idle[taken] | (rows == 8),
    cache_rows.Places(rows, slots),
  )
  matters = (rows < 8) & ~is_idle[taken]
  np.testing.assert_allclose(
    got[matters], everywhere[rows[matters]], atol=1e-5, rtol=1e-4
  )
  for mine, all_of_them in zip(local, whole, strict=True):
    for one, other in zip(mine, all_of_them, strict=True):
      np.testing.assert_allclose(
        one[rows[matters]], other[rows[matters]], atol=1e-5, rtol=1e-4
      )


def test_slots_look_at_their_rows():
  rows = np.asarray([5, 0, 9, 3])  # the third has none
  lengths = np.asarray([150, 64, 1, 7])
  query, keys, values = tensors(
    np.float32, (4, 1, 6, 16), *[(7, ROOM, 2, 16)] * 2
  )
  run = lambda implementation: compiled(
    attention.one_token, implementation, rows=rows
  )(query, keys, values, lengths)
  got, want = run("pallas"), run("xla")
  np.testing.assert_allclose(got, want, atol=1e-6)
  alone = compiled(attention.one_token, "xla")(
    query[:1], keys[5:6], values[5:6], lengths[:1]
  )
  np.testing.assert_allclose(got[:1], alone, atol=1e-6)


def test_parts_fill_a_gpu_and_no_more():
  of = token_attention._num_parts
  # The rows of Qwen2.5-0.5B are enough; a few long ones are not.
  assert (of(512 * 2, 576), of(64 * 2, 4096), of(8 * 2, 576)) == (1, 8, 2)


def test_it_is_chosen_where_it_works(monkeypatch):
  model = dataclasses.replace(
    sizes.model_config("micro", 50), local_layers=(0,), local_window=4
  )
  choose = functools.partial(
    attention_choice.choose_for_one_token, jnp.float32, model
  )
  attention_choice._fault.cache_clear()
  assert choose("xla", 0) == "xla"
  assert choose("cudnn", 0) == "pallas" == choose("cudnn", 12)
  odd = dataclasses.replace(model, head_size=24)
  with pytest.warns(UserWarning, match="decoding: heads of 24; there is"):
    assert (
      attention_choice.choose_for_one_token(jnp.float32, odd, "cudnn", 0)
      == "cudnn"
    )
  works = token_attention.one_token
  monkeypatch.setattr(
    token_attention, "one_token", lambda *x, **y: 1.1 * works(*x, **y)
  )
  attention_choice._fault.cache_clear()
  with pytest.warns(UserWarning, match="through cuDNN: decoding is off by"):
    assert choose("cudnn", 0) == "cudnn"
  attention_choice._fault.cache_clear()


def test_rows_of_several_parts_are_tried_too(monkeypatch):
  model = sizes.model_config("micro", 50)
  joined = token_attention._joined
  monkeypatch.setattr(
    token_attention,
    "_joined",
    lambda a, b: joined(a, b)._replace(sums=joined(a, b).sums * 1.5),
  )
  token_attention._compiled.cache_clear()
  attention_choice._fault.cache_clear()
  with pytest.warns(UserWarning, match="long decoding is off by"):
    choose = attention_choice.choose_for_one_token
    assert choose(jnp.float32, model, "cudnn", 0) == "cudnn"
  token_attention._compiled.cache_clear()
  attention_choice._fault.cache_clear()
