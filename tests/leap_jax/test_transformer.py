"""The decoder: a NumPy reference, the cache, padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax.models import transformer


def reference_forward(config, params, tokens):
  """The decoder's mathematics in float64 NumPy, one row, loops over heads."""
  p = jax.tree.map(lambda x: np.asarray(x, np.float64), params)

  def rms(x, scale):
    mean = np.mean(x * x, -1, keepdims=True)
    return x / np.sqrt(mean + config.norm_eps) * scale

  def rope(x, position):
    half = config.head_size // 2
    angle = position * config.rope_theta ** (-np.arange(half) / half)
    a, b = x[:half], x[half:]
    return np.concatenate(
      [
        a * np.cos(angle) - b * np.sin(angle),
        b * np.cos(angle) + a * np.sin(angle),
      ]
    )

  x = p["embedding"]["embedding"][tokens]
  length, h = len(tokens), config.head_size
  group = config.num_heads // config.num_kv_heads
  for i in range(config.num_layers):
    w = jax.tree.map(lambda a, i=i: a[i], p["blocks"])
    normed = rms(x, w["attention_norm"]["scale"])
    out = np.zeros((length, config.num_heads * h))
    for n in range(config.num_heads):
      k = n // group
      columns = lambda m, i: m[:, i * h : (i + 1) * h]
      q = normed @ columns(w["query"]["kernel"], n)
      key = normed @ columns(w["key"]["kernel"], k)
      value = normed @ columns(w["value"]["kernel"], k)
      q = rms(q, w["query_norm"]["scale"])
      key = rms(key, w["key_norm"]["scale"])
      q = np.stack([rope(r, t) for t, r in enumerate(q)])
      key = np.stack([rope(r, t) for t, r in enumerate(key)])
      for t in range(length):
        scores = key[: t + 1] @ q[t] / np.sqrt(h)
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        out[t, n * h : (n + 1) * h] = weights @ value[: t + 1]
    x = x + out @ w["out"]["kernel"]
    normed = rms(x, w["mlp_norm"]["scale"])
    gate = normed @ w["gate"]["kernel"]
    up = normed @ w["up"]["kernel"]
    x = x + (gate / (1 + np.exp(-gate)) * up) @ w["down"]["kernel"]
  return rms(x, p["final_norm"]["scale"])


def test_forward_equals_the_reference(model, params):
  tokens = np.asarray([5, 9, 300, 2, 77, 5, 5])
  got = transformer.forward(model, params, jnp.asarray(tokens)[None])[0]
  expected = reference_forward(model, params, tokens)
  np.testing.assert_allclose(got, expected, atol=2e-5)


@pytest.mark.parametrize("split", [1, 3, 6])
def test_reading_in_parts_equals_reading_at_once(model, params, split):
  tokens = jax.random.randint(jax.random.key(1), (2, 7), 0, model.vocab_size)
  whole = transformer.forward(model, params, tokens)
  caches = transformer.empty_caches(model, 2, 16)
  start = jnp.zeros(2, jnp.int32)
  first, caches = transformer.extend(
    model, params, caches, tokens[:, :split], start
  )
  rest, _ = transformer.extend(
    model, params, caches, tokens[:, split:], start + split
  )
  got = jnp.concatenate([first, rest], 1)
  np.testing.assert_allclose(got, whole, atol=2e-5)


def test_rows_of_different_lengths_share_a_cache(model, params):
  # Row 0 has 3 tokens, row 1 has 5; padding of row 0 must leave no trace.
  rows = [[4, 8, 15], [16, 23, 42, 4, 8]]
  padded = jnp.asarray([rows[0] + [99, 98], rows[1]])
  caches = transformer.empty_caches(model, 2, 12)
  _, caches = transformer.extend(
    model, params, caches, padded, jnp.zeros(2, jnp.int32)
  )
  more = jnp.asarray([[7, 6], [5, 4]])
  got, _ = transformer.extend(model, params, caches, more, jnp.asarray([3, 5]))
  for i, row in enumerate(rows):
    full = jnp.asarray([row + more[i].tolist()])
    expected = transformer.forward(model, params, full)[0, -2:]
    np.testing.assert_allclose(got[i], expected, atol=2e-5)


def test_padding_behind_a_row_changes_nothing_before_it(model, params):
  tokens = jnp.asarray([[4, 8, 15, 16]])
  padded = jnp.asarray([[4, 8, 15, 16, 0, 0, 7]])
  np.testing.assert_allclose(
    transformer.forward(model, params, padded)[:, :4],
    transformer.forward(model, params, tokens),
    atol=1e-6,
  )
