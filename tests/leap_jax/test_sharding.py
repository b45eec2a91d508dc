"""What lies where, and what a device sees of it."""

import jax.numpy as jnp

from leap_jax import sharding
from leap_jax.models import sizes


def test_a_window_that_is_a_number_stays_one_on_each_device():
  seen = []

  def attend(query, keys, values, lengths, window):
    seen.append(window)
    return query[..., 0]

  model = sizes.model_config("micro", 50)
  split = sharding._split_attention(model, sharding.make_mesh(), attend)
  heads = jnp.zeros((1, 2, model.num_heads, model.head_size))
  lengths = jnp.ones(1, jnp.int32)
  for window in (4, None, jnp.int32(4)):
    split(heads, heads, heads, lengths, window=window)
  number, none, traced = seen
  # cuDNN takes the window of a layer only if it knows it while compiling.
  assert isinstance(number, int) and number == 4
  assert none is None and not isinstance(traced, int)
