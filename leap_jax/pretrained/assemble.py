"""Stored tensors to the parameters of a model: stacked, checked, complete."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from leap_jax.policy_error import PolicyError
from leap_jax.pretrained.narrowing import check_cast
from leap_jax.pretrained.tensor_names import Leaf
from leap_jax.pretrained.tensor_source import TensorSource


def _check(leaves, source, ignored):
  """Every tensor is wanted and every wanted one is there, in its shape."""
  wanted = {}
  for leaf in leaves:
    shape = leaf.shape[1:] if leaf.is_stacked else leaf.shape
    shape = shape[::-1] if leaf.is_transposed else shape
    wanted |= dict.fromkeys(leaf.names, shape)
  for name, shape in wanted.items():
    if name not in source.shapes:
      raise PolicyError(f"{source.where}: tensor {name} is missing")
    if source.shapes[name] != shape:
      raise PolicyError(
        f"{source.where}: {name} has shape {list(source.shapes[name])}, the "
        f"model's is {list(shape)}"
      )
  unused = sorted(set(source.shapes) - set(wanted) - set(ignored))
  if unused:
    raise PolicyError(
      f"{source.where}: {len(unused)} tensors belong to no part of the model, "
      f"such as {unused[0]}"
    )


def _finite(source, name):
  array = source.read(name)
  if not np.isfinite(array).all():
    count = int((~np.isfinite(array)).sum())
    raise PolicyError(
      f"{source.where}: {name} holds {count} values that are not finite; the "
      "weights are damaged"
    )
  return array


def _anywhere(path, array):
  del path
  return jnp.asarray(array)


def assemble(
  leaves: Sequence[Leaf],
  source: TensorSource,
  *,
  ignored: tuple[str, ...] = (),
  dtype: Any = jnp.float32,
  place: Callable[[tuple[str, ...], np.ndarray], Any] = _anywhere,
) -> Any:
  """Parameters from stored tensors.

  One parameter at a time is on the host in full: layers are written into their
  stack as they are read.

  Args:
    leaves: every parameter of the model and its stored names.
    source: the tensors.
    ignored: names that may be there and are of no use.
    dtype: of the parameters.
    place: puts an array on the devices, told its path in the tree.

  Returns:
    The tree that `transformer.init` makes.

  Raises:
    PolicyError: a tensor is missing, unknown, of another shape, not finite or
      beyond `dtype`.
  """
  _check(leaves, source, ignored)
  params = {}
  for leaf in leaves:
    array = np.empty(leaf.shape, dtype)
    for i, name in enumerate(leaf.names):
      part = _finite(source, name)
      at = i if leaf.is_stacked else ...
      # Assignment converts and transposes in one pass.
      with np.errstate(over="ignore"):
        array[at] = part.T if leaf.is_transposed else part
      check_cast(f"{source.where}: {name}", part.dtype, array[at])
    params[leaf.path] = place(leaf.path, array)
  return traverse_util.unflatten_dict(params)
