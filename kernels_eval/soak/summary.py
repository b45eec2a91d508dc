"""A soak's result as a page of text."""

from kernels_eval.schema import Status
from kernels_eval.soak.run import Result

_MIB = 2**20
_SHORT = {  # headings of columns
  Status.PASSED: "passed",
  Status.WRONG_ANSWER: "wrong",
  Status.NO_KERNEL: "no krnl",
  Status.CONTRACT_VIOLATION: "contract",
  Status.COMPILE_ERROR: "compile",
  Status.LAUNCH_ERROR: "launch",
  Status.RUNTIME_ERROR: "runtime",
  Status.TIMEOUT: "timeout",
  Status.INTEGRITY_VIOLATION: "integr.",
  Status.INFRASTRUCTURE_ERROR: "INFRA",
}


def _table(statuses):
  kinds = [*statuses, "all"]
  totals: dict[str, int] = {}
  for counts in statuses.values():
    for status, n in counts.items():
      totals[status] = totals.get(status, 0) + n
  rows = {**statuses, "all": totals}
  shown = [s for s in Status if totals.get(s.value)]
  lines = ["kind       count " + "".join(f"{_SHORT[s]:>9}" for s in shown)]
  for kind in kinds:
    counts = rows[kind]
    cells = (counts.get(s.value, 0) or "-" for s in shown)
    lines.append(
      f"{kind:<10}{sum(counts.values()):6d} "
      + "".join(f"{cell:>9}" for cell in cells)
    )
  return lines


def _judges(memory):
  resident = [f"{n / _MIB:.0f}" for n in memory.resident_bytes]
  return (
    f"  at {100 * memory.fraction_done:3.0f} %: {', '.join(resident)} MiB, "
    f"{', '.join(str(n) for n in memory.num_descriptors)} descriptors, "
    f"{', '.join(str(n) for n in memory.num_processes)} compilers"
  )


def _belongings(comparison):
  text = f"  {comparison.name}: {comparison.before} -> {comparison.after}"
  if comparison.is_same:
    return f"{text}, nothing left"
  left = ", ".join(comparison.left[:6])
  return f"{text}, LEFT BEHIND: {left}"


def render(result: Result) -> str:
  """The page."""
  m = result.machine
  lines = [
    f"soak of {result.num_candidates} candidates, seed {result.seed}, "
    f"{result.num_workers} judges: {result.seconds:.0f} s, "
    f"{result.candidates_per_second:.1f} candidates/s",
    f"{m.cpu}, {m.num_cores} cores, {m.memory_bytes / 2**30:.0f} GiB; "
    f"{m.system}; Python {m.python}",
    f"executor {result.executor} ({result.toolchain}); {result.protections}",
    f"{m.date}, commit {m.commit or 'unknown'}; load before: "
    f"{m.load_average:.1f}",
    "",
    *_table(result.statuses),
    "",
    f"verdicts that must not be: {result.num_offences}",
  ]
  lines += [
    f"  {o.id} ({o.problem}): {o.status}, allowed: {', '.join(o.allowed)}; "
    f"{o.message[:160]}"
    for o in result.offences
  ]
  if result.excused_twins:
    lines.append("texts with two verdicts, which a GPU may give:")
    lines += [f"  {twin}" for twin in result.excused_twins]
  lines += [
    f"infrastructure errors: {result.num_infrastructure_errors}; judges "
    f"replaced: {result.num_restarts}",
    "resident memory and open files of the judges"
    + (": A LEAK" if result.has_leaking_judge else ":"),
    *map(_judges, result.judges),
    f"largest process: {result.max_process_resident_bytes / _MIB:.0f} MiB",
    "before the judges started and after they ended:",
    *map(_belongings, result.belongings),
    "",
    "clean" if result.is_clean else "NOT CLEAN",
  ]
  return "\n".join(lines)
