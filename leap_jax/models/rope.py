"""Rotary position embedding and the ways to stretch it."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Scaling:
  """How frequencies are stretched for contexts longer than in pretraining."""

  kind: str = "none"  # a key of SCALINGS
  factor: float = 1.0  # by which the context grew
  original_context: int = 0  # tokens, before it did (llama3, yarn)
  low_frequency_factor: float = 1.0  # llama3
  high_frequency_factor: float = 4.0  # llama3
  beta_fast: float = 32.0  # yarn: turns above which nothing is stretched
  beta_slow: float = 1.0  # yarn: turns below which all is
  attention_factor: float = 1.0  # yarn: of sine and cosine


def _unscaled(frequencies, scaling, theta):
  del scaling, theta
  return frequencies


def _linear(frequencies, scaling, theta):
  """Positions divided by the factor (Chen et al. 2023, arXiv 2306.15595)."""
  del theta
  return frequencies / scaling.factor


def _llama3(frequencies, scaling, theta):
  """Long waves divided by the factor, short ones kept, a ramp between.

  With w = 2 pi / frequency and C the original context: kept where
  w < C / high, divided where w > C / low, and between them mixed by
  s = (C / w - low) / (high - low) (Llama 3.1, `rope_scaling`).
  """
  del theta
  turns = scaling.original_context * frequencies / (2 * math.pi)
  low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
  kept = jnp.clip((turns - low) / (high - low), 0.0, 1.0)
  return (1 - kept) * frequencies / scaling.factor + kept * frequencies


def _yarn(frequencies, scaling, theta):
  """Divided by the factor where a wave turns little, kept where it turns much.

  The ramp runs over dimensions, between those that turn `beta_fast` and
  `beta_slow` times in the original context (Peng et al. 2023, arXiv
  2309.00071, section 3.2).
  """
  half = frequencies.shape[0]

  def dimension(turns):
    wave = scaling.original_context / (turns * 2 * math.pi)
    return half * math.log(wave) / math.log(theta)

  low = max(math.floor(dimension(scaling.beta_fast)), 0)
  high = min(math.ceil(dimension(scaling.beta_slow)), 2 * half - 1)
  ramp = (np.arange(half) - low) / max(high - low, 0.001)
  kept = 1 - np.clip(ramp, 0.0, 1.0).astype(np.float32)
  return (1 - kept) * frequencies / scaling.factor + kept * frequencies


SCALINGS = {
  "none": _unscaled,
  "linear": _linear,
  "llama3": _llama3,
  "yarn": _yarn,
}


def frequencies(head_size: int, theta: float, scaling: Scaling) -> jax.Array:
  """[H / 2] float32 radians by which pair i turns from token to token.

  theta^(-2i / H), stretched (Su et al. 2021, arXiv 2104.09864, section 3.2.2).
  """
  half = head_size // 2
  plain = theta ** (-jnp.arange(half, dtype=jnp.float32) / half)
  return SCALINGS[scaling.kind](plain, scaling, theta)


def sine_cosine(
  positions: jax.Array, frequencies: jax.Array, scaling: Scaling
) -> tuple[jax.Array, jax.Array]:
  """Of the angles by which pairs turn: [B, T] -> two of [B, T, H / 2]."""
  angles = jnp.einsum("bt,h->bth", positions.astype(jnp.float32), frequencies)
  sin, cos = jnp.sin(angles), jnp.cos(angles)
  if scaling.attention_factor != 1.0:
    sin, cos = sin * scaling.attention_factor, cos * scaling.attention_factor
  return sin, cos


def rotate(
  x: jax.Array,
  positions: jax.Array,
  frequencies: jax.Array,
  scaling: Scaling,
) -> jax.Array:
  """Rotates pairs (i, i + H / 2) by angles that grow with position.

  Args:
    x: [B, T, heads, H].
    positions: [B, T].
    frequencies: [H / 2] radians a token.
    scaling: gives the factor of sine and cosine.

  Returns:
    [B, T, heads, H] in the dtype of `x`.
  """
  sin, cos = sine_cosine(positions, frequencies, scaling)
  sin, cos = sin[:, :, None], cos[:, :, None]
  first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
  rotated = [first * cos - second * sin, second * cos + first * sin]
  return jnp.concatenate(rotated, -1).astype(x.dtype)
