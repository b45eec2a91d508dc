"""Writes safetensors files tensor by tensor: no second copy of a model."""

import json
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from leap_jax.pretrained.narrowing import check_cast
from leap_jax.pretrained.safetensors_file import DTYPES

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Tensor(NamedTuple):
  """One entry of a file."""

  name: str
  shape: tuple[int, ...]
  make: Callable[[], np.ndarray]  # called when its turn comes


def num_bytes(tensor: Tensor, dtype: np.dtype) -> int:
  """Of the tensor's data in the file."""
  return math.prod(tensor.shape) * np.dtype(dtype).itemsize


def write(
  path: pathlib.Path, tensors: Sequence[Tensor], dtype: np.dtype
) -> None:
  """Writes a file; all tensors in one dtype, a value of DTYPES.

  Raises:
    OSError: of the file system.
    PolicyError: a value that was finite is not in that dtype.
  """
  dtype = np.dtype(dtype)
  entries, end = {"__metadata__": {"format": "pt"}}, 0
  for tensor in tensors:
    begin, end = end, end + num_bytes(tensor, dtype)
    entries[tensor.name] = {
      "dtype": _NAMES[dtype],
      "shape": list(tensor.shape),
      "data_offsets": [begin, end],
    }
  header = json.dumps(entries, separators=(",", ":")).encode()
  header += b" " * (-len(header) % 8)  # the data begins aligned
  with path.open("wb") as file:
    file.write(len(header).to_bytes(8, "little") + header)
    for tensor in tensors:
      whole = np.ascontiguousarray(tensor.make())
      with np.errstate(over="ignore"):
        array = whole.astype(dtype, copy=False)
      check_cast(tensor.name, whole.dtype, array)
      assert array.shape == tensor.shape, tensor.name
      file.write(array.reshape(-1).view(np.uint8))
