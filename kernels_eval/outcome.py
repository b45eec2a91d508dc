"""How an evaluation ends before its outputs can be compared."""

import msgspec

from kernels_eval import source
from kernels_eval.problems import spec
from kernels_eval.schema import (
  Diagnostic,
  Finding,
  LaunchLimit,
  Mismatch,
  Status,
)


class Stop(Exception):
  """The evaluation ends here, with this outcome."""

  def __init__(
    self,
    status: Status,
    message: str,
    *,
    diagnostics: tuple[Diagnostic, ...] = (),
    finding: Finding | None = None,
    launch_limit: LaunchLimit | None = None,
    case: spec.Case | None = None,
    mismatch: Mismatch | None = None,
    log: str = "",
  ):
    self.message = source.one_line(message)
    super().__init__(self.message)
    self.status = status
    self.diagnostics = tuple(
      msgspec.structs.replace(d, message=source.one_line(d.message))
      for d in diagnostics
    )
    self.finding = finding
    self.launch_limit = launch_limit
    self.case = case
    self.mismatch = mismatch
    self.log = log


def without_line(status: Status, message: str) -> Stop:
  """An outcome with one diagnostic that no line belongs to."""
  return Stop(
    status, message, diagnostics=(Diagnostic("error", message, None, None),)
  )
