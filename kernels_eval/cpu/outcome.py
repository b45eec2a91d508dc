"""How an evaluation ends before its outputs can be compared."""

from kernels_eval.problems import spec
from kernels_eval.schema import Diagnostic, Finding, Mismatch, Status


class Stop(Exception):
  """The evaluation ends here, with this outcome."""

  def __init__(
    self,
    status: Status,
    message: str,
    *,
    diagnostics: tuple[Diagnostic, ...] = (),
    finding: Finding | None = None,
    case: spec.Case | None = None,
    mismatch: Mismatch | None = None,
    log: str = "",
  ):
    super().__init__(message)
    self.status = status
    self.message = message
    self.diagnostics = diagnostics
    self.finding = finding
    self.case = case
    self.mismatch = mismatch
    self.log = log


def without_line(status: Status, message: str) -> Stop:
  """An outcome with one diagnostic that no line belongs to."""
  return Stop(
    status, message, diagnostics=(Diagnostic("error", message, None, None),)
  )
