"""Runs the corpus of hostile candidates on this machine: what gets by?"""

import collections
import dataclasses
import enum
import pathlib
import platform
from collections.abc import Callable, Sequence

import msgspec

from kernels_eval import catalogue, client, verdict_cache
from kernels_eval.client import Settings
from kernels_eval.corpus import Specimen
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.schema import Evaluation, Request, Status

# Bombs have to meet a limit; a short one, so that an audit takes a minute.
SETTINGS = Settings(
  compile_cpu_s=2.0,
  compile_memory_bytes=512 * 2**20,
  run_cpu_s=0.5,
)


class Verdict(enum.StrEnum):
  """What became of one file of the corpus. The list is closed."""

  CAUGHT = "caught"
  HARMLESS = "harmless"
  """Passed, as it may: its output is right and the attempt changes nothing."""
  ACCEPTED = "accepted"
  """An honest kernel that passed."""
  ESCAPED = "escaped"
  """A status that is not allowed, or a secret of this machine in the record."""
  REFUSED = "refused"
  """An honest kernel that did not pass."""
  FAILED = "infrastructure_error"
  """A fault of ours: nothing is known of this candidate."""
  NOT_APPLICABLE = "not applicable"


BAD = (Verdict.ESCAPED, Verdict.REFUSED, Verdict.FAILED)


@dataclasses.dataclass(frozen=True)
class Finding:
  """One file's verdict. `evaluation` is None where it is not applicable."""

  specimen: Specimen
  verdict: Verdict
  note: str  # why it is not applicable, or what was allowed instead
  evaluation: Evaluation | None = None


@dataclasses.dataclass(frozen=True)
class Report:
  """An audit: findings in the corpus' order, and what judged them."""

  executor: str
  toolchain: str
  protections: str
  findings: tuple[Finding, ...]

  @property
  def escaped(self) -> bool:
    """Whether anything is not as it should be."""
    return any(f.verdict in BAD for f in self.findings)

  def counts(self) -> dict[Verdict, int]:
    """Number of files for each verdict, zeros included."""
    counted = collections.Counter(f.verdict for f in self.findings)
    return {verdict: counted[verdict] for verdict in Verdict}

  def of_row(self, number: int) -> list[Finding]:
    """Findings about one row of the catalogue."""
    return [f for f in self.findings if number in f.specimen.rows]


def _secret() -> str:
  """Text of this machine that no record may ever show, or ""."""
  try:
    lines = pathlib.Path("/etc/passwd").read_text("utf-8", "replace")
  except OSError:
    return ""
  return next((x for x in lines.splitlines() if ":" in x), "")


def not_applicable(specimen: Specimen, family: str) -> str:
  """Why the file cannot be tried here; "" if it can.

  Args:
    specimen: the file.
    family: "cpu" or "cuda".
  """
  if family not in specimen.allowed:
    return f"for {', '.join(specimen.allowed)} only: {specimen.reason}"
  if specimen.machine not in (None, platform.machine()):
    return f"for {specimen.machine} only; this is {platform.machine()}"
  return ""


def judge(
  specimen: Specimen, evaluation: Evaluation, family: str, secret: str = ""
) -> Finding:
  """The verdict on one evaluation of one file.

  Args:
    specimen: the file.
    evaluation: its record.
    family: of the executor, "cpu" or "cuda".
    secret: text that must not be found in the record.
  """
  allowed = specimen.allowed[family]
  note = ""
  if evaluation.status == Status.INFRASTRUCTURE_ERROR:
    verdict = Verdict.FAILED
  elif secret and secret in repr(evaluation):
    verdict, note = Verdict.ESCAPED, "the record shows a file of this machine"
  elif evaluation.status not in allowed:
    verdict = Verdict.REFUSED if specimen.is_honest else Verdict.ESCAPED
    note = f"allowed: {', '.join(allowed)}"
  elif specimen.is_honest:
    verdict = Verdict.ACCEPTED
  elif evaluation.passed:
    verdict = Verdict.HARMLESS
  else:
    verdict = Verdict.CAUGHT
  return Finding(specimen, verdict, note, evaluation)


def family_of(executor: str) -> str:
  """Which `expect` lines count for an executor: "cpu" or "cuda"."""
  return "cuda" if executor.startswith("cuda") else "cpu"


