"""What judge and compile server say to each other (msgpack, in frames)."""

import enum

import msgspec

SOURCE_NAME = "kernel.py"  # the candidate's file in line tables and messages
FAILED = 70  # exit status of a child in which the compiler raised; see its log


class Kernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """A function and what it is called with: (dtype, ndim or None), in order."""

  function: str
  parameters: tuple[tuple[str, int | None], ...]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """Of one job."""

  wall_s: float
  cpu_s: float
  memory_bytes: int  # beyond what the server itself has mapped
  result_bytes: int
  log_bytes: int = 64 * 1024


class CompileJob(
  msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="compile"
):
  """Runs the candidate's module and compiles kernels of it."""

  source: str
  kernels: tuple[Kernel, ...]
  compute_capability: tuple[int, int]
  output: str  # "ir" or "ptx"
  limits: Limits


class LowerJob(
  msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="lower"
):
  """Makes an object file for the host from LLVM IR that a job has left."""

  modules: tuple[str, ...]
  symbols: tuple[str, ...]  # of entry 0, 1, ...
  words: tuple[tuple[str, ...], ...]  # IR types of each entry's parameters
  shared_names: tuple[tuple[int, str], ...]  # (line, name) of shared arrays
  limits: Limits


class Outcome(enum.StrEnum):
  """How a job's process ended."""

  EXITED = "exited"
  SIGNALLED = "signalled"
  WALL_LIMIT = "wall_limit"
  CPU_LIMIT = "cpu_limit"
  NOT_STARTED = "not_started"


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """The server's word: true, whatever the job's process did. `result` is what
  that process wrote, of which nothing is known."""

  outcome: Outcome
  code: int  # exit status or signal
  wall_ms: float
  log: str
  result: bytes


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """One compiled kernel."""

  symbol: str
  texts: tuple[str, ...]  # LLVM IR modules, or one PTX module


class Compiled(
  msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="compiled"
):
  """A job's result, in the order of its kernels."""

  kernels: tuple[Code, ...]
  # (line, name) of `name = cuda.shared.array(...)`, in the text's order.
  shared_names: tuple[tuple[int, str], ...]


class Object(
  msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="object"
):
  """A relocatable object file."""

  contents: bytes


class Refusal(
  msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="refusal"
):
  """`kind`: contract, compile, unsupported or integrity."""

  kind: str
  message: str
  line: int | None
