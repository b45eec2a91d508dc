"""Numbers that a narrower type cannot hold would become infinite, silently."""

import ml_dtypes
import numpy as np

from leap_jax.policy_error import PolicyError


def check_cast(name: str, stored: np.dtype, cast: np.ndarray) -> None:
  """Looks at a tensor whose values were finite before it was cast.

  Args:
    name: of the tensor, for the message.
    stored: its dtype before.
    cast: the tensor in its new dtype; read only if that holds less.

  Raises:
    PolicyError: a value is infinite now.
  """
  holds_less = ml_dtypes.finfo(cast.dtype).max < ml_dtypes.finfo(stored).max
  if holds_less and not np.isfinite(cast).all():
    raise PolicyError(
      f"{name} has values beyond {cast.dtype}: they would be infinite; use a "
      "wider dtype"
    )
