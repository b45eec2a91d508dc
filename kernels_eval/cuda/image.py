"""The buffers of a run as one stretch of device memory, with guard zones.

Everything that is neither an input nor already written holds a pattern: outputs
and scratch before the run, and the zones between buffers, which must still hold
it afterwards. (Outputs that are whole numbers hold the other one of the two.)
An image goes to the device and comes back in one copy each.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernels_eval.cpu import protocol

PATTERNS = (0xFF, 0x7B)  # NaN, and 1.3e36; a run for each
_GUARD_BYTES = 4096
_EDGE_BYTES = 64 * 1024  # before the first buffer
_ALIGNMENT = 256


class Layout(NamedTuple):
  """Byte offsets [case][buffer] into an image, and its size."""

  offsets: tuple[tuple[int, ...], ...]
  num_bytes: int


class Damage(NamedTuple):
  """A write outside of every buffer."""

  case: int
  buffer: str  # the nearest one
  distance_bytes: int  # before its start (negative) or beyond its end
  num_bytes: int  # how many were changed in all


def lay_out(cases: Sequence[protocol.RunCase]) -> Layout:
  """Places for all buffers. The last one ends where the image ends, so that
  going beyond it leaves the mapped memory."""
  position, offsets = _EDGE_BYTES, []
  for case in cases:
    row = []
    for buffer in case.buffers:
      row.append(position)
      end = position + buffer.num_bytes
      position = -(-(end + _GUARD_BYTES) // _ALIGNMENT) * _ALIGNMENT
    offsets.append(tuple(row))
  return Layout(tuple(offsets), position)


def fill(
  image: np.ndarray,
  cases: Sequence[protocol.RunCase],
  layout: Layout,
  pattern: int,
) -> None:
  """Writes inputs and pattern into `image` (uint8, `layout.num_bytes`)."""
  image[:] = pattern
  for case, offsets in zip(cases, layout.offsets, strict=True):
    for buffer, offset in zip(case.buffers, offsets, strict=True):
      if buffer.contents is not None:
        image[offset : offset + buffer.num_bytes] = buffer.contents.reshape(
          -1
        ).view(np.uint8)
      else:  # whole numbers have another poison first
        image[offset : offset + buffer.num_bytes] = (
          pattern ^ buffer.poison_byte ^ protocol.SCRATCH_BYTE
        )


def find_damage(
  image: np.ndarray,
  cases: Sequence[protocol.RunCase],
  layout: Layout,
  pattern: int,
) -> Damage | None:
  """The first byte outside of all buffers that lost the pattern, or None."""
  is_changed = image != pattern
  places = []
  for i, (case, offsets) in enumerate(zip(cases, layout.offsets, strict=True)):
    for buffer, offset in zip(case.buffers, offsets, strict=True):
      end = offset + buffer.num_bytes
      is_changed[offset:end] = False
      places.append((offset, end, i, buffer.name))
  changed = np.flatnonzero(is_changed)
  if not changed.size:
    return None
  at = int(changed[0])
  distances = [
    (at - end if at >= end else at - start, i, name)
    for start, end, i, name in places
  ]
  distance, case, name = min(distances, key=lambda d: abs(d[0]))
  return Damage(case, name, distance, int(changed.size))
