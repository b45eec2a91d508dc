"""Launches with numbers, within the limits of the hardware that the executor
stands in for: compute capability 8.0 and up (the smallest opt-in limit on
shared memory there is 99 KiB)."""

from collections.abc import Sequence

from kernels_eval import expressions
from kernels_eval.cpu import outcome, protocol
from kernels_eval.launch_plan import Launch
from kernels_eval.schema import Diagnostic, Status

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
STATIC_SHARED_BYTES = 48 * 1024
SHARED_BYTES = 99 * 1024


def _stop(status, launch, message):
  diagnostics = ()
  if launch.line is not None:
    diagnostics = (Diagnostic("error", message, launch.line, None),)
  return outcome.Stop(status, message, diagnostics=diagnostics)


def _beyond(what, got, limit, launch):
  return _stop(
    Status.LAUNCH_ERROR,
    launch,
    f"`{launch.kernel}`: {what} is {got}; the limit is {limit}",
  )


def plan_launch(
  launch: Launch,
  entry: int,
  dims: dict[str, int],
  arguments: Sequence[tuple[str, int]],
  max_shared_bytes: int = SHARED_BYTES,
) -> protocol.RunLaunch:
  """Numbers for a launch.

  Raises:
    Stop: LAUNCH_ERROR with the arithmetic, or CONTRACT_VIOLATION.
  """
  try:
    grid = tuple(expressions.evaluate(e, dims) for e in launch.grid)
    block = tuple(expressions.evaluate(e, dims) for e in launch.block)
    shared = expressions.evaluate(launch.shared, dims)
  except expressions.ExpressionError as error:
    raise _stop(
      Status.CONTRACT_VIOLATION,
      launch,
      f"launch plan of `{launch.kernel}`: {error}",
    ) from None
  for axis, n, limit in zip("xyz", block, MAX_BLOCK, strict=True):
    if n < 1 or n > limit:
      raise _beyond(f"block.{axis}", n, f"1 to {limit}", launch)
  for axis, n, limit in zip("xyz", grid, MAX_GRID, strict=True):
    if n < 1 or n > limit:
      raise _beyond(f"grid.{axis}", n, f"1 to {limit}", launch)
  threads = block[0] * block[1] * block[2]
  if threads > MAX_THREADS:
    raise _beyond(
      "the block",
      f"{block[0]} x {block[1]} x {block[2]} = {threads} threads",
      f"{MAX_THREADS}",
      launch,
    )
  if shared < 0 or shared > max_shared_bytes:
    raise _beyond(
      "dynamic shared memory", f"{shared} bytes", f"{max_shared_bytes}", launch
    )
  return protocol.RunLaunch(entry, grid, block, shared, tuple(arguments))
