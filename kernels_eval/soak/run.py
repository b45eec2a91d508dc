"""Submits the mix, and looks before and after."""

import collections
import dataclasses
import os
import pathlib
import resource
import time
from collections.abc import Callable, Mapping, Sequence

from kernels_eval import audit, client, verdict_cache
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.numba import client as numba_client
from kernels_eval.schema import Evaluation, Request, Status
from kernels_eval.soak import belongings, machine, mix, templates, twins

# Those that the corpus' expectations hold for. Processor time, not time of the
# clock, so that a loaded machine changes nothing.
SETTINGS = audit.SETTINGS
# As much beside a kernel's own time as others have by default: here one waits
# for the faults of its neighbours more often than anywhere else.
_LOAD_WALL_S = 7.5
_SLOW_FRACTION = 0.4  # of the time limit
_CALIBRATION_STEPS = 20_000_000
_CALIBRATION_REPEATS = 3
_BATCH_PER_JUDGE = 48
_MAX_OFFENCES = 20  # that are kept
_NUM_LOOKS, _LOOK_S = 10, 0.1  # at the judges' belongings
_MOST_COMPILERS = 4  # the sandbox's host on the GPU and on the CPU, Numba's two


@dataclasses.dataclass(frozen=True)
class Offence:
  """A candidate that did not get what it must get."""

  id: str
  kind: str
  problem: str
  status: str
  allowed: tuple[str, ...]
  message: str


@dataclasses.dataclass(frozen=True)
class Memory:
  """Of the judge processes, at one moment."""

  fraction_done: float
  resident_bytes: tuple[int, ...]  # of each judge
  # Without one for each process of its own, to which it holds a socket: a judge
  # starts compilers when it needs them, Numba's up to two, one of them seldom.
  num_descriptors: tuple[int, ...]
  num_processes: tuple[int, ...]  # of its own: compilers


@dataclasses.dataclass(frozen=True)
class Result:
  """What a soak saw."""

  machine: machine.Machine
  executor: str
  toolchain: str
  protections: str
  seed: int
  num_candidates: int
  num_workers: int
  seconds: float
  candidates_per_second: float
  statuses: dict[str, dict[str, int]]  # kind -> status -> count
  num_offences: int
  offences: tuple[Offence, ...]  # the first ones
  excused_twins: tuple[str, ...]  # two verdicts, and why a GPU may give them
  num_infrastructure_errors: int
  num_restarts: int  # of judges
  judges: tuple[Memory, ...]  # at a quarter, at the end
  max_process_resident_bytes: int  # of the largest process: a compiler, mostly
  belongings: tuple[belongings.Comparison, ...]

  @property
  def has_leaking_judge(self) -> bool:
    """Whether a judge has more open files at the end than any had at a quarter,
    more processes than it has compilers, or memory beyond its own by a quarter
    and 16 MiB."""
    early, late = self.judges[0], self.judges[-1]
    most_files = max(early.num_descriptors, default=0)
    return (
      any(n > most_files for n in late.num_descriptors)
      or any(n > _MOST_COMPILERS for n in late.num_processes)
      or any(
        late_bytes > 1.25 * early_bytes + 2**24
        for early_bytes, late_bytes in zip(
          early.resident_bytes,
          late.resident_bytes,
          strict=False,  # after a restart, which counts for itself
        )
      )
    )

  @property
  def is_clean(self) -> bool:
    """Right verdicts, no fault of ours, nothing left."""
    return (
      not self.num_offences
      and not self.num_infrastructure_errors
      and not self.num_restarts
      and not self.has_leaking_judge
      and all(c.is_same for c in self.belongings)
    )


def _resident_bytes(pid):
  try:
    text = pathlib.Path(f"/proc/{pid}/statm").read_text()
    return int(text.split()[1]) * resource.getpagesize()
  except (OSError, IndexError):
    return 0


def _judges(fraction_done):
  """Memory of this process's judges, in the order of their process ids: the
  least of some looks, for one that has just answered still holds its job."""
  looks = []
  for i in range(_NUM_LOOKS):
    if i:
      time.sleep(_LOOK_S)
    looks.append(_look())
  least = {
    pid: [min(values) for values in zip(*(x[pid] for x in looks), strict=True)]
    for pid in sorted(set.intersection(*map(set, looks)))
  }
  return Memory(
    fraction_done,
    *(tuple(values[i] for values in least.values()) for i in range(3)),
  )


def _look():
  """(resident bytes, open files but for those to its own processes, these) of
  each judge by its process id."""
  found = {}
  parents = belongings.parents()
  num_children = collections.Counter(parents.values())
  for pid in belongings.descendants(os.getpid(), parents):
    try:
      command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
      if b"kernels_eval.judge_process" not in command.split(b"\0"):
        continue
      num_open = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
      continue  # it has just ended
    own = num_children[pid]
    found[pid] = _resident_bytes(pid), num_open - own, own
  return found


def _slow_steps(pool):
  """Steps of `mix.slow` that take `_SLOW_FRACTION` of the limit here."""
  spent = {1: [], _CALIBRATION_STEPS: []}
  for i in range(2 * _CALIBRATION_REPEATS):  # one at a time: nobody waits
    num_steps = (1, _CALIBRATION_STEPS)[i % 2]
    text = f"{mix.slow(num_steps)}\n// {i}\n"
    request = Request(f"calibration-{i}", "vector_add", text)
    (answer,) = pool.evaluate([request])
    if not answer.passed:
      raise client.HarnessError(
        f"a plain kernel got {answer.status.value}: {answer.message}"
      )
    spent[num_steps].append(answer.run_ms)
  extra_ms = min(spent[_CALIBRATION_STEPS]) - min(spent[1])
  ms_per_step = max(extra_ms, 1.0) / _CALIBRATION_STEPS
  return int(_SLOW_FRACTION * SETTINGS.run_cpu_s * 1000 / ms_per_step)


