"""Length-prefixed frames over pipes. Nothing here is ever pickled."""

import struct
from typing import BinaryIO

MAX_BYTES = 8 * 2**20
_LENGTH = struct.Struct("<I")


class FrameError(Exception):
  """The peer ended inside of a frame, or announced one that is too long."""


def write(stream: BinaryIO, payload: bytes) -> None:
  """Writes one frame and flushes."""
  if len(payload) > MAX_BYTES:
    raise FrameError(f"frame of {len(payload)} bytes; at most {MAX_BYTES}")
  data = memoryview(_LENGTH.pack(len(payload)) + payload)
  while data:  # a raw pipe may take a part only
    data = data[stream.write(data) :]
  stream.flush()


def _read_exactly(stream, count):
  parts = []
  while count:
    part = stream.read(count)
    if not part:
      return b"".join(parts)
    parts.append(part)
    count -= len(part)
  return b"".join(parts)


def take(received: bytearray) -> list[bytes]:
  """Removes the complete frames from what has been received; returns them."""
  complete, position = [], 0
  while len(received) >= position + _LENGTH.size:
    (count,) = _LENGTH.unpack_from(received, position)
    _check_length(count)
    start = position + _LENGTH.size
    if len(received) < start + count:
      break
    complete.append(bytes(received[start : start + count]))
    position = start + count
  del received[:position]
  return complete


def _check_length(count):
  if count > MAX_BYTES:
    raise FrameError(f"frame of {count} bytes announced; at most {MAX_BYTES}")


def read(stream: BinaryIO) -> bytes | None:
  """Reads one frame; None where the peer closed between frames."""
  head = _read_exactly(stream, _LENGTH.size)
  if not head:
    return None
  if len(head) < _LENGTH.size:
    raise FrameError("the peer ended inside of a frame")
  (count,) = _LENGTH.unpack(head)
  _check_length(count)
  payload = _read_exactly(stream, count)
  if len(payload) < count:
    raise FrameError("the peer ended inside of a frame")
  return payload
