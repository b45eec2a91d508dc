"""Element types of kernel buffers: C++ name, storage, conversion.

NumPy has no bfloat16, so it is kept as its 16 bits.
"""

import dataclasses
from collections.abc import Callable

import numpy as np


def _bfloat16_bits(values: np.ndarray) -> np.ndarray:
  bits = np.asarray(values, np.float32).view(np.uint32)
  rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
  nan = (bits & 0x7FFFFFFF) > 0x7F800000
  return np.where(nan, 0x7FFF, rounded).astype(np.uint16)


def _bfloat16_values(bits: np.ndarray) -> np.ndarray:
  return (bits.astype(np.uint32) << 16).view(np.float32)


@dataclasses.dataclass(frozen=True)
class Dtype:
  """One element type.

  `encode` rounds float64 values to the stored form, `decode` goes back.
  """

  name: str
  cuda: str
  storage: np.dtype
  encode: Callable[[np.ndarray], np.ndarray]
  decode: Callable[[np.ndarray], np.ndarray]
  is_float: bool

  @property
  def poison_byte(self) -> int:
    """What each byte of an output holds before a kernel runs: a NaN, or a whole
    number that no problem has for an answer (-1 and 255 are common ones)."""
    return 0xFF if self.is_float else 0x7B

  @property
  def item_bytes(self) -> int:
    """Bytes of one element."""
    return self.storage.itemsize


def _numpy(name, cuda, numpy_type):
  storage = np.dtype(numpy_type)
  is_float = storage.kind == "f"
  return Dtype(
    name,
    cuda,
    storage,
    (lambda v: np.asarray(v, storage))
    if is_float
    else (lambda v: np.rint(v).astype(storage)),
    lambda v: np.asarray(v, np.float64),
    is_float,
  )


DTYPES = {
  d.name: d
  for d in (
    _numpy("float32", "float", np.float32),
    _numpy("float64", "double", np.float64),
    _numpy("float16", "__half", np.float16),
    Dtype(
      "bfloat16",
      "__nv_bfloat16",
      np.dtype(np.uint16),
      _bfloat16_bits,
      lambda bits: _bfloat16_values(bits).astype(np.float64),
      True,
    ),
    _numpy("int32", "int", np.int32),
    _numpy("int64", "long long", np.int64),
    _numpy("int8", "signed char", np.int8),
    _numpy("uint8", "unsigned char", np.uint8),
  )
}
