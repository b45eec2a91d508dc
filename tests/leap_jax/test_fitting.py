"""An update that fits: the first way that does, by the compiler's word."""

import jax.numpy as jnp
import pytest

from leap_jax import fitting
from leap_jax.types import TrainState

STATE = TrainState(jnp.ones(8), jnp.zeros(8), jnp.zeros((), jnp.int32))


def make(name):
  """Programs whose temporaries differ: a product of [n, n] is kept."""
  if name == "huge":  # what XLA says when it runs out while it compiles
    jnp.zeros(2**46).block_until_ready()
  size = {"large": 512, "small": 64}[name]

  def update(state, buckets, frozen):
    square = jnp.outer(jnp.arange(size) * state.params[0], jnp.arange(size))
    metrics = {"sum": jnp.linalg.norm(square @ square) + frozen}
    return state._replace(step=state.step + 1), metrics

  return update


def fit(limit_bytes, names=("large", "small")):
  said = []
  fitted = fitting.compile_update(
    make,
    names,
    STATE,
    (),
    frozen=jnp.float32(1.0),
    limit_bytes=limit_bytes,
    advice="lower this",
    say=said.append,
  )
  return fitted, said


def test_without_a_limit_the_first_is_taken_silently():
  fitted, said = fit(None)
  assert fitted.choice == "large" and not said


def test_the_first_that_fits_is_taken_and_said():
  large, _ = fit(None)
  fitted, (line,) = fit(large.peak_bytes - 1)
  assert fitted.choice == "small" and fitted.peak_bytes < large.peak_bytes
  assert "`small` is used" in line and "large" in line
  state, values = fitted(STATE, ())
  assert int(state.step) == 1 and float(values["sum"]) > 1


def test_a_way_that_the_compiler_cannot_hold_is_passed_over():
  fitted, (line,) = fit(2**30, ("huge", "small"))
  assert fitted.choice == "small" and "huge more than there is" in line
  fitted, _ = fit(None, ("huge", "small"))
  assert fitted.choice == "small"


@pytest.mark.parametrize("limit_bytes", [10, None])
def test_when_nothing_fits_there_is_advice(limit_bytes):
  names = ("large", "small") if limit_bytes else ("huge",)
  with pytest.raises(fitting.DoesNotFit, match="; lower this"):
    fit(limit_bytes, names)
