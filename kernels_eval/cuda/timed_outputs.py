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
from kernels_eval.schema import Finding, Status

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
  if report.num_changed:
    text = f"writes {report.num_changed} bytes outside of all buffers"
    raise Stop(
      Status.RUNTIME_ERROR,
      f"in timed calls: {text}",
      finding=Finding("out_of_bounds", text, line=None),
      case=case,
    )
  if not report.is_intact:
    raise Stop(
      Status.INTEGRITY_VIOLATION,
      "memory that is none of its buffers has changed in timed calls",
      case=case,
    )
  differences = [
    _first_difference(row, problem, case, nearness) for row in report.compared
  ]
  bad = [c for c, difference in enumerate(differences) if difference]
  if not bad:
    return
  # Right beside the reference, but not beside the canonical kernel, mostly.
  if differences[checked_call] and 2 * len(bad) > num_calls:
    raise HostError(
      f"the canonical kernel of {problem.name} is not right at its timed size, "
      f"beside a right one: {differences[checked_call]}"
    )
  raise Stop(
    Status.WRONG_ANSWER,
    f"in timed call {bad[0] + 1} of {num_calls}, beside what the canonical "
    f"kernel writes for the same inputs: {differences[bad[0]]}",
    case=case,
  )


def _first_difference(row, problem, case, nearness):
  for tensor, found in zip(problem.outputs, row, strict=True):
    size = math.prod(tensor.shape_for(case.dims))
    difference = _difference(found, size, nearness[tensor.name])
    if difference is not None:
      return f"{tensor.name}: {difference}"
  return None


def _difference(found, size, near):
  """Why an output is not near the canonical kernel's; None if it is."""
  if found.num_far > near.far_elements * size:
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
