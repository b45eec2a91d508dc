"""The decoder over whole rows: what is kept in memory changes no gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax.models import sizes, transformer, whole_rows

MODEL = sizes.model_config("micro", 64)


@pytest.fixture(scope="module")
def params():
  return transformer.init(MODEL, jax.random.key(0))


def gradient(params, **options):
  tokens = jnp.asarray([[4, 8, 15, 16, 23]])
  execution = whole_rows.Execution(**options)
  arrange = whole_rows.LAYERS[execution.layers].arrange
  loss = lambda p: jnp.square(
    whole_rows.hidden_states(MODEL, arrange(p), tokens, execution=execution)
  ).mean()
  return jax.jit(jax.grad(loss)).lower(params).compile()


@pytest.mark.parametrize("options", [
  dict(remat="dots"),
  dict(remat="block", layers="unrolled"),
], ids=str)  # fmt: skip
def test_memory_and_loops_change_no_gradient(params, options):
  expected = gradient(params)(params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
    gradient(params, **options)(params),
    expected,
  )


def test_each_policy_keeps_less(params):
  # What the compiler keeps for the backward pass, by what the trace saves.
  tokens = jnp.zeros((8, 64), jnp.int32)

  def saved_bytes(remat):
    execution = whole_rows.Execution(remat=remat)
    hidden = lambda p: whole_rows.hidden_states(
      MODEL, p, tokens, execution=execution
    )
    _, pull = jax.eval_shape(lambda p: jax.vjp(hidden, p), params)
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(pull))

  none, dots, block = map(saved_bytes, whole_rows.REMAT)
  assert none > dots > block
