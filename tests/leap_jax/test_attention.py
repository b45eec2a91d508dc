"""Attention: what each of the three cases lets a query see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax.models import attention

B, T, N, K, H = 3, 7, 6, 2, 8


def tensors(queries=T):
  keys = jax.random.split(jax.random.key(0), 3)
  make = lambda key, t, heads: jax.random.normal(key, (B, t, heads, H))
  return make(keys[0], queries, N), make(keys[1], T, K), make(keys[2], T, K)


def by_hand(query, keys, values, positions, scale, window):
  """One query, one head at a time."""
  out = np.zeros((B, query.shape[1], N, H))
  for b in range(B):
    for t in range(query.shape[1]):
      last = int(positions[b][t])
      first = 0 if window is None else max(last - window + 1, 0)
      for n in range(N):
        k = n // (N // K)
        seen = keys[b, first : last + 1, k]
        scores = seen @ query[b, t, n] * scale
        weights = np.exp(scores - scores.max())
        out[b, t, n] = weights / weights.sum() @ values[b, first : last + 1, k]
  return out.reshape(B, query.shape[1], N * H)


@pytest.mark.parametrize("window", [None, 3])
def test_every_case_is_the_definition(window):
  query, keys, values = tensors()
  host = [np.asarray(x) for x in (query, keys, values)]
  places = np.broadcast_to(np.arange(T), (B, T))
  options = dict(implementation="xla", scale=0.3, window=window)
  got = attention.whole_rows(query, keys, values, **options)
  np.testing.assert_allclose(
    got, by_hand(*host, places, 0.3, window), atol=1e-5
  )
  # Two new tokens behind 5, 3 and 4 cached ones.
  start = np.asarray([5, 3, 4])
  places = start[:, None] + np.arange(2)
  got = attention.appended(
    query[:, :2], keys, values, jnp.asarray(places), **options
  )
  want = by_hand(host[0][:, :2], *host[1:], places, 0.3, window)
  np.testing.assert_allclose(got, want, atol=1e-5)
  got = attention.one_token(
    query[:, :1], keys, values, jnp.asarray(start + 1), **options
  )
  want = by_hand(host[0][:, :1], *host[1:], start[:, None], 0.3, window)
  np.testing.assert_allclose(got, want, atol=1e-5)


def test_a_window_may_be_traced():
  query, keys, values = tensors()
  fixed = attention.whole_rows(
    query, keys, values, implementation="xla", window=3
  )
  traced = jax.jit(
    lambda w: attention.whole_rows(
      query, keys, values, implementation="xla", window=w
    )
  )(jnp.int32(3))
  np.testing.assert_allclose(fixed, traced, atol=1e-6)


def test_a_cpu_has_one_implementation():
  assert attention.choose(jnp.bfloat16, jax.devices("cpu")[0]) == "xla"
