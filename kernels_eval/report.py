"""An evaluation for people: short, coloured, with the offending source line."""

from kernels_eval import candidate, source
from kernels_eval.schema import (
  ERROR_EDGES,
  Evaluation,
  LaunchLimit,
  Status,
)

_BAR_CHARS = 40

_GREEN, _RED, _YELLOW, _DIM, _BOLD, _OFF = (
  "\033[32m",
  "\033[31m",
  "\033[33m",
  "\033[2m",
  "\033[1m",
  "\033[0m",
)


def _painter(colour):
  if colour:
    return lambda code, text: f"{code}{text}{_OFF}"
  return lambda code, text: text


def _excerpt(lines, number, paint, around=1):
  """The line and its neighbours, with a marker."""
  out = []
  first, last = max(1, number - around), min(len(lines), number + around)
  for n in range(first, last + 1):
    text = source.printable(lines[n - 1].expandtabs(2))
    if n == number:
      out.append(paint(_RED, f"  > {n:4d} | ") + text)
    else:
      out.append(paint(_DIM, f"    {n:4d} | {text}"))
  return out


def _also(diagnostic):
  lines = diagnostic.also_lines
  if not lines:
    return ""
  shown = ", ".join(str(n) for n in lines[:8])
  return f" (also line{'s' * (len(lines) > 1)} {shown})"


def arithmetic(limit: LaunchLimit) -> str:
  """The sum that a launch's limit says no to, in one line."""
  dims = ", ".join(f"{k}={v}" for k, v in limit.dims.items())
  value = str(limit.got)
  if len(limit.factors) > 1:
    value = f"{' * '.join(str(n) for n in limit.factors)} = {value}"
  least = f"at least {limit.at_least} and " if limit.at_least else ""
  return (
    f"{limit.what} ({limit.plan})"
    + (f" with {dims}" if dims else "")
    + f": {value} {limit.unit}, {least}at most {limit.at_most}"
  )


def _histogram(mismatch):
  """Lines that count elements by relative error; empty bins are left out."""
  counts = mismatch.error_histogram
  if not counts:
    return []
  names = ["exact", *(f"up to {edge:g}" for edge in ERROR_EDGES[1:])]
  names += [f"above {ERROR_EDGES[-1]:g}", "not finite"]
  out = ["  elements by relative error:"]
  for name, count in zip(names, counts, strict=True):
    if count:
      bar = "#" * max(1, round(_BAR_CHARS * count / mismatch.num_elements))
      out.append(f"    {name:>11} {count:8d} {bar}")
  return out


def _floor(timing):
  if timing.floor_ms is None:
    return f"no floor: {timing.floor_note}"
  return (
    f"floor {timing.floor_ms:.4g} ms ({timing.floor_note}), "
    f"{100 * timing.roofline_share:.1f} % of the roofline"
  )


def render(evaluation: Evaluation, text: str, *, colour: bool) -> str:
  """The report.

  Args:
    evaluation: the verdict.
    text: what was judged, for the source lines.
    colour: whether to use terminal colours.
  """
  paint = _painter(colour)
  try:
    text = candidate.extract(text)
  except candidate.CandidateError:
    pass
  lines = text.split("\n")  # as compilers count them
  code = {
    Status.PASSED: _GREEN,
    Status.INFRASTRUCTURE_ERROR: _YELLOW,
  }.get(evaluation.status, _RED)
  out = [
    f"{paint(_BOLD, evaluation.problem)}  "
    f"{paint(code + _BOLD, evaluation.status.value)}  {evaluation.message}"
  ]
  shown = set()
  finding = evaluation.finding
  if finding is not None and finding.line and finding.line <= len(lines):
    out += _excerpt(lines, finding.line, paint)
    shown.add(finding.line)
    if finding.thread is not None:
      out.append(
        paint(_DIM, f"    thread {finding.thread}, block {finding.block}")
      )
  for diagnostic in evaluation.diagnostics[:4]:
    place = f"line {diagnostic.line}: " if diagnostic.line else ""
    said, also = f"{place}{diagnostic.message}", _also(diagnostic)
    if said != evaluation.message or also:
      out.append(f"  {diagnostic.severity}: {said}{also}")
    if diagnostic.line and diagnostic.line <= len(lines):
      if diagnostic.line not in shown:
        out += _excerpt(lines, diagnostic.line, paint)
        shown.add(diagnostic.line)
  if evaluation.launch_limit is not None:
    out.append(f"  {arithmetic(evaluation.launch_limit)}")
  if evaluation.case is not None:
    number, count = evaluation.num_cases_passed + 1, evaluation.num_cases
    which = f"case {number} of {count}" if number <= count else "timed case"
    out.append(f"  {which}: {evaluation.case}")
  mismatch = evaluation.mismatch
  if mismatch is not None:
    out.append(
      f"  largest error {mismatch.max_abs_error:.4g}, RMS error "
      f"{mismatch.relative_rms_error:.3g} of the reference's RMS"
    )
    out += _histogram(mismatch)
  if evaluation.log:
    out.append(paint(_DIM, "  printed:"))
    out += [f"    {line}" for line in evaluation.log.splitlines()[:10]]
  resources = [
    f"{value} {name}"
    for name, value in (
      ("registers", evaluation.num_registers),
      ("bytes of shared memory", evaluation.shared_bytes),
      ("bytes of local memory", evaluation.local_bytes),
    )
    if value
  ]
  if resources:
    out.append(paint(_DIM, f"  {', '.join(resources)}"))
  timing = "not timed"
  if evaluation.executor != "cuda":
    timing = "timing unavailable (no GPU)"
  t = evaluation.timing
  if t is not None:
    timing = f"speed-up {evaluation.speedup:.3g}"
    out.append(
      f"  {t.candidate_ms:.4g} ms (spread {100 * t.candidate_spread:.1f} %), "
      f"{t.baseline} {t.reference_ms:.4g} ms; {_floor(t)}; {t.num_calls} "
      f"calls, {t.case}"
    )
    if evaluation.speedup_over_jax is None:
      out.append(paint(_DIM, f"  no JAX baseline: {t.jax_note}"))
    else:
      out.append(
        f"  jitted JAX {t.jax_reference_ms:.4g} ms (spread "
        f"{100 * t.jax_reference_spread:.1f} %, {t.jax_note}): speed-up over "
        f"it {evaluation.speedup_over_jax:.3g}"
      )
    out.append(paint(_DIM, f"  {t.device}: {t.device_state}"))
  out.append(
    paint(
      _DIM,
      f"  {evaluation.executor}: compile {evaluation.compile_ms:.0f} ms, run "
      f"{evaluation.run_ms:.0f} ms, judge {evaluation.judge_ms:.0f} ms; "
      f"{timing}",
    )
  )
  return "\n".join(out)