def run(
  specimens: Sequence[Specimen],
  num_workers: int | None,
  executor: str = "auto",
  on_result: Callable[[], None] = lambda: None,
) -> Report:
  """Judges a corpus through a pool of judges.

  Args:
    specimens: the corpus.
    num_workers: judges; None means one for each processor.
    executor: one of `executors.EXECUTORS`. A GPU times them, too.
    on_result: called after each file (progress bars).

  Raises:
    client.HarnessError: this machine cannot judge.
  """
  secret = _secret()
  with client.Pool(
    num_workers=num_workers,
    settings=SETTINGS,
    executor=executor,
    cuda_settings=CudaSettings(with_timing=True),
    cache=verdict_cache.Nothing(),
  ) as pool:
    hello = pool.hello
    family = family_of(hello.executor)
    findings: list[Finding | None] = []
    for specimen in specimens:
      why_not = not_applicable(specimen, family)
      findings.append(
        Finding(specimen, Verdict.NOT_APPLICABLE, why_not) if why_not else None
      )
      if why_not:
        on_result()
    places = [i for i, f in enumerate(findings) if f is None]
    requests = [
      Request(s.name, s.problem, s.text) for s in (specimens[i] for i in places)
    ]
    for j, evaluation in pool.stream(requests):
      i = places[j]
      findings[i] = judge(specimens[i], evaluation, family, secret)
      on_result()
  return Report(
    hello.executor, hello.toolchain, hello.protections, tuple(findings)
  )


def _finding_line(finding):
  rows = " ".join(str(r) for r in finding.specimen.rows) or "-"
  status = "-" if finding.evaluation is None else finding.evaluation.status
  line = f"{finding.specimen.name:<36} {rows:>7}  {status:<20} "
  line += finding.verdict
  if finding.note:
    line += f" ({finding.note})"
  if finding.verdict in BAD:
    line += f": {finding.evaluation.message}"
  return line


def _row_lines(report, row):
  parts = []
  for verdict in Verdict:
    names = [
      f.specimen.name for f in report.of_row(row.number) if f.verdict == verdict
    ]
    if names:
      parts.append(f"{verdict}: {', '.join(names)}")
  how = (
    "impossible by construction" if row.closed == "impossible" else "checked"
  )
  yield f"{row.number:3d}  {row.title}"
  yield f"       {'; '.join(parts) or 'no file in this corpus'}"
  yield f"       {how}: {row.why}"


def render(report: Report) -> str:
  """The report for people: a line for each file, the rows, the counts."""
  head = f"{'file':<36} {'row':>7}  {'status':<20} verdict"
  lines = [head, *(_finding_line(f) for f in report.findings), "", "rows"]
  for row in catalogue.ROWS:
    lines += _row_lines(report, row)
  covered = sum(bool(report.of_row(r.number)) for r in catalogue.ROWS)
  counts = ", ".join(f"{n} {v}" for v, n in report.counts().items())
  lines += [
    "",
    f"sandbox: {report.protections}",
    f"{len(report.findings)} candidates for {covered} of {len(catalogue.ROWS)} "
    f"rows, judged by {report.executor} ({report.toolchain})",
    counts,
  ]
  return "\n".join(lines)


def encode(report: Report) -> bytes:
  """The report as one line of JSON."""
  return msgspec.json.encode(
    {
      "executor": report.executor,
      "toolchain": report.toolchain,
      "protections": report.protections,
      "candidates": [
        {
          "file": f.specimen.name,
          "rows": f.specimen.rows,
          "problem": f.specimen.problem,
          "verdict": f.verdict,
          "status": None if f.evaluation is None else f.evaluation.status,
          "message": "" if f.evaluation is None else f.evaluation.message,
          "note": f.note,
        }
        for f in report.findings
      ],
      "rows": [
        {
          "row": row.number,
          "title": row.title,
          "closed": row.closed,
          "why": row.why,
          "files": {
            f.specimen.name: f.verdict for f in report.of_row(row.number)
          },
        }
        for row in catalogue.ROWS
      ],
      "counts": {v.value: n for v, n in report.counts().items()},
    }
  )