def _shares(executor):
  """Of the kinds of candidates that this machine can judge."""
  shares = mix.SHARES if executor == "cpu" else mix.CUDA_SHARES
  return {k: v for k, v in shares.items() if k != "numba" or _has_numba()}


def _suffixes():
  """Of files of candidates that this machine can judge."""
  return [s for s in templates.SUFFIXES if s != ".py" or _has_numba()]


def _has_numba():
  try:
    numba_client.check_versions()
  except numba_client.UnavailableError:
    return False
  return True


def _offences(candidates, answers, excused):
  """What is wrong with the verdicts."""
  differing = twins.differing(candidates, answers)
  for i, (candidate, answer) in enumerate(
    zip(candidates, answers, strict=True)
  ):
    allowed, message = candidate.allowed, answer.message
    if i in differing and i not in excused:
      allowed = {answers[differing[i]].status}
      message = f"the same text got another verdict before; {message}"
    if answer.status not in allowed:
      yield Offence(
        candidate.request.id,
        candidate.kind,
        candidate.request.problem,
        answer.status.value,
        tuple(sorted(s.value for s in allowed)),
        message,
      )


def _submit(pool, candidates, on_result):
  """Answers in order, and the judges' memory at a quarter and at the end."""
  size = _BATCH_PER_JUDGE * pool.num_workers
  answers: list[Evaluation] = []
  memory = []
  for start in range(0, len(candidates), size):
    batch = candidates[start : start + size]
    answers += pool.evaluate([c.request for c in batch], on_result)
    fraction = len(answers) / len(candidates)
    if not memory and fraction >= 0.25:
      memory.append(_judges(fraction))
  memory.append(_judges(1.0))
  return answers, tuple(memory)


def soak(
  count: int,
  seed: int,
  num_workers: int | None = None,
  on_result: Callable[[Evaluation], None] | None = None,
  folder: pathlib.Path | None = templates.CHECKOUT,
  executor: str = "auto",
) -> Result:
  """Submits `count` candidates and compares what this process has.

  Args:
    count: of candidates.
    seed: of the mix.
    num_workers: judges; None means one for each processor.
    on_result: called with every answer.
    folder: of further hostile candidates.
    executor: where they run: one of `executors.EXECUTORS`.

  Raises:
    client.HarnessError: this machine cannot judge.
    corpus.CorpusError: a file of the folder has no proper header.
  """
  here = machine.describe()
  with belongings.adopting_orphans():
    before = belongings.take()
    with client.Pool(
      num_workers=num_workers,
      settings=SETTINGS,
      executor=executor,
      cuda_settings=CudaSettings(load_wall_s=_LOAD_WALL_S),
      cache=verdict_cache.Nothing(),
    ) as pool:
      kind = "cpu" if pool.hello.executor.startswith("cpu") else "cuda"
      candidates = mix.draw(
        count,
        seed,
        templates.load(kind, _suffixes(), folder),
        _slow_steps(pool),
        _shares(kind),
      )
      started = time.perf_counter()
      answers, memory = _submit(pool, candidates, on_result)
      seconds = time.perf_counter() - started
      num_workers, hello = pool.num_workers, pool.hello
      num_restarts = pool.num_restarts
    excused = {}
    if kind == "cuda":
      excused = twins.reasons(candidates, answers, SETTINGS)
    compared = belongings.compare_when_quiet(before)
  return Result(
    machine=here,
    executor=hello.executor,
    toolchain=hello.toolchain,
    protections=hello.protections,
    seed=seed,
    num_candidates=count,
    num_workers=num_workers,
    seconds=seconds,
    candidates_per_second=count / seconds,
    statuses=_statuses(candidates, answers),
    num_restarts=num_restarts,
    judges=memory,
    max_process_resident_bytes=_largest_process_bytes(),
    belongings=tuple(compared),
    **_judged(candidates, answers, excused),
  )


def _judged(candidates, answers, excused: Mapping[int, str]):
  offences = tuple(_offences(candidates, answers, excused))
  return {
    "num_offences": len(offences),
    "offences": offences[:_MAX_OFFENCES],
    "excused_twins": tuple(
      f"{candidates[i].request.id} ({candidates[i].request.problem}): {reason}"
      for i, reason in excused.items()
    ),
    "num_infrastructure_errors": sum(
      a.status == Status.INFRASTRUCTURE_ERROR for a in answers
    ),
  }


def _largest_process_bytes():
  """Of all descendants that somebody has waited for."""
  return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def _statuses(
  candidates: Sequence[mix.Candidate], answers: Sequence[Evaluation]
) -> dict[str, dict[str, int]]:
  counts = {
    kind: collections.Counter()
    for kind in mix.SHARES
    if any(c.kind == kind for c in candidates)
  }
  for candidate, answer in zip(candidates, answers, strict=True):
    counts[candidate.kind][answer.status.value] += 1
  return {kind: dict(counter) for kind, counter in counts.items()}
