"""Throughput of the harness: unique kernels compiled, run and judged."""

import dataclasses
import time

from kernels_eval import client, problems
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
  toolchain: str


def unique_requests(count: int) -> list[Request]:
  """Canonical kernels of all problems in turn, each with a text of its own
  (a different constant, so that no cache can know it)."""
  names = sorted(problems.FAMILIES)
  requests = []
  for i in range(count):
    problem = problems.FAMILIES[names[i % len(names)]]
    text = (
      f"{problem.canonical}\n__device__ int unique_{i}() {{ return {i}; }}\n"
    )
    requests.append(Request(str(i), problem.name, text))
  return requests


def run(
  count: int, num_workers: int | None, executor: str, on_result=None
) -> Result:
  """Judges `count` unique kernels and reports the rate."""
  with client.Pool(num_workers=num_workers, executor=executor) as pool:
    num_workers = num_workers or len(pool._workers)
    # The first kernels of each judge pay for imports and page faults.
    pool.evaluate(
      [
        Request(f"warm-{i}", r.problem, r.text + "// warm\n")
        for i, r in enumerate(unique_requests(4 * num_workers))
      ]
    )
    requests = unique_requests(count)
    started = time.perf_counter()
    answers: list[Evaluation] = pool.evaluate(requests, on_result)
    seconds = time.perf_counter() - started
    hello = pool.hello
  mean = lambda values: sum(values) / len(answers)
  compile_ms = mean(a.compile_ms for a in answers)
  run_ms = mean(a.run_ms for a in answers)
  judge_ms = mean(a.judge_ms for a in answers)
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
    executor=hello.executor,
    toolchain=hello.toolchain,
  )
