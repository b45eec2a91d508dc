"""Tensors by name, wherever they are stored."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np


class TensorSource(NamedTuple):
  """Named tensors that are read one by one, as matrices [out, in]."""

  where: str  # folder or file, for error messages
  shapes: Mapping[str, tuple[int, ...]]
  read: Callable[[str], np.ndarray]  # name -> array of a float dtype
  notes: tuple[str, ...] = ()  # lines about what was chosen, for the user
