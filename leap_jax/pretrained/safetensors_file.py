"""Reads safetensors files by hand, so that each fault can be named.

A file is the length of its header (8 bytes, little-endian), the header (JSON:
name -> dtype, shape, begin and end) and the bytes of the tensors. Nothing is
read before it is asked for.
"""

import json
import math
import pathlib

import ml_dtypes
import numpy as np

from leap_jax.policy_error import PolicyError
from leap_jax.pretrained.tensor_source import TensorSource

DTYPES = {
  "F64": np.dtype(np.float64),
  "F32": np.dtype(np.float32),
  "F16": np.dtype(np.float16),
  "BF16": np.dtype(ml_dtypes.bfloat16),
}
_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"
_MAX_HEADER_BYTES = 100_000_000  # the format's own limit


def _checked(path, name, entry, data_bytes):
  dtype, shape = entry["dtype"], tuple(entry["shape"])
  begin, end = entry["data_offsets"]
  if dtype not in DTYPES:
    raise PolicyError(
      f"{path}: {name} is stored as {dtype}; weights must be one of "
      f"{', '.join(DTYPES)} (convert the model to BF16 first)"
    )
  if end - begin != math.prod(shape) * DTYPES[dtype].itemsize or begin < 0:
    raise PolicyError(f"{path}: damaged header: {name} has the wrong length")
  if end > data_bytes:
    raise PolicyError(
      f"{path} is truncated: {name} ends at byte {end} of the data, the file "
      f"holds {data_bytes}; copy or download it again"
    )
  return DTYPES[dtype], shape, begin


def _header(path):
  """name -> (dtype, shape, first byte in the file)."""
  size = path.stat().st_size
  with path.open("rb") as file:
    length = int.from_bytes(file.read(8), "little")
    if size < 8 + length or length > _MAX_HEADER_BYTES:
      raise PolicyError(
        f"{path} is truncated or no safetensors file: its header has {length} "
        f"bytes, the file {size}"
      )
    raw = file.read(length)
  try:
    entries = json.loads(raw)
    entries.pop("__metadata__", None)
    return {
      name: (dtype, shape, 8 + length + begin)
      for name, entry in entries.items()
      for dtype, shape, begin in [
        _checked(path, name, entry, size - 8 - length)
      ]
    }
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise PolicyError(f"{path}: damaged header: {error}") from None


def _shards(folder):
  """The files of a model, and which tensors each is to hold (if known)."""
  index = folder / _INDEX
  if (folder / _SINGLE).is_file():
    return {_SINGLE: None}
  if not index.is_file():
    others = ", ".join(sorted(p.name for p in folder.glob("*.bin"))[:1])
    raise PolicyError(
      f"no weights in {folder}: neither {_SINGLE} nor {_INDEX} is there"
      + (f" ({others}: only safetensors are read)" if others else "")
    )
  try:
    places = json.loads(index.read_text())["weight_map"]
    shards = {}
    for name, file in places.items():
      if not isinstance(file, str):
        raise TypeError(f"{name} lies in {file!r}, which is no file name")
      shards.setdefault(file, set()).add(name)
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise PolicyError(f"{index}: damaged index: {error!r}") from None
  missing = [file for file in sorted(shards) if not (folder / file).is_file()]
  if missing:
    raise PolicyError(
      f"{folder}: shard {missing[0]} is missing ({len(missing)} of "
      f"{len(shards)} are); copy or download it"
    )
  return shards


def _source(where, found, notes=()):
  """Of name -> (path, dtype, shape, first byte)."""

  def read(name):
    path, dtype, shape, begin = found[name]
    if 0 in shape:
      return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", offset=begin, shape=shape or (1,))

  shapes = {name: entry[2] for name, entry in found.items()}
  return TensorSource(where, shapes, read, notes)


def open_file(path: pathlib.Path) -> TensorSource:
  """The tensors of one file.

  Raises:
    PolicyError: it is truncated or damaged, or a dtype is not of DTYPES.
  """
  return _source(
    str(path), {name: (path, *entry) for name, entry in _header(path).items()}
  )


def open_folder(folder: pathlib.Path) -> TensorSource:
  """The tensors of a Hugging Face folder, in one file or several.

  Where both are there, the one file is read, as transformers does.

  Raises:
    PolicyError: no weights, a missing or truncated shard, a damaged header, a
      dtype that is not of DTYPES (fp8 and integers are refused).
  """
  found = {}
  for file, names in _shards(folder).items():
    header = _header(folder / file)
    if names is not None and set(header) != names:
      odd = sorted(set(header) ^ names)[0]
      raise PolicyError(
        f"{folder / file}: tensor {odd} is in the file or in {_INDEX}, not in "
        "both; the shards do not belong together"
      )
    for name, entry in header.items():
      found[name] = (folder / file, *entry)
  notes = ()
  if (folder / _SINGLE).is_file() and (folder / _INDEX).is_file():
    notes = (
      f"{folder}: {_SINGLE} is read, not the shards of {_INDEX} beside it",
    )
  return _source(str(folder), found, notes)
