"""Floating-point operations of an update, by formula.

    6 N n  +  6 n^2 A        for a row of n tokens

The first term is two operations for each parameter and token forward and four
backward (Kaplan et al. 2020, arXiv 2001.08361, section 2.1): N counts every
parameter that multiplies a token, the head once, the embedding's lookup not.
The second one is attention: two products of n x n / 2 scores (causal) with
A = layers * heads * head size numbers, forward and twice that backward. Layers
that see only the last w tokens have n w - w^2 / 2 scores where n > w. Nothing
that is computed again counts, nor does padding.
"""

import numpy as np

from leap_jax.models import transformer


def head_params(model) -> int:
  """Parameters of the head."""
  return model.vocab_size * model.width


def block_params(params) -> int:
  """Parameters of all blocks and the last norm."""
  rest = {k: v for k, v in params.items() if k not in ("embedding", "head")}
  return transformer.num_params(rest)


def scores(model, lengths: np.ndarray) -> float:
  """Scores of one head, summed over layers and rows of these lengths."""
  whole = np.square(lengths).sum() / 2
  num_local = len(model.local_layers)
  window = np.minimum(lengths, model.local_window or 0)
  local = (lengths * window - np.square(window) / 2).sum()
  return float((model.num_layers - num_local) * whole + num_local * local)


def update_flops(
  model, num_block_params: int, lengths: np.ndarray, head_tokens: int
) -> float:
  """Of one update.

  Args:
    model: its sizes.
    num_block_params: see `block_params`.
    lengths: [R] tokens of each row.
    head_tokens: tokens whose logits count: all, by the usual convention, or
      those that the loss needs.
  """
  lengths = np.asarray(lengths, np.float64)
  return float(
    6 * num_block_params * lengths.sum()
    + 6 * head_params(model) * head_tokens
    + 12 * scores(model, lengths) * model.num_heads * model.head_size
  )
