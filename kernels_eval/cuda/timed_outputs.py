"""Whether a candidate has done its work in every timed call.

A launcher compares what it writes, in each call, with what the canonical kernel
writes for the same inputs (`timed_calls.py`). Two right outputs are near each
other (`correctness.nearness`).
"""

import math

from kernels_eval import correctness
from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import jobs
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Status

TELLING_ITEMS = 64
"""Elements from which on the RMS of an output tells something."""


def check(
  report: jobs.Report,
  checked_call: int,
  problem: spec.Problem,
  case: spec.Case,
  nearness: dict[str, correctness.Nearness],
) -> None:
  """Looks at each timed call.

  Args:
    report: with outputs of all calls beside the canonical kernel's.
    checked_call: its place in the report; it was compared with the reference,
      and right.
    problem: what was solved.
    case: the timed one.
    nearness: of each output.

  Raises:
    Stop: a call has not done the work, or memory that is no buffer of the
      candidate's has changed.
    HostError: the canonical kernel itself is wrong at this size.
    ValueError: not all calls were compared.
  """
  num_calls = len(report.times_ms[0])
  if len(report.compared) != num_calls:
    raise ValueError(
      f"{len(report.compared)} of {num_calls} timed calls were compared"
    )
  if not report.is_intact:
    raise Stop(
      Status.INTEGRITY_VIOLATION,
      "memory that is none of its buffers has changed in timed calls",
      case=case,
    )
  calls = sorted(range(num_calls), key=lambda c: c != checked_call)
  for c in calls:
    for tensor, found in zip(problem.outputs, report.compared[c], strict=True):
      size = math.prod(tensor.shape_for(case.dims))
      difference = _difference(found, size, nearness[tensor.name])
      if difference is None:
        continue
      if c == checked_call:
        raise HostError(
          f"the canonical kernel of {problem.name} is not right at its timed "
          f"size: {tensor.name} of a right one, beside it: {difference}"
        )
      raise Stop(
        Status.WRONG_ANSWER,
        f"in timed call {c + 1} of {num_calls}, {tensor.name} beside what the "
        f"canonical kernel writes for the same inputs: {difference}",
        case=case,
      )


def _difference(found, size, near):
  """Why an output is not near the canonical kernel's; None if it is."""
  if found.num_far > correctness.FAR_ELEMENTS * size:
    return f"{found.num_far} of {size} elements are far off"
  if size < TELLING_ITEMS or near.share == 0:
    return None
  rms, rms_gap = (
    math.sqrt(x / size) for x in (found.squares, found.squared_gaps)
  )
  allowed = near.rms + near.rms_share * rms
  if rms_gap <= allowed:  # NaN is not
    return None
  return f"the RMS of the differences is {rms_gap:.3g}, at most {allowed:.3g}"
