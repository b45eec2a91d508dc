"""Evaluations to what the policy is told. The only place that decides it."""

from kernels_eval.schema import Evaluation, Status
from leap_jax.types import StopReason

# An answer without its end failed, whatever its first lines do.
_CUT_HEADLINE = "The answer was cut at its token limit"
_HEADLINE = {
  Status.PASSED: "The kernel is right",
  Status.WRONG_ANSWER: "Wrong answer",
  Status.NO_KERNEL: "No kernel found",
  Status.CONTRACT_VIOLATION: "Not allowed",
  Status.COMPILE_ERROR: "Compile error",
  Status.LAUNCH_ERROR: "Launch error",
  Status.RUNTIME_ERROR: "Runtime error",
  Status.TIMEOUT: "Timeout",
  Status.INTEGRITY_VIOLATION: "Integrity violation",
}

# Where a function was asked for and not a kernel.
_FUNCTION_HEADLINE = {
  Status.PASSED: "The function is right",
  Status.NO_KERNEL: "No function found",
}


def _number(x: float) -> str:
  return f"{x:.3g}"


def render(evaluation: Evaluation, stop_reason: StopReason) -> str:
  """The verdict as one line.

  Args:
    evaluation: of the text that was sampled.
    stop_reason: of the answer. One that was cut is told so first; that its
      kernel passes is no news then.

  Raises:
    ValueError: for an infrastructure error, which is no news about a kernel.
  """
  if not evaluation.counts:
    raise ValueError("an infrastructure error is never told to the policy")
  if stop_reason == StopReason.LENGTH:
    cut_first = f"{_CUT_HEADLINE}."
    if evaluation.passed:
      return cut_first
    return f"{cut_first} {render(evaluation, StopReason.STOP)}"
  head = _HEADLINE[evaluation.status]
  if evaluation.executor == "python":
    head = _FUNCTION_HEADLINE.get(evaluation.status, head)
  mismatch = evaluation.mismatch
  if mismatch is None:
    return f"{head}: {evaluation.message}."
  index = ", ".join(str(i) for i in mismatch.first_wrong_index)
  text = (
    f"{head}: {mismatch.output}[{index}] is {_number(mismatch.got)}, expected "
    f"{_number(mismatch.expected)}"
  )
  share = mismatch.num_wrong / mismatch.num_elements
  if mismatch.num_unwritten:
    text += "; elements were never written"
  elif share == 1.0:
    text += "; all elements are wrong"
  elif share >= 0.5:
    text += "; most elements are wrong"
  else:
    text += "; some elements are wrong"
  return f"{text} ({evaluation.case})."


def cut(ids: list[int], budget: int, marker: list[int]) -> list[int]:
  """Keeps head and tail of token ids, with a marker between them.

  Compiler logs say what matters first and last. Never longer than `budget`.
  """
  if len(ids) <= budget:
    return ids
  room = budget - len(marker)
  if room <= 0:
    return ids[:budget]
  head = (room + 1) // 2
  tail = room - head
  return ids[:head] + marker + (ids[-tail:] if tail else [])
