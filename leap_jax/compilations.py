"""Counts what JAX compiles: a steady state above zero is a bug."""

import contextlib
import dataclasses
from collections.abc import Iterator

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
