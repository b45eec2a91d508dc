"""What differs between the layers of one model: reach and frequencies."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from leap_jax.models import rope
from leap_jax.models.config import ModelConfig


class LayerRule(NamedTuple):
  """Of one layer; stacked over layers where a scan walks over them."""

  frequencies: jax.Array  # [H / 2] float32
  window: jax.Array | None  # [] int32 tokens that are seen, or all


def _of_kind(config, is_local):
  theta, scaling = config.rope_theta, config.rope_scaling
  if is_local and config.local_rope_theta is not None:
    theta, scaling = config.local_rope_theta, rope.Scaling()
  return rope.frequencies(config.head_size, theta, scaling)


def rule_of(config: ModelConfig, layer: int) -> LayerRule:
  """The rule of one layer, counted from 0."""
  is_local = layer in config.local_layers
  window = jnp.int32(config.local_window) if is_local else None
  return LayerRule(_of_kind(config, is_local), window)


def stacked(config: ModelConfig) -> LayerRule | None:
  """Rules of all layers, stacked; None where all layers are alike.

  A global layer has a window that nothing exceeds.
  """
  if not config.local_layers:
    return None
  local = [i in config.local_layers for i in range(config.num_layers)]
  kinds = jnp.stack([_of_kind(config, False), _of_kind(config, True)])
  everything = jnp.iinfo(jnp.int32).max
  return LayerRule(
    kinds[jnp.asarray(local, jnp.int32)],
    jnp.where(jnp.asarray(local), config.local_window, everything),
  )
