"""The plan of a run and its report, in one shared mapping (native/plan.h)."""

import dataclasses
import fcntl
import mmap
import os
import struct
from collections.abc import Sequence

import numpy as np

from kernels_eval import source

_MAGIC = 0x4B455031
_PLAN = struct.Struct("<6IQQ4QQQQ")
_CASE = struct.Struct("<4I")
_LAUNCH = struct.Struct("<I3I3I3I")
_ARGUMENT = struct.Struct("<IIQ")
_BUFFER = struct.Struct("<QQII32s")
_REPORT = struct.Struct("<IIIiQ3I3III512s")
_PAGE = 4096
# Unused bytes between buffers: a miss by less hits no neighbour. Pages that
# nobody touches take no memory.
_GAP = 256 * 1024
_PRINTF_BYTES = 16 * 1024
_ADD_SEALS, _SEAL_SHRINK, _SEAL_GROW = 1033, 2, 4  # linux/fcntl.h
SCRATCH_BYTE = 0xFF  # NaN

FAULTS = (  # in the order of native/plan.h
  "none",
  "out_of_bounds",
  "misaligned",
  "input_modified",
  "uninitialized_read",
  "data_race",
  "divergent_barrier",
  "divergent_warp",
  "division_by_zero",
  "stack_overflow",
  "bad_address",
  "trap",
  "assertion_failed",
  "shared_memory_limit",
  "access_limit",
  "unreachable",
  "load_failed",
  "reserved_name",
  "signal",
  "machine",
)
NOT_STARTED, RUNNING, FINISHED, FAULTED = range(4)
INPUT, OUTPUT, SCRATCH = range(3)


@dataclasses.dataclass(frozen=True)
class RunBuffer:
  """A buffer of one case. `contents` is None for outputs and scratch, whose
  bytes are all `poison_byte`."""

  name: str
  role: int
  num_bytes: int
  item_bytes: int
  contents: np.ndarray | None
  poison_byte: int = SCRATCH_BYTE


@dataclasses.dataclass(frozen=True)
class RunLaunch:
  """A launch with numbers in place of expressions.

  `arguments` holds ("buffer", index) or ("bits", 8 bytes as an integer).
  """

  entry: int
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  shared_bytes: int
  arguments: tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True)
class RunCase:
  """Buffers and launches of one test case."""

  buffers: tuple[RunBuffer, ...]
  launches: tuple[RunLaunch, ...]


@dataclasses.dataclass(frozen=True)
class Report:
  """What the run child left behind. Written by a process that also ran the
  candidate, so it is believed only where it speaks against the candidate."""

  state: int
  case_index: int
  fault: str
  line: int | None
  module_offset: int
  thread: tuple[int, int, int]
  block: tuple[int, int, int]
  shared_bytes: int
  text: str
  log: str


