"""Which part of a policy is trained, and how the model is made from it.

Parameters that are trained are float32 (masters), and so are their moments;
what the model computes with may be of 16 bits. The policy's parameters are
always `assemble(materialize(trained, frozen), frozen)`: for the update, for the
sampler and for the export, so that all of them use the same numbers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Trained(NamedTuple):
  """Pure functions; the first is differentiated, once for an update."""

  # (trained, frozen) -> the model's leaves that depend on what is trained, in
  # the dtype of computation.
  materialize: Callable[[Any, Any], Any]
  # (those leaves, frozen) -> all parameters of the model.
  assemble: Callable[[Any, Any], Any]
  # Whether a parameter of the model, by the names in its path, depends on what
  # is trained.
  depends: Callable[[tuple[str, ...]], bool]
  # (tree of all parameters, None where nothing depends) -> of those leaves.
  restrict: Callable[[Any], Any]

  def policy(self, trained: Any, frozen: Any) -> Any:
    """Parameters of the model, in the dtype of computation."""
    return self.assemble(self.materialize(trained, frozen), frozen)


def whole_policy(dtype: str) -> Trained:
  """Everything is trained.

  Args:
    dtype: of computation.
  """

  def materialize(params, frozen):
    del frozen
    return jax.tree.map(lambda x: x.astype(dtype), params)

  return Trained(
    materialize,
    assemble=lambda part, frozen: part,
    depends=lambda names: True,
    restrict=lambda params: params,
  )
