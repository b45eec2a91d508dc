"""Reads GGUF files: the header by hand, blocks by the `gguf` package.

A file is a header (metadata and a table of tensors) and the tensors' bytes.
The package's own reader makes an array of every string and takes most of a
minute for a vocabulary; here the header takes seconds and tensors are read
when they are asked for. (Format: ggml's `gguf.md`, versions 2 and 3.)
"""

import math
import pathlib
import struct
from typing import Any, NamedTuple

import numpy as np

from leap_jax.policy_error import PolicyError

_STRING, _ARRAY = 8, 9
_NUMBERS = {
  0: "<u1",
  1: "<i1",
  2: "<u2",
  3: "<i2",
  4: "<u4",
  5: "<i4",
  6: "<f4",
  7: "?",
  10: "<u8",
  11: "<i8",
  12: "<f8",
}


class Stored(NamedTuple):
  """Where a tensor is and what it is made of."""

  shape: tuple[int, ...]  # rows first, as NumPy counts
  kind: int  # of ggml: 0 is F32, 1 F16, others are blocks
  begin: int  # first byte in the file
  num_bytes: int


class GgufFile(NamedTuple):
  """A header, and the bytes behind it."""

  path: pathlib.Path
  metadata: dict[str, Any]
  tensors: dict[str, Stored]


class _Cursor:
  """Reads values one behind the other; past the end is a struct.error."""

  def __init__(self, raw):
    self.raw, self.at = raw, 0

  def number(self, kind):
    return self.numbers(kind, 1)[0]

  def numbers(self, kind, count):
    dtype = np.dtype(_NUMBERS[kind])
    end = self.at + count * dtype.itemsize
    if end > len(self.raw):
      raise struct.error
    values = np.frombuffer(self.raw, dtype, count, self.at).tolist()
    self.at = end
    return values

  def text(self):
    (length,) = struct.unpack_from("<Q", self.raw, self.at)
    begin, self.at = self.at + 8, self.at + 8 + length
    if self.at > len(self.raw):
      raise struct.error
    return bytes(self.raw[begin : self.at]).decode("utf-8", "replace")

  def value(self, kind):
    if kind == _STRING:
      return self.text()
    if kind != _ARRAY:
      return self.number(kind)
    inner, count = self.number(4), self.number(10)
    if inner in _NUMBERS:
      return self.numbers(inner, count)
    return [self.value(inner) for _ in range(count)]


def _package():
  try:
    import gguf
  except ImportError:
    raise PolicyError(
      "GGUF files need the gguf package: pip install 'leap-jax[gguf]'"
    ) from None
  return gguf


def _table(cursor, count):
  """Rows of the table of tensors: (name, shape, kind, offset)."""
  rows = []
  for _ in range(count):
    name = cursor.text()
    reversed_shape = cursor.numbers(10, cursor.number(4))
    rows.append(
      (name, tuple(reversed_shape[::-1]), cursor.number(4), cursor.number(10))
    )
  return rows


def open_file(path: pathlib.Path) -> GgufFile:
  """Reads the header.

  Raises:
    PolicyError: no GGUF file, a truncated or split one, a kind of blocks that
      the installed `gguf` package does not know, or no such package.
  """
  gguf = _package()
  size = path.stat().st_size
  raw = np.memmap(path, np.uint8, "r") if size else b""
  if size < 24 or bytes(raw[:4]) != b"GGUF":
    raise PolicyError(f"{path} is no GGUF file")
  cursor = _Cursor(memoryview(raw))
  cursor.at = 4
  try:
    version = cursor.number(4)
    if version not in (2, 3):
      raise PolicyError(f"{path}: GGUF version {version}; 2 and 3 are read")
    num_tensors, num_fields = cursor.numbers(10, 2)
    metadata = {}
    for _ in range(num_fields):
      key = cursor.text()
      metadata[key] = cursor.value(cursor.number(4))
    rows = _table(cursor, num_tensors)
  except (struct.error, KeyError):
    raise PolicyError(
      f"{path} is truncated or damaged: its header does not end in {size} bytes"
    ) from None
  if metadata.get("split.count", 1) > 1:
    raise PolicyError(
      f"{path} is one of {metadata['split.count']} parts; join them first "
      "(llama-gguf-split --merge)"
    )
  alignment = metadata.get("general.alignment", 32)
  data = -(-cursor.at // alignment) * alignment
  tensors = {}
  for name, shape, kind, offset in rows:
    if kind not in set(gguf.GGMLQuantizationType):
      raise PolicyError(f"{path}: {name} has blocks of unknown kind {kind}")
    values, block_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
    num_bytes = math.prod(shape) // values * block_bytes
    if data + offset + num_bytes > size:
      raise PolicyError(
        f"{path} is truncated: {name} ends at byte "
        f"{data + offset + num_bytes}, the file at {size}; copy it again"
      )
    tensors[name] = Stored(shape, kind, data + offset, num_bytes)
  return GgufFile(path, metadata, tensors)


def read(file: GgufFile, name: str) -> np.ndarray:
  """One tensor, as float32.

  Raises:
    PolicyError: blocks that the `gguf` package cannot turn into numbers.
  """
  gguf = _package()
  stored = file.tensors[name]
  kind = gguf.GGMLQuantizationType(stored.kind)
  raw = np.memmap(
    file.path, np.uint8, "r", offset=stored.begin, shape=(stored.num_bytes,)
  )
  if kind == gguf.GGMLQuantizationType.F32:
    return raw.view("<f4").reshape(stored.shape)
  if kind == gguf.GGMLQuantizationType.F16:
    return raw.view("<f2").astype(np.float32).reshape(stored.shape)
  rows = math.prod(stored.shape[:-1])
  try:
    values = gguf.dequantize(raw.reshape(rows, -1), kind)
  except NotImplementedError:
    raise PolicyError(
      f"{file.path}: {name} is quantized as {kind.name}, which the gguf "
      "package cannot read back"
    ) from None
  return values.reshape(stored.shape)