def _align(n):
  return -(-n // _PAGE) * _PAGE


class Mapping:
  """The shared memory of one run. A class because it owns a descriptor."""

  def __init__(
    self,
    cases: Sequence[RunCase],
    *,
    access_limit: int,
    static_shared_limit_bytes: int,
  ):
    """Lays out and fills the mapping."""
    self.cases = cases
    num_launches = sum(len(c.launches) for c in cases)
    num_arguments = sum(len(k.arguments) for c in cases for k in c.launches)
    num_buffers = sum(len(c.buffers) for c in cases)
    cases_at = _PLAN.size
    launches_at = cases_at + len(cases) * _CASE.size
    arguments_at = -(-(launches_at + num_launches * _LAUNCH.size) // 8) * 8
    buffers_at = arguments_at + num_arguments * _ARGUMENT.size
    self._report_at = -(-(buffers_at + num_buffers * _BUFFER.size) // 8) * 8
    self._printf_at = self._report_at + _REPORT.size
    position = _align(self._printf_at + _PRINTF_BYTES) + _GAP
    self._offsets = []  # [case][buffer]
    for case in cases:
      offsets = []
      for buffer in case.buffers:
        offsets.append(position)
        position = _align(position + buffer.num_bytes) + _GAP
      self._offsets.append(offsets)
    self.num_bytes = position
    self.fd = os.memfd_create(
      "kernels_eval", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    )
    try:
      os.ftruncate(self.fd, self.num_bytes)
      self._memory = mmap.mmap(self.fd, self.num_bytes)
      # The child must not shrink what we read (that would be a SIGBUS here).
      fcntl.fcntl(self.fd, _ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW)
    except OSError:
      os.close(self.fd)
      raise
    memory = self._memory
    _PLAN.pack_into(
      memory,
      0,
      _MAGIC,
      len(cases),
      num_launches,
      num_arguments,
      num_buffers,
      static_shared_limit_bytes,
      access_limit,
      self.num_bytes,
      cases_at,
      launches_at,
      arguments_at,
      buffers_at,
      self._report_at,
      self._printf_at,
      _PRINTF_BYTES,
    )
    k = a = b = 0
    for i, case in enumerate(cases):
      _CASE.pack_into(
        memory,
        cases_at + i * _CASE.size,
        k,
        len(case.launches),
        b,
        len(case.buffers),
      )
      for launch in case.launches:
        _LAUNCH.pack_into(
          memory,
          launches_at + k * _LAUNCH.size,
          launch.entry,
          *launch.grid,
          *launch.block,
          launch.shared_bytes,
          a,
          len(launch.arguments),
        )
        k += 1
        for kind, value in launch.arguments:
          is_buffer = kind == "buffer"
          _ARGUMENT.pack_into(
            memory,
            arguments_at + a * _ARGUMENT.size,
            int(is_buffer),
            value if is_buffer else 0,
            0 if is_buffer else value,
          )
          a += 1
      for buffer, offset in zip(case.buffers, self._offsets[i], strict=True):
        _BUFFER.pack_into(
          memory,
          buffers_at + b * _BUFFER.size,
          offset,
          buffer.num_bytes,
          buffer.role,
          buffer.item_bytes,
          buffer.name.encode()[:31],
        )
        b += 1
        view = self._bytes(offset, buffer.num_bytes)
        if buffer.contents is None:
          view[:] = buffer.poison_byte
        else:
          view[:] = buffer.contents.reshape(-1).view(np.uint8)

  def _bytes(self, offset, num_bytes):
    return np.frombuffer(self._memory, np.uint8, count=num_bytes, offset=offset)

  def contents(self, case: int, buffer: int) -> np.ndarray:
    """A copy of the bytes that a buffer holds now (uint8)."""
    record = self.cases[case].buffers[buffer]
    return self._bytes(self._offsets[case][buffer], record.num_bytes).copy()

  def report(self) -> Report:
    """Reads the report; texts are cut to printable characters."""
    fields = _REPORT.unpack_from(self._memory, self._report_at)
    state, case, fault, line, offset = fields[:5]
    thread, block = fields[5:8], fields[8:11]
    shared, printed, text = fields[11:]
    printed = min(printed, _PRINTF_BYTES)
    log = bytes(self._memory[self._printf_at : self._printf_at + printed])
    return Report(
      state=state,
      case_index=min(case, len(self.cases) - 1),
      fault=FAULTS[fault] if fault < len(FAULTS) else "signal",
      line=line if line > 0 else None,
      module_offset=offset,
      thread=thread,
      block=block,
      shared_bytes=shared,
      text=_printable(text.split(b"\0")[0]),
      log=_printable(log),
    )

  def close(self) -> None:
    """Gives the memory back."""
    # NumPy views handed out are copies, so nothing refers to the mapping.
    self._memory.close()
    os.close(self.fd)


def _printable(raw):
  lines = raw.decode("utf-8", "replace").replace("\t", " ").split("\n")
  return "\n".join(source.printable(line) for line in lines)
