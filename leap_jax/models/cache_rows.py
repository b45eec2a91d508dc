"""Some rows of the caches: copied together and back, or found in place."""

from typing import NamedTuple

import jax


def gather(tree, rows, width: int):
  """Rows (all: None), their first tokens: [R, S, ..] -> [B, width, ..]."""
  if rows is None:
    return jax.tree.map(lambda x: x[:, :width], tree)
  take = lambda x: x.at[rows, :width].get(mode="clip")
  return jax.tree.map(take, tree)


def scatter(tree, rows, local):
  """Puts what `gather` took back; rows beyond R are dropped."""
  if rows is None:
    put = lambda x, new: x.at[:, : new.shape[1]].set(new)
  else:
    put = lambda x, new: x.at[rows, : new.shape[1]].set(new, mode="drop")
  return jax.tree.map(put, tree, local)


class Places(NamedTuple):
  """Which slot runs which row of the caches."""

  rows: jax.Array  # [B] row of each slot; beyond R for slots without one
  slots: jax.Array  # [R] slot of each row; B where a row has none
