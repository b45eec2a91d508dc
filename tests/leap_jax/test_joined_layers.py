"""Decoding's joined kernels: the same layer as without them, on the CPU."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax.models import attention, decoding, joined_layers, transformer
from leap_jax.models.config import ModelConfig
from leap_jax.models.rope import Scaling

# No size is a power of two where it need not be one.
SMALL = dict(
  vocab_size=8, width=96, num_layers=1, num_heads=6, num_kv_heads=2,
  head_size=8, mlp_width=40,
)  # fmt: skip
FAMILIES = {
  "llama": ModelConfig(
    **SMALL, has_qk_norm=False, has_out_bias=True,
    rope_scaling=Scaling("yarn", 4.0, 32, attention_factor=1.14),
  ),
  "qwen2": ModelConfig(
    **SMALL | dict(head_size=12), has_qk_norm=False, has_qkv_bias=True
  ),
  "qwen3": ModelConfig(**SMALL | dict(head_size=16, num_layers=2)),
  "gemma3": ModelConfig(
    **SMALL, has_post_norms=True, norm_offset=1.0, activation="gelu_tanh",
    attention_scale=0.3, local_layers=(0,), local_window=3,
    local_rope_theta=100.0,
  ),
}  # fmt: skip
ROWS, ROOM = 7, 5
QUICK = {"xla_backend_optimization_level": 0}  # of compilation
# Slot 1 has no row; those of slots 2 and 3 have no place left, that of slot 4
# counts from the end.
PLACES = (np.asarray([3, 7, 1, 0, 6]), np.asarray([4, 2, 5, 900, -2]))
POSITIONS = np.asarray([4, 2, 9, 900, 3])


def state_of(config, dtype):
  """Parameters of which none is at its initial 0 or 1, inputs and caches."""
  rng = np.random.default_rng(0)
  normal = lambda *shape: rng.standard_normal(shape, np.float32)
  shapes = jax.eval_shape(
    lambda key: transformer.init(config, key), jax.random.key(0)
  )
  cast = lambda x: x.astype(dtype)
  params = jax.tree.map(lambda x: cast(0.3 * normal(*x.shape)), shapes)
  cache = (ROWS, ROOM, config.num_kv_heads, config.head_size)
  caches = tuple(
    decoding.Cache(cast(normal(*cache)), cast(normal(*cache)))
    for _ in range(config.num_layers)
  )
  x = cast(normal(POSITIONS.size, config.width))
  return params, caches, x


def run(layers, config, state):
  """Hidden states and caches behind all layers, of every slot."""

  def attend(layer, query, cache, window):
    return attention.one_token(
      query,
      *(x[: POSITIONS.size] for x in cache),
      np.full(POSITIONS.size, ROOM),
      implementation=attention.XLA,
      window=window,
    )

  @functools.partial(jax.jit, compiler_options=QUICK)
  def step(params, caches, x):
    weights = decoding.weights_of(config, params, x.dtype)
    weights = decoding.side_by_side(weights)
    return layers(config, weights, caches, x, POSITIONS, PLACES, attend)

  return jax.tree.leaves(step(*state))


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_the_same(family):
  state = state_of(FAMILIES[family], jnp.float32)
  got = run(joined_layers.layers, FAMILIES[family], state)
  want = run(decoding.layers, FAMILIES[family], state)
  for a, b in zip(got, want, strict=True):
    np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)
  before = jax.tree.leaves(state[1])
  for a, b, old in zip(got[1:], want[1:], before, strict=True):
    changed = (a != old).any((2, 3))
    np.testing.assert_array_equal(changed, (b != old).any((2, 3)))
    assert changed.sum() == 2


def test_short_floats_differ_by_their_rounding():
  config = FAMILIES["qwen2"]
  state = state_of(config, jnp.bfloat16)
  got = run(joined_layers.layers, config, state)
  want = run(decoding.layers, config, state)
  for a, b in zip(got, want, strict=True):
    assert a.dtype == b.dtype == jnp.bfloat16
    wide = lambda x: np.asarray(x, np.float32)
    np.testing.assert_allclose(wide(a), wide(b), rtol=0.05, atol=0.05)


def test_products_in_parts_are_the_product(monkeypatch):
  rng = np.random.default_rng(0)
  x, kernel = (
    jnp.asarray(rng.standard_normal(shape, np.float32))
    for shape in ((3, 256), (256, 96))
  )
  parts = joined_layers._products(x, kernel)
  assert parts.shape == (8, 3, 96)
  np.testing.assert_allclose(parts.sum(0), x @ kernel, rtol=1e-5, atol=1e-4)
  # As XLA divides the products of Qwen2.5-0.5B on an H200.
  of = joined_layers._num_parts
  assert (of(512, 896, 896), of(512, 4864, 896), of(512, 896, 1152)) == (
    4,
    4,
    2,
  )
  assert of(512, 896, 9728) == 1


def test_a_fault_is_found(monkeypatch):
  dtype, config = jnp.dtype(jnp.float32), FAMILIES["gemma3"]
  joined_layers.fault.cache_clear()
  assert joined_layers.fault(dtype, config) is None
  joined_layers.fault.cache_clear()
  whole = joined_layers._products
  monkeypatch.setattr(
    joined_layers, "_products", lambda *inputs: whole(*inputs) * 1.2
  )
  with pytest.warns(UserWarning, match="a layer is off by"):
    assert not joined_layers.are_usable(dtype, config, attention.CUDNN)
  joined_layers.fault.cache_clear()
  assert not joined_layers.are_usable(dtype, config, attention.XLA)
