"""How well times repeat, and whether a copy reads as fast as it is.

Each kernel is evaluated many times as a candidate of its own. The copy is
compared with what `copy_ceiling.cu`, a program without any of our code, says.
"""

import pathlib
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable

import msgspec

from kernels_eval import candidate as candidate_lib
from kernels_eval import client, problems, sandbox, temporary
from kernels_eval.cpu import toolchain
from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import executor as executor_lib
from kernels_eval.cuda import presence, server_process, timing, toolkit
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.cuda.toolkit import ToolkitError
from kernels_eval.outcome import Stop
from kernels_eval.schema import Request
from kernels_eval.settings import Settings

KERNELS = ("relu", "softmax", "layer_norm", "transpose", "matmul", "column_sum")
_CEILING = pathlib.Path(__file__).parent / "copy_ceiling.cu"
_CEILING_S = 120.0  # for nvcc, and for what it builds
_COPY_ITEMS = 2**28  # floats: 1 GiB in, 1 GiB out
# relu is a copy as far as the memory is concerned.
_COPY = """\
__global__ void relu(const float* x, float* out, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {
    float4 v = *(const float4*)(x + i);
    v = make_float4(fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0));
    *(float4*)(out + i) = v;
  } else {
    for (; i < n; i++) out[i] = fmaxf(x[i], 0.0f);
  }
}
// launch: relu grid=(ceil_div(n, 1024)) block=(256)
"""


class Repeats(msgspec.Struct, frozen=True):
  """One kernel, evaluated `count` times."""

  problem: str
  count: int
  median_ms: float
  coefficient_of_variation: float
  largest_over_smallest: float
  reference_ms: float  # the canonical kernel, in the last evaluation
  jax_reference_ms: float | None  # jitted JAX; None: see jax_note
  jax_note: str


class Result(msgspec.Struct, frozen=True):
  """What was measured. Bandwidths are bytes a second."""

  device: str
  repeats: tuple[Repeats, ...]
  copy_bandwidth: float
  copy_ceiling: float | None  # None: see ceiling_note
  device_state: str
  ceiling_note: str = ""  # why the independent program says nothing


def run(count: int, on_result: Callable[[], None]) -> Result:
  """Measures.

  Args:
    count: evaluations of each kernel.
    on_result: called after each one.

  Raises:
    client.HarnessError: no usable GPU, or a kernel that does not pass.
  """
  obstacle = presence.obstacle()
  if obstacle is not None:
    raise client.HarnessError(obstacle)
  repeats, state = [], ""
  settings = CudaSettings(with_timing=True, with_jax=True)
  with client.Pool(
    num_workers=1, executor="cuda", cuda_settings=settings
  ) as pool:
    device = pool.hello.toolchain
    for name in KERNELS:
      times = []
      for i in range(count):
        text = f"{problems.get(name).canonical}\n// evaluation {i}\n"
        (evaluation,) = pool.evaluate([Request(f"{name}-{i}", name, text)])
        if not evaluation.passed:
          raise client.HarnessError(f"{name}: {evaluation.message}")
        times.append(evaluation.candidate_ms)
        state = evaluation.timing.device_state
        on_result()
      repeats.append(
        Repeats(
          name,
          count,
          statistics.median(times),
          statistics.stdev(times) / statistics.fmean(times),
          max(times) / min(times),
          evaluation.timing.reference_ms,
          evaluation.timing.jax_reference_ms,
          evaluation.timing.jax_note,
        )
      )
  copied = copy_bandwidth()
  ceiling, note = None, ""
  try:
    ceiling = copy_ceiling()
  except CeilingError as error:  # what was measured counts all the same
    note = str(error)
  return Result(device, tuple(repeats), copied, ceiling, state, note)


def copy_bandwidth() -> float:
  """Bytes a second of a large copy, timed as a candidate.

  Raises:
    client.HarnessError: it cannot be timed here.
  """
  problem = problems.get("relu")
  root = temporary.make_root()
  server = server_process.ServerProcess(root, 0)
  try:
    made = executor_lib.CudaExecutor(
      toolchain.prepare(),
      toolkit.find(),
      sandbox.probe(),
      root,
      server.socket,
      Settings(),
      CudaSettings(),
    )
    try:
      plan = candidate_lib.parse(_COPY, problem)
      timer = timing.Timer(made, 0, 600.0)
      with made.folder() as folder:
        artefact = made.compile(plan, problem, folder)
        found = timer.time(artefact, plan, problem, {"n": _COPY_ITEMS})
    finally:
      made.close()
  except (Stop, HostError, toolchain.ToolchainError, ToolkitError) as error:
    raise client.HarnessError(f"the copy: {error}") from None
  finally:
    server.stop()
    shutil.rmtree(root, ignore_errors=True)
  return 8 * _COPY_ITEMS / (found.candidate_ms * 1e-3)


class CeilingError(Exception):
  """The independent program says nothing; one line tells why."""


def copy_ceiling() -> float:
  """Bytes a second of a large copy by `copy_ceiling.cu`, built with nvcc.

  Raises:
    CeilingError: there is no nvcc, or it or the program fails.
  """
  nvcc = shutil.which("nvcc")
  if nvcc is None:
    raise CeilingError("no nvcc here to build the independent program with")
  with tempfile.TemporaryDirectory() as folder:
    program = f"{folder}/ceiling"
    _said("nvcc", [nvcc, "-O2", "-o", program, str(_CEILING)])
    said = _said("the independent program", [program])
  try:
    return float(said)
  except ValueError:
    raise CeilingError(
      f"the independent program says {said[:80]!r}, not a bandwidth"
    ) from None


def _said(name, command):
  """Standard output of a command that succeeds."""
  try:
    done = subprocess.run(
      command, timeout=_CEILING_S, capture_output=True, text=True
    )
  except subprocess.TimeoutExpired:
    raise CeilingError(f"{name} did not end within {_CEILING_S:g} s") from None
  except OSError as error:
    raise CeilingError(f"{name} cannot be run: {error.strerror}") from None
  if done.returncode:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = lines[0][:200] if lines else f"exit status {done.returncode}"
    raise CeilingError(f"{name} failed: {reason}")
  return done.stdout


def _jax(r):
  if r.jax_reference_ms is None:
    return f"no JAX baseline ({r.jax_note})"
  return (
    f"jitted JAX {r.jax_reference_ms:.4f} ms, "
    f"{r.jax_reference_ms / r.median_ms:.2f} times that"
  )


def describe(result: Result) -> str:
  """A short table."""
  lines = [f"{result.device}; {result.device_state}"]
  for r in result.repeats:
    lines.append(
      f"{r.problem:12s} {r.count} evaluations, median {r.median_ms:.4f} ms, "
      f"coefficient of variation "
      f"{100 * r.coefficient_of_variation:.2f} %, largest over smallest "
      f"{r.largest_over_smallest:.3f}; {_jax(r)}"
    )
  copy = f"copy: {result.copy_bandwidth / 1e12:.3f} TB/s"
  if result.copy_ceiling is None:
    lines.append(f"{copy}; {result.ceiling_note}")
  else:
    lines.append(
      f"{copy}, independent program {result.copy_ceiling / 1e12:.3f} TB/s, "
      f"ratio {result.copy_bandwidth / result.copy_ceiling:.3f}"
    )
  return "\n".join(lines)
