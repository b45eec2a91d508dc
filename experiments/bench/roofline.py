"""Bytes that decoding must read: what bandwidth lets no sampler avoid.

The weights once in every step, and the keys and values of each unfinished row
up to and with the token that it adds. Layers that see only the last tokens read
only those; an embedding that is not the head gives a vector for each token.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from leap_jax.models.config import ModelConfig


def weights_read(
  model: ModelConfig, weights: Any, num_steps: int, num_tokens: int
) -> int:
  """Bytes of the weights (`decoding.weights_of`) that all steps must read."""
  size = lambda tree: sum(x.nbytes for x in jax.tree.leaves(tree))
  if model.tied_head:
    return num_steps * size(weights)
  looked_up = size(weights["embedding"])
  vector = looked_up // model.vocab_size
  return num_steps * (size(weights) - looked_up) + num_tokens * vector


def tokens_read(
  prompt_tokens: int,
  answers: np.ndarray,
  group_size: int,
  window: int | None = None,
) -> int:
  """Tokens whose keys and values one layer must read.

  Args:
    prompt_tokens: of each row.
    answers: [R] tokens of each answer.
    group_size: rows that read a prompt together; 1 = each reads its own.
    window: tokens that the layer sees, the newest included; None = all.
  """
  total = 0
  for group in answers.reshape(-1, group_size):
    own = np.arange(1, group.max() + 1)  # behind the prompt, step by step
    running = (group[:, None] >= own).sum(0)
    prompt = prompt_tokens
    if window is not None:
      own = np.minimum(own, window)
      prompt = np.minimum(prompt, window - own)
    total += int((running * own + prompt).sum())
  return total


def cache_read(
  model: ModelConfig,
  dtype: str,
  prompt_tokens: int,
  answers: np.ndarray,
  group_size: int,
) -> int:
  """Bytes of keys and values in all layers; arguments as of `tokens_read`."""
  num_local = len(model.local_layers)
  read = lambda window: tokens_read(prompt_tokens, answers, group_size, window)
  tokens = (model.num_layers - num_local) * read(None)
  if num_local:
    tokens += num_local * read(model.local_window)
  heads = 2 * model.num_kv_heads * model.head_size
  return tokens * heads * jnp.dtype(dtype).itemsize


def bytes_read(
  model: ModelConfig,
  weights: Any,
  dtype: str,
  prompt_tokens: int,
  answers: np.ndarray,
  group_size: int,
  num_slots: int,
) -> int:
  """Bytes of decoding all answers: weights, keys and values.

  Of `num_slots` slots none is idle as long as rows wait: the fewest steps.
  """
  total = int(answers.sum())
  num_steps = max(int(answers.max()), -(-total // num_slots))
  return weights_read(model, weights, num_steps, total) + cache_read(
    model, dtype, prompt_tokens, answers, group_size
  )
