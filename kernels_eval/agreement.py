"""Do the two executors say the same of a candidate?

Canonical kernels in both languages, random mistakes in them, and the hostile
corpus are judged on the CPU and on the GPU. Where the statuses differ there
must be a reason that was known before: what a file's header allows on each
executor, or a check that only the CPU executor makes.
"""

import collections
import dataclasses
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from kernels_eval import audit, client, mutations, problems, verdict_cache
from kernels_eval.corpus import Specimen
from kernels_eval.executors import DEVICES
from kernels_eval.schema import Evaluation, Request, Status

CHECKED_ON_CPU = {
  "out_of_bounds": "a GPU reads what lies there; only writes meet a guard",
  "uninitialized_read": "a GPU reads whatever the memory held",
  "data_race": "a GPU's threads may come in the lucky order",
  "divergent_barrier": "a GPU lets threads that have left the kernel count",
  "divergent_warp": "a GPU may regroup the lanes",
}
"""Findings of the CPU executor that a GPU need not stop at, and why not."""

_UNCHECKED = (
  Status.PASSED,
  Status.WRONG_ANSWER,
  Status.RUNTIME_ERROR,
  Status.INTEGRITY_VIOLATION,
  Status.TIMEOUT,
)


@dataclasses.dataclass(frozen=True)
class Case:
  """A candidate for both executors."""

  group: str
  request: Request
  specimen: Specimen | None = None  # of the corpus


@dataclasses.dataclass(frozen=True)
class Difference:
  """Two statuses for one candidate. `reason` is "" where none is known."""

  group: str
  name: str
  cpu: str
  cuda: str
  reason: str


@dataclasses.dataclass(frozen=True)
class Report:
  """What was compared: candidates for each group, and where they differ."""

  toolchains: tuple[str, str]
  num_candidates: dict[str, int]
  differences: tuple[Difference, ...]

  @property
  def unexplained(self) -> tuple[Difference, ...]:
    """Differences without a reason."""
    return tuple(d for d in self.differences if not d.reason)


def canonical_cases() -> list[Case]:
  """The canonical kernel of every problem, CUDA C++ and Numba-CUDA."""
  cases = []
  for name, problem in sorted(problems.FAMILIES.items()):
    for group, text in (
      ("canonical CUDA", problem.canonical),
      ("canonical Numba", problem.numba_canonical),
    ):
      cases.append(Case(group, Request(f"{group} {name}", name, text)))
  return cases


def mutated_cases(count: int, seed: int) -> list[Case]:
  """Canonical CUDA kernels, each with one random mistake.

  Args:
    count: of candidates; problems take turns.
    seed: of the mistakes.
  """
  names = sorted(problems.FAMILIES)
  rng = np.random.default_rng(seed)
  cases, seen = [], set()
  for i in range(20 * count):
    if len(cases) == count:
      break
    name = names[i % len(names)]
    mutated = mutations.mutate(problems.get(name).canonical, rng)
    if mutated is None or mutated[1] in seen:
      continue
    rule, text = mutated
    seen.add(text)
    request = Request(f"{name} {rule} {len(cases)}", name, text)
    cases.append(Case("mutated", request))
  return cases


def corpus_cases(specimens: Sequence[Specimen]) -> list[Case]:
  """The files of the corpus that both executors can try here."""
  return [
    Case("corpus", Request(s.name, s.problem, s.text), s)
    for s in specimens
    if not any(audit.not_applicable(s, family) for family in DEVICES)
  ]


def reason_for(case: Case, cpu: Evaluation, cuda: Evaluation) -> str:
  """Why two statuses of one candidate may differ; "" if they may not."""
  if not (cpu.counts and cuda.counts):
    return ""  # a fault of this machine: nothing was compared
  specimen = case.specimen
  if specimen is not None:
    allowed = specimen.allowed_untimed
    if cpu.status in allowed["cpu"] and cuda.status in allowed["cuda"]:
      return f"as its header says: {specimen.why}"
    return ""
  return unchecked_on_gpu(cpu, cuda)


def unchecked_on_gpu(cpu: Evaluation, cuda: Evaluation) -> str:
  """The check of the CPU executor for want of which a GPU may have answered
  something else; "" if there is none."""
  kind = cpu.finding.kind if cpu.finding is not None else ""
  if kind in CHECKED_ON_CPU and cuda.status in _UNCHECKED:
    return f"{kind}: {CHECKED_ON_CPU[kind]}"
  return ""


def compare(
  cases: Sequence[Case], answers: dict[str, Sequence[Evaluation]]
) -> tuple[Difference, ...]:
  """Where the executors differ, or one of them has no verdict.

  Args:
    cases: the candidates.
    answers: of each executor ("cpu", "cuda"), one for each case.
  """
  return tuple(
    Difference(
      case.group,
      case.request.id,
      str(cpu.status),
      str(cuda.status),
      reason_for(case, cpu, cuda),
    )
    for case, cpu, cuda in zip(
      cases, answers["cpu"], answers["cuda"], strict=True
    )
    if cpu.status != cuda.status or not (cpu.counts and cuda.counts)
  )


def run(
  cases: Sequence[Case],
  num_workers: int | None = None,
  on_result: Callable[[], None] = lambda: None,
) -> Report:
  """Judges every case on both executors, one executor after the other.

  Raises:
    client.HarnessError: there is no usable GPU here, or no compiler.
  """
  answers, toolchains = {}, []
  for executor in reversed(DEVICES):  # a missing GPU is told at once
    with client.Pool(
      num_workers=num_workers,
      settings=audit.SETTINGS,
      executor=executor,
      cache=verdict_cache.Nothing(),
    ) as pool:
      answers[executor] = pool.evaluate(
        [case.request for case in cases], lambda _: on_result()
      )
      toolchains.append(f"{pool.hello.executor} ({pool.hello.toolchain})")
  counted = collections.Counter(case.group for case in cases)
  return Report(tuple(toolchains), dict(counted), compare(cases, answers))


def render(report: Report) -> str:
  """The report for people: a line for each difference, then the counts."""
  lines = [
    f"{d.group:<15} {d.name:<44} cpu {d.cpu:<20} cuda {d.cuda:<20} "
    + (d.reason or "NO REASON IS KNOWN")
    for d in report.differences
  ]
  lines += ["", " against ".join(report.toolchains)]
  for group, count in report.num_candidates.items():
    found = [d for d in report.differences if d.group == group]
    lines.append(
      f"{group}: {count} candidates, {count - len(found)} with the same "
      f"status, {sum(bool(d.reason) for d in found)} differ for a known "
      f"reason, {sum(not d.reason for d in found)} for none"
    )
  return "\n".join(lines)


def encode(report: Report) -> bytes:
  """The report as one line of JSON."""
  return msgspec.json.encode(dataclasses.asdict(report))
