"""A policy before its weights are read."""

from collections.abc import Callable
from typing import Any, NamedTuple

from leap_jax.models.config import ModelConfig
from leap_jax.tokenizer import Tokenizer


class OpenPolicy(NamedTuple):
  """Sizes and tokenizer, and how to get the parameters."""

  config: ModelConfig
  tokenizer: Tokenizer
  # read(dtype=jnp.float32, place=...) -> tree of parameters, where
  # `place(path, array)` puts each array on the devices as soon as it is whole.
  read: Callable[..., Any]
