"""Records that cross process borders: requests, evaluations, problem cards.

They travel as msgpack (msgspec), strictly decoded. Units are in the names.
"""

import enum

import msgspec


class Status(enum.StrEnum):
  """How an evaluation ended. The list is closed."""

  PASSED = "passed"
  """Compiled, ran and was right on every case."""
  WRONG_ANSWER = "wrong_answer"
  """Ran to its end; an output differs from the reference."""
  NO_KERNEL = "no_kernel"
  """The text holds no `__global__` and no `@cuda.jit` function."""
  CONTRACT_VIOLATION = "contract_violation"
  """Host code, a bad launch plan, or parameters that are not the problem's."""
  COMPILE_ERROR = "compile_error"
  LAUNCH_ERROR = "launch_error"
  """A launch beyond the limits of the device."""
  RUNTIME_ERROR = "runtime_error"
  """Stopped while running: bad address, race, divergent barrier, ..."""
  TIMEOUT = "timeout"
  INTEGRITY_VIOLATION = "integrity_violation"
  """An attempt to change what is judged: inputs, other processes, files."""
  INFRASTRUCTURE_ERROR = "infrastructure_error"
  """A fault of ours. Says nothing about the candidate; never a reward."""


class Phase(enum.StrEnum):
  """Where an evaluation ended."""

  PARSE = "parse"
  COMPILE = "compile"
  RUN = "run"
  JUDGE = "judge"
  TIME = "time"


class Diagnostic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """One message of a compiler, at a line of the candidate's own text."""

  severity: str  # error, warning or note
  message: str
  line: int | None  # 1-based; None where the compiler gives none
  column: int | None
  also_lines: tuple[int, ...] = ()  # other lines with the same message


class LaunchLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """A launch that no device accepts, with its arithmetic."""

  kernel: str
  what: str  # block, block.x, grid.y, dynamic shared memory, ...
  plan: str  # expressions of the plan: `32, ceil_div(n, 4), 1`
  dims: dict[str, int]  # those that the expressions name
  factors: tuple[int, ...]  # values of the expressions, whose product counts
  got: int
  at_least: int
  at_most: int
  unit: str  # threads, blocks, bytes
  line: int | None  # of the plan; None for the problem's default


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """What a run-time check found."""

  kind: str  # out_of_bounds, data_race, divergent_barrier, ...
  message: str
  line: int | None
  thread: tuple[int, int, int] | None = None
  block: tuple[int, int, int] | None = None


ERROR_EDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Of `Mismatch.error_histogram`: upper ends, which belong to their bins."""


class Mismatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """How far one output is from its reference."""

  output: str
  shape: tuple[int, ...]
  first_wrong_index: tuple[int, ...]
  expected: float
  got: float
  num_wrong: int
  num_elements: int
  max_abs_error: float  # over finite elements
  relative_rms_error: float  # RMS of the error over RMS of the reference
  num_not_finite: int  # NaN or infinite where the reference is finite
  num_unwritten: int  # still hold the poison that the judge put there
  error_histogram: tuple[int, ...] = ()
  """Elements by relative error |got - expected| / |expected| (where 0 is
  expected: / RMS of the reference): one count up to each of ERROR_EDGES, then
  those beyond the last, then those that are NaN or infinite. Sums to
  `num_elements`; empty in records from elsewhere."""


def describe_mismatch(m: Mismatch) -> str:
  """One line: where, what was expected, how much is wrong."""
  index = ", ".join(str(i) for i in m.first_wrong_index)
  text = (
    f"{m.output}[{index}] is {m.got:.6g}, expected {m.expected:.6g}; "
    f"{m.num_wrong} of {m.num_elements} elements are wrong"
  )
  if m.num_unwritten:
    text += f", {m.num_unwritten} were never written"
  elif m.num_not_finite:
    text += f", {m.num_not_finite} are not finite"
  return text


class Timing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """How long a right candidate takes, and beside what. Times are medians over
  calls with input values of their own and a cold cache."""

  case: str  # dimensions and distribution
  candidate_ms: float
  reference_ms: float
  candidate_spread: float  # distance of the quartiles over the median
  reference_spread: float
  num_calls: int
  floor_ms: float | None  # the least of a right kernel; None: see floor_note
  baseline: str  # what reference_ms is the time of
  device: str
  device_state: str
  # What bounds the floor, "memory" or "arithmetic"; or why there is none.
  floor_note: str = ""
  # The problem's reference as jitted JAX, another baseline; None where it was
  # not measured.
  jax_reference_ms: float | None = None
  jax_reference_spread: float | None = None
  jax_note: str = ""  # version of JAX, or why there is no time

  @property
  def roofline_share(self) -> float | None:
    """floor_ms / candidate_ms: how near the candidate is to what the device can
    do; None where there is no floor. The bound of arithmetic is a low one."""
    return None if self.floor_ms is None else self.floor_ms / self.candidate_ms


class Evaluation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """The verdict on one candidate."""

  id: str
  problem: str
  status: Status
  phase: Phase
  message: str  # one line
  executor: str  # cpu-fiber, numba-ir, cuda, ...
  diagnostics: tuple[Diagnostic, ...] = ()
  finding: Finding | None = None
  mismatch: Mismatch | None = None
  launch_limit: LaunchLimit | None = None
  case: str | None = None  # dimensions and distribution of the failing case
  num_cases_passed: int = 0
  num_cases: int = 0
  shared_bytes: int | None = None  # static shared memory of a block
  num_registers: int | None = None  # of a thread; None: unknown here
  local_bytes: int | None = None  # of a thread: spills and local arrays
  log: str = ""  # what the kernel printed, cut
  compile_ms: float = 0.0
  run_ms: float = 0.0
  judge_ms: float = 0.0
  candidate_ms: float | None = None  # None: timing unavailable here
  reference_ms: float | None = None
  timing: Timing | None = None
  source_sha256: str = ""
  harness_version: str = ""

  def __post_init__(self):
    """Refuses states that cannot be."""
    if self.candidate_ms is not None and self.status != Status.PASSED:
      raise ValueError("only a passed candidate has a time")
    times = (self.candidate_ms, self.reference_ms, self.timing)
    if None in times and times != (None, None, None):
      raise ValueError("candidate_ms, reference_ms and timing come together")

  @property
  def speedup(self) -> float | None:
    """reference_ms / candidate_ms, or None where nothing was timed."""
    if self.candidate_ms is None or self.reference_ms is None:
      return None
    return self.reference_ms / self.candidate_ms

  @property
  def speedup_over_jax(self) -> float | None:
    """Time of the jitted JAX reference over candidate_ms, or None."""
    if self.timing is None or self.timing.jax_reference_ms is None:
      return None
    return self.timing.jax_reference_ms / self.timing.candidate_ms

  @property
  def passed(self) -> bool:
    """Whether the candidate is right on every case."""
    return self.status == Status.PASSED

  @property
  def counts(self) -> bool:
    """False where our own machinery failed: such a sample has no outcome."""
    return self.status != Status.INFRASTRUCTURE_ERROR


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """One candidate to judge."""

  id: str
  problem: str
  text: str  # CUDA C++ or Numba-CUDA, or an answer with it in a ``` block


class ProblemCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
  """What a policy may know of a problem."""

  name: str
  level: int
  statement: str
  signature: str  # CUDA C++, or Python
  launch: str  # the default launch plan; empty for a Python function
  language: str = "cuda"  # or "python": what is to be written


HARNESS_VERSION = "5"
"""Part of every record; changes when the same candidate may be judged anew."""
