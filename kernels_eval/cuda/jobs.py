"""What a judge asks a launcher for, and what the launcher answers.

A job's message travels with the descriptor of one memory mapping, which holds
the programs and the images (`image.py`); the launcher copies the images back to
where they lay. A program is a msgpack-encoded list of modules (cubins or PTX).
"""

import enum

import msgspec

MAX_MESSAGE_BYTES = 128 * 1024
MAX_LOG_BYTES = 8 * 1024


class Argument(msgspec.Struct, frozen=True, array_like=True):
  """A kernel's parameter: `value`, or the address of byte `value` of the
  image."""

  is_address: bool
  value: int
  num_bytes: int


class Launch(msgspec.Struct, frozen=True, array_like=True):
  """One launch with numbers."""

  module: int  # of the program
  entry: str  # mangled
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  shared_bytes: int
  arguments: tuple[Argument, ...]


class Run(msgspec.Struct, frozen=True, tag="run"):
  """Run all cases once for each image. It may take `wall_s`, and longer where
  others ran beside it, until it has had `gpu_s` of the GPU."""

  program_bytes: int  # it comes first in the mapping
  image_offsets: tuple[int, ...]  # into the mapping
  image_bytes: int
  cases: tuple[tuple[Launch, ...], ...]
  wall_s: float
  gpu_s: float


class Input(msgspec.Struct, frozen=True, array_like=True):
  """An input of a timed call: `num_items` elements, drawn from the `base_items`
  elements at `base_offset` of the mapping by the call's key."""

  image_offset: int
  num_items: int
  item_bytes: int
  base_offset: int
  base_items: int  # a power of two


class Output(msgspec.Struct, frozen=True, array_like=True):
  """An output of timed calls. Two of its values are far from each other where
  they differ by more than `gap` and `share` of the second one together, or are
  no finite numbers."""

  image_offset: int
  mapping_offset: int
  num_bytes: int
  num_items: int
  dtype: str  # a key of `dtypes.DTYPES`
  poison_byte: int
  gap: float
  share: float


class Compared(msgspec.Struct, frozen=True, array_like=True):
  """An output of one call beside the last subject's."""

  num_far: int
  squared_gaps: float  # summed over elements
  squares: float  # of the last subject's, likewise


class Subject(msgspec.Struct, frozen=True, array_like=True):
  """One program to time."""

  program_offset: int
  program_bytes: int
  launches: tuple[Launch, ...]


class Timing(msgspec.Struct, frozen=True, tag="timing"):
  """Time programs in turn on the same buffers.

  `keys[call]` says what inputs that call has, for all subjects; the first
  `num_warm` calls are not reported. The outputs of the
  first subject's call number `checked` are copied to the mapping, those of each
  of its calls are compared with the last subject's.
  """

  subjects: tuple[Subject, ...]
  image_bytes: int
  inputs: tuple[Input, ...]
  keys: tuple[int, ...]  # of 64 bits
  num_warm: int
  checked: int
  outputs: tuple[Output, ...]
  # (image offset, bytes) of what lies between the first subject's buffers.
  guards: tuple[tuple[int, int], ...]
  wall_s: float


class Alone(msgspec.Struct, frozen=True, tag="alone"):
  """Let nothing else run on the GPU, from the report (DONE) to `Release`. It
  has no mapping."""


class Release(msgspec.Struct, frozen=True, tag="release"):
  """The end of `Alone`. It has no answer."""


class Outcome(enum.StrEnum):
  """How a job ended."""

  DONE = "done"
  LOAD_FAILED = "load_failed"  # the driver refuses a module
  BAD_PARAMETERS = "bad_parameters"  # not what the kernel takes
  LAUNCH_FAILED = "launch_failed"
  KERNEL_FAILED = "kernel_failed"  # sticky: the launcher is replaced
  TIMED_OUT = "timed_out"
  MACHINE_FAILED = "machine_failed"


SPOILING = (Outcome.KERNEL_FAILED, Outcome.MACHINE_FAILED)
"""Ends of a job after which its launcher serves no other."""


class Report(msgspec.Struct, frozen=True):
  """The answer to a job."""

  outcome: Outcome
  message: str = ""
  error: str = ""  # the driver's name for it
  case: int = 0
  num_registers: int | None = None  # of a thread, most of all kernels
  shared_bytes: int | None = None
  local_bytes: int | None = None  # of a thread: spills and local arrays
  log: str = ""
  wall_ms: float = 0.0
  times_ms: tuple[tuple[float, ...], ...] = ()  # [subject][call]
  compared: tuple[tuple[Compared, ...], ...] = ()  # [call][output]
  is_intact: bool = True  # what of a timing's memory is none of the image
  num_changed: int = 0  # bytes between buffers, in all timed calls
  device_state: str = ""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
  """What a launcher says when it is ready."""

  device: str
  compute_capability: tuple[int, int]
  driver_version: str
  shared_bytes: int  # that a block can opt in to
  num_processors: int
  bandwidth_bytes_per_s: float  # the memory's, from its clock and width
  memory_bytes: int


class StartFailed(msgspec.Struct, frozen=True, tag="start_failed"):
  """What a launcher says instead of Hello: one line."""

  reason: str
