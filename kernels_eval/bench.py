"""Throughput of the harness: unique kernels compiled, run and judged."""

import dataclasses
import statistics
import time

from kernels_eval import client, problems, verdict_cache
from kernels_eval.candidate import CUDA, NUMBA
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.schema import Evaluation, Request


@dataclasses.dataclass(frozen=True)
class Result:
  """What a benchmark measured. Milliseconds are means for each kernel."""

  num_kernels: int
  num_workers: int
  seconds: float
  kernels_per_second: float
  compile_ms: float
  run_ms: float
  judge_ms: float
  idle_fraction: float  # of the workers' time
  num_passed: int
  executor: str
  place: str  # the executor, and of a GPU which one
  toolchain: str


def _unique_cuda(problem, i):
  return f"{problem.canonical}\n__device__ int unique_{i}() {{ return {i}; }}\n"


def _unique_numba(problem, i):
  return f"{problem.numba_canonical}\nUNIQUE = {i}\n"


_UNIQUE = {CUDA: _unique_cuda, NUMBA: _unique_numba}


def unique_requests(count: int, language: str = CUDA) -> list[Request]:
  """Canonical kernels of all problems in turn, each with a text of its own
  (a different constant, so that no cache can know it)."""
  names = sorted(problems.FAMILIES)
  requests = []
  for i in range(count):
    problem = problems.FAMILIES[names[i % len(names)]]
    text = _UNIQUE[language](problem, i)
    requests.append(Request(str(i), problem.name, text))
  return requests


def run(
  count: int,
  num_workers: int | None,
  executor: str,
  on_result=None,
  *,
  language: str = CUDA,
  devices: tuple[int, ...] = (0,),
) -> Result:
  """Judges `count` unique kernels and reports the rate."""
  with client.Pool(
    num_workers=num_workers,
    executor=executor,
    cuda_settings=CudaSettings(devices=devices),
    cache=verdict_cache.Nothing(),
  ) as pool:
    num_workers = pool.num_workers
    # The first kernels of each judge pay for imports and page faults.
    pool.evaluate(
      [
        Request(f"warm-{i}", r.problem, r.text + "\n\n")
        for i, r in enumerate(unique_requests(4 * num_workers, language))
      ]
    )
    requests = unique_requests(count, language)
    started = time.perf_counter()
    answers: list[Evaluation] = pool.evaluate(requests, on_result)
    seconds = time.perf_counter() - started
    hello, place = pool.hello, pool.place
  compile_ms = statistics.fmean(a.compile_ms for a in answers)
  run_ms = statistics.fmean(a.run_ms for a in answers)
  judge_ms = statistics.fmean(a.judge_ms for a in answers)
  busy = (compile_ms + run_ms + judge_ms) / 1000 * count
  return Result(
    num_kernels=count,
    num_workers=num_workers,
    seconds=seconds,
    kernels_per_second=count / seconds,
    compile_ms=compile_ms,
    run_ms=run_ms,
    judge_ms=judge_ms,
    idle_fraction=max(0.0, 1.0 - busy / (seconds * num_workers)),
    num_passed=sum(a.passed for a in answers),
    executor=answers[0].executor,
    place=place,
    toolchain=hello.toolchain,
  )
