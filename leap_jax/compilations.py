"""Counts what JAX compiles: a steady state above zero is a bug."""

import concurrent.futures
import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax

_EVENT = "/jax/core/compile/backend_compile_duration"


@dataclasses.dataclass
class Compilations:
  """Totals since the counter was opened."""

  count: int = 0
  seconds: float = 0.0


@contextlib.contextmanager
def counted() -> Iterator[Compilations]:
  """Yields totals that grow as this process compiles."""
  totals = Compilations()
  is_open = True

  def listen(event, duration, **_):
    if is_open and event == _EVENT:
      totals.count += 1
      totals.seconds += duration

  jax.monitoring.register_event_duration_secs_listener(listen)
  try:
    yield totals
  finally:
    # JAX keeps listeners for good; this one goes quiet.
    is_open = False


def compile_all(
  lowered: Mapping[Any, jax.stages.Lowered],
  on_compile: Callable[[Any], None] = lambda key: None,
  options: Callable[[Any], Mapping[str, Any]] = lambda key: {},
) -> dict[Any, jax.stages.Compiled]:
  """Compiles programs side by side: XLA holds no lock of Python's.

  Args:
    lowered: in the order in which they are begun.
    on_compile: told the key of each program that is done.
    options: XLA's, of the program with a key.
  """
  compiled = {}
  workers = len(os.sched_getaffinity(0))
  with concurrent.futures.ThreadPoolExecutor(workers) as pool:
    jobs = {
      pool.submit(low.compile, compiler_options=dict(options(key))): key
      for key, low in lowered.items()
    }
    for job in concurrent.futures.as_completed(jobs):
      compiled[jobs[job]] = job.result()
      on_compile(jobs[job])
  return compiled
