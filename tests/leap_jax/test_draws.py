"""Drawing tokens: the distribution, and what is stored about it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import draws, losses

V = 1500  # more than one block, and no multiple of a block


def softmax(x):
  p = np.exp(x - x.max())
  return p / p.sum()


def many(logits, rule, count, seed=0, num_ids=None):
  keys = jax.random.split(jax.random.key(seed), count)
  rows = jnp.broadcast_to(logits, (count, logits.shape[-1]))
  return jax.device_get(
    jax.jit(lambda: draws.draw(rows, keys, rule, num_ids or logits.shape[-1]))()
  )


@pytest.mark.parametrize("size", [12, V])
def test_frequencies_are_the_softmax(size):
  # Most of the mass on a few ids that lie in different blocks, a tenth of it
  # spread evenly.
  logits = np.zeros(size, np.float32)
  heavy = np.asarray([0, 5, size // 2, size - 1])
  logits[heavy] = np.log(0.9 / 0.1 * size / 4) + np.asarray([0, -1, 0.5, -0.3])
  rule = draws.Rule(temperature=1.3)
  p = softmax(logits / 1.3)
  count = 2_000
  ids, _, _ = many(logits, rule, count)
  seen = np.bincount(ids, minlength=size) / count
  spread = 4 * np.sqrt(p * (1 - p) / count) + 1e-9
  assert (np.abs(seen - p)[heavy] < spread[heavy]).all()
  rest = np.setdiff1d(np.arange(size), heavy)
  share = p[rest].sum()
  assert abs(seen[rest].sum() - share) < 4 * np.sqrt(share / count)
  # Blocks are chosen by their mass, whatever their place.
  half = rest[rest < size // 2]
  assert abs(seen[half].sum() - p[half].sum()) < 4 * np.sqrt(share / count)


@pytest.mark.parametrize("size", [12, V])
def test_the_stored_logprob_is_the_losses(size):
  logits = jax.random.normal(jax.random.key(1), (64, size)) * 3
  keys = jax.random.split(jax.random.key(2), 64)
  for rule in (draws.Rule(0.7), draws.Rule(0.7, top_k=3, top_p=0.8)):
    ids, logprobs, _ = draws.draw(logits, keys, rule, size)
    want = losses.token_logprobs(
      logits[:, None], ids[:, None], temperature=0.7
    )[:, 0]
    np.testing.assert_allclose(logprobs, want, atol=2e-6)


def kept_by_hand(logits, rule):
  """By sorting: the ids that may be sampled."""
  x = logits / rule.temperature
  order = np.argsort(-x, kind="stable")
  p = softmax(x)
  if rule.top_k:
    order = order[: rule.top_k]
  if rule.top_p < 1:
    mass = np.cumsum(p[order]) / p[order].sum()
    order = order[: int(np.searchsorted(mass, rule.top_p)) + 1]
  if rule.min_p:
    order = order[p[order] >= rule.min_p * p.max()]
  return set(order.tolist()), np.log(p[order].sum())


@pytest.mark.parametrize(
  "rule",
  [
    draws.Rule(1.0, top_k=1),
    draws.Rule(0.8, top_k=5),
    draws.Rule(1.0, top_p=0.7),
    draws.Rule(1.3, min_p=0.2),
    draws.Rule(0.9, top_k=40, top_p=0.9, min_p=0.05),
  ],
  ids=str,
)
@pytest.mark.parametrize("size", [40, V])
def test_cuts_are_those_of_sorting(size, rule):
  logits = np.asarray(jax.random.normal(jax.random.key(3), (size,)) * 2)
  kept, log_kept = kept_by_hand(logits.astype(np.float64), rule)
  ids, _, got = many(logits, rule, 64)
  assert set(ids.tolist()) <= kept
  if len(kept) <= 5:
    assert set(ids.tolist()) == kept
  np.testing.assert_allclose(got, log_kept, atol=1e-4)


@pytest.mark.parametrize("size", [40, V])
@pytest.mark.parametrize("top_k", [1, 3])
def test_flat_logits_lose_no_id_to_rounding(size, top_k):
  # Where a log-probability is far larger than its logit, adding the
  # normalizer back would round the threshold above its own id.
  logits = jax.random.normal(jax.random.key(8), (200, size)) * 0.3
  keys = jax.random.split(jax.random.key(9), 200)
  ids, logprobs, _ = draws.draw(logits, keys, draws.Rule(top_k=top_k), size)
  best = np.argsort(-np.asarray(logits), -1)[:, :top_k]
  assert (np.asarray(ids)[:, None] == best).any(-1).all()
  assert (logprobs > -50).all()


def test_nothing_is_cut_by_default():
  logits = jax.random.normal(jax.random.key(4), (3, V))
  keys = jax.random.split(jax.random.key(5), 3)
  _, _, log_kept = draws.draw(logits, keys, draws.Rule(), V)
  assert (log_kept == 0).all() and not draws.Rule(0.5).cuts


def test_a_row_depends_on_its_own_key_alone():
  logits = jax.random.normal(jax.random.key(6), (8, V))
  keys = jax.random.split(jax.random.key(7), 8)
  every = draws.draw(logits, keys, draws.Rule(), V)
  some = draws.draw(logits[2:5], keys[2:5], draws.Rule(), V)
  for a, b in zip(every, some, strict=True):
    np.testing.assert_array_equal(a[2:5], b)


@pytest.mark.parametrize("size", [12, V])
def test_an_id_that_no_token_has_is_never_drawn(size):
  logits = np.zeros(size, np.float32)
  logits[-3:] = 5.0
  ids, logprobs, _ = many(logits, draws.Rule(), 200, num_ids=size - 3)
  assert ids.max() < size - 3
  np.testing.assert_allclose(logprobs, -np.log(size - 3), atol=1e-5)
