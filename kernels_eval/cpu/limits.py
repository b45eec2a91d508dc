"""Launches with numbers, within the limits of the hardware that the executor
stands in for: compute capability 8.0 and up (the smallest opt-in limit on
shared memory there is 99 KiB)."""

import math
from collections.abc import Sequence

from kernels_eval import expressions, outcome
from kernels_eval.cpu import protocol
from kernels_eval.launch_plan import Launch
from kernels_eval.schema import Diagnostic, LaunchLimit, Status

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
STATIC_SHARED_BYTES = 48 * 1024
SHARED_BYTES = 99 * 1024


def _stop(status, launch, message, launch_limit=None):
  diagnostics = ()
  if launch.line is not None:
    diagnostics = (Diagnostic("error", message, launch.line, None),)
  return outcome.Stop(
    status, message, diagnostics=diagnostics, launch_limit=launch_limit
  )


def _beyond(launch, dims, what, nodes, values, *, bounds, unit):
  """The outcome of a launch whose product of `values` is out of `bounds`."""
  names = frozenset().union(*(expressions.names(n) for n in nodes))
  (at_least, at_most), got = bounds, math.prod(values)
  text = str(got)
  if len(values) > 1:
    text = f"{' x '.join(str(v) for v in values)} = {got}"
  if at_least:
    limit = f"{at_least} to {at_most}"
  else:
    text, limit = f"{text} {unit}", str(at_most)
  return _stop(
    Status.LAUNCH_ERROR,
    launch,
    f"`{launch.kernel}`: {what} is {text}; the limit is {limit}",
    LaunchLimit(
      kernel=launch.kernel,
      what=what,
      plan=", ".join(expressions.text_of(n) for n in nodes),
      dims={k: v for k, v in dims.items() if k in names},
      factors=tuple(values),
      got=got,
      at_least=at_least,
      at_most=at_most,
      unit=unit,
      line=launch.line,
    ),
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
  for name, unit, nodes, counts, limits in (
    ("block", "threads", launch.block, block, MAX_BLOCK),
    ("grid", "blocks", launch.grid, grid, MAX_GRID),
  ):
    for axis, node, n, limit in zip("xyz", nodes, counts, limits, strict=True):
      if n < 1 or n > limit:
        what, bounds = f"{name}.{axis}", (1, limit)
        raise _beyond(launch, dims, what, [node], [n], bounds=bounds, unit=unit)
  if math.prod(block) > MAX_THREADS:
    what, bounds, unit = "the block", (0, MAX_THREADS), "threads"
    raise _beyond(
      launch, dims, what, launch.block, block, bounds=bounds, unit=unit
    )
  if shared < 0 or shared > max_shared_bytes:
    what, bounds, unit = "dynamic shared memory", (0, max_shared_bytes), "bytes"
    raise _beyond(
      launch, dims, what, [launch.shared], [shared], bounds=bounds, unit=unit
    )
  return protocol.RunLaunch(entry, grid, block, shared, tuple(arguments))
