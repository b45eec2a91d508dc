"""The head in chunks gives what the whole one gives, and its gradients."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import head
from leap_jax.models import sizes

CONFIG = sizes.model_config("micro", 50)
ROWS, LENGTH = 4, 9


@pytest.fixture(scope="module")
def inputs():
  keys = jax.random.split(jax.random.key(0), 4)
  params = {
    "embedding": {
      "embedding": jax.random.normal(keys[0], (50, CONFIG.width)) / 8
    }
  }
  hidden = jax.random.normal(keys[1], (ROWS, LENGTH, CONFIG.width))
  targets = jax.random.randint(keys[2], (ROWS, LENGTH), 0, 50)
  mask = jax.random.bernoulli(keys[3], 0.6, (ROWS, LENGTH)).at[1].set(False)
  return params, hidden, targets, mask


def run(name, config, inputs, chunk_tokens=7, num_shards=1):
  """(stats, gradients) of a sum over the mask."""
  params, hidden, targets, mask = inputs
  make = head.HEADS[name](
    config,
    temperature=0.7,
    chunk_tokens=chunk_tokens,
    num_shards=num_shards,
  )

  def loss(params, hidden):
    stats = make(params, hidden, targets, mask)
    weights = jnp.arange(1.0, 1 + mask.size).reshape(mask.shape)
    return jnp.where(mask, stats.logprobs * weights, 0.0).sum(), stats

  gradient = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))
  (_, stats), grads = gradient(params, hidden)
  return stats, grads


def test_logits_are_float32_whatever_the_policy_is(inputs):
  params, hidden, targets, mask = inputs
  short = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
  rounded = (short, (20 * hidden).astype(jnp.bfloat16), targets, mask)
  expected, _ = run("whole", CONFIG, rounded)
  got, _ = run("chunked", CONFIG, rounded)
  np.testing.assert_allclose(
    np.where(mask, got.logprobs, 0),
    np.where(mask, expected.logprobs, 0),
    atol=1e-4,
  )


@pytest.mark.parametrize(
  "chunk_tokens, num_shards",
  [(1, 1), (7, 1), (100, 1), (8, 4)],
  ids=["one", "some", "all", "shards"],
)
def test_chunks_give_the_same(inputs, chunk_tokens, num_shards):
  mask = inputs[3]
  expected, grads = run("whole", CONFIG, inputs)
  got, got_grads = run("chunked", CONFIG, inputs, chunk_tokens, num_shards)
  np.testing.assert_array_equal(got.known, mask)
  for a, b in zip(got[:2], expected[:2], strict=True):
    np.testing.assert_allclose(a, jnp.where(mask, b, 0), atol=1e-5)
  for a, b in zip(
    jax.tree.leaves(got_grads), jax.tree.leaves(grads), strict=True
  ):
    np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-5)


def test_ids_that_no_token_has_get_no_gradient(inputs):
  config = dataclasses.replace(CONFIG, padding_ids=6)
  params, hidden, targets, mask = inputs
  inputs = params, hidden, jnp.minimum(targets, 43), mask
  expected, grads = run("whole", config, inputs)
  got, got_grads = run("chunked", config, inputs)
  np.testing.assert_allclose(
    got.logprobs, jnp.where(mask, expected.logprobs, 0), atol=1e-5
  )
  table = got_grads[0]["embedding"]["embedding"]
  assert (table[44:] == 0).all() and (table[:44] != 0).any(1).all()
  np.testing.assert_allclose(
    table, grads[0]["embedding"]["embedding"], atol=1e-4, rtol=1e-5
  )


def test_a_mask_of_nothing_costs_no_chunk_and_gives_zeros(inputs):
  params, hidden, targets, mask = inputs
  stats, grads = run(
    "chunked", CONFIG, (params, hidden, targets, jnp.zeros_like(mask))
  )
  assert all((x == 0).all() for x in (*stats, *jax.tree.leaves(grads)))


def test_products_of_16_bits_sum_in_float32(inputs):
  # The jaxpr names each product: 16-bit operands, and no float32 operand where
  # a GPU would leave its fast units.
  params, hidden, targets, mask = inputs
  short = lambda tree: jax.tree.map(lambda x: x.astype(jnp.bfloat16), tree)
  make = head.make_chunked(
    CONFIG, temperature=1.0, chunk_tokens=8, num_shards=1
  )
  gradient = jax.grad(
    lambda p, h: make(p, h, targets, mask).logprobs.sum(), (0, 1)
  )
  text = str(jax.make_jaxpr(gradient)(short(params), short(hidden)))
  products = [line for line in text.split("\n") if "dot_general[" in line]
  assert len(products) == 4  # forward, again, and two gradients
  grads = jax.jit(gradient)(short(params), short(hidden))
  exact = jax.jit(gradient)(params, hidden)
  for a, b in zip(jax.tree.leaves(grads), jax.tree.leaves(exact), strict=True):
    assert a.dtype == jnp.bfloat16
    gap = np.linalg.norm(a.astype(np.float32) - b) / np.linalg.norm(b)
    assert gap < 2e-2, gap
