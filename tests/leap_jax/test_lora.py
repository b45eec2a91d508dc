"""Adapters: they start as nothing, and are trained alone."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from leap_jax import batching, lora, update
from leap_jax.models import sizes, transformer
from tests.leap_jax.test_update import POLICY_LOSS, make_tx, random_rows

LORA = lora.LoraConfig(rank=4, alpha=8.0, targets=("query", "down"))
MODEL = sizes.model_config("micro", 64)


@pytest.fixture(scope="module")
def base():
  return transformer.init(MODEL, jax.random.key(0))


@pytest.fixture(scope="module")
def adapters(base):
  """Adapters that change something."""
  fresh = lora.init(LORA, base, jax.random.key(1))
  return jax.tree.map(lambda x: x + 0.01, fresh)


def test_fresh_adapters_change_nothing(base):
  fresh = lora.init(LORA, base, jax.random.key(1))
  made = lora.adapted_policy(LORA).policy(fresh, base)
  jax.tree.map(np.testing.assert_array_equal, made, base)


def test_merging_adds_the_scaled_product(base, adapters):
  made = lora.adapted_policy(LORA).policy(adapters, base)
  a, b = adapters["down"]["lora_a"][1], adapters["down"]["lora_b"][1]
  np.testing.assert_allclose(
    made["blocks"]["down"]["kernel"][1],
    base["blocks"]["down"]["kernel"][1] + 8.0 / 4 * (a @ b),
    atol=1e-6,
  )
  assert made["blocks"]["up"] is base["blocks"]["up"]


def test_only_adapters_move_and_their_gradient_is_the_chain_rule(
  base, adapters
):
  trained = lora.adapted_policy(LORA)
  whole = trained.policy(adapters, base)
  rows = random_rows(MODEL, whole, (9, 9, 9))
  buckets, _ = batching.pack_rows(rows, (batching.BucketSpec(16, 2),), 4)
  # Plain descent: what moves is the gradient.
  tx = optax.sgd(1.0)
  compute = update.Compute(trained=trained)
  step = jax.jit(update.make_update(MODEL, tx, POLICY_LOSS, compute))
  new, values = step(update.init_state(adapters, tx), buckets, base)
  assert bool(values["finite"]) and bool(values["changed"])
  full, _ = jax.jit(lambda p, b: update.accumulate(MODEL, POLICY_LOSS, p, b))(
    whole, buckets
  )
  for name in LORA.targets:
    d_kernel, old = full["blocks"][name]["kernel"], adapters[name]
    for leaf, expected in (
      ("lora_a", jnp.einsum("lio,lro->lir", d_kernel, old["lora_b"])),
      ("lora_b", jnp.einsum("lio,lir->lro", d_kernel, old["lora_a"])),
    ):
      moved = old[leaf] - new.params[name][leaf]
      np.testing.assert_allclose(moved, 2 * expected, atol=1e-6)


def test_moments_are_those_of_the_adapters(adapters):
  moments = update.init_state(adapters, make_tx()).opt_state
  num = transformer.num_params(adapters)
  assert transformer.num_params(moments) == 2 * num + 2  # and two counts
