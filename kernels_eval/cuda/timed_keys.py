"""Keys by which inputs of timed calls are drawn, and the reference's answer for
one of them.

A key is new for each call and nobody can know it before, from seeds or from
earlier calls, but for the call that is checked beside the reference: that takes
seconds, so some candidates in a row share its key. One that knew those inputs
from the record of another would gain little: in each of the other calls, too,
its outputs have to be near the canonical kernel's (`timed_outputs.py`), and the
time is the median of all.
"""

import dataclasses
import secrets
from collections.abc import Sequence

import numpy as np

from kernels_eval import correctness
from kernels_eval.problems import spec, timing_inputs

MAX_USES = 32
"""Candidates that share the inputs of the checked call."""


@dataclasses.dataclass(frozen=True)
class Checked:
  """A key and the reference's answer, by output."""

  key: int
  exact: dict[str, np.ndarray]
  single: dict[str, np.ndarray]
  bounds: dict[str, correctness.Bounds]  # of float32 outputs


def new() -> int:
  """A key of 64 bits."""
  return secrets.randbits(64)


def answers(
  problem: spec.Problem,
  case: spec.Case,
  inputs: Sequence[timing_inputs.TimedInput],
  key: int,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """The reference's outputs by name for a key's inputs: computed in float64 and
  in float32."""
  arrays = {i.tensor.name: i.values(key) for i in inputs}
  with np.errstate(all="ignore"):
    return (
      problem.expected(case, arrays),
      problem.expected(case, arrays, np.float32),
    )


def draw(
  problem: spec.Problem,
  case: spec.Case,
  inputs: Sequence[timing_inputs.TimedInput],
) -> Checked:
  """A new key with its answer."""
  key = new()
  exact, single = answers(problem, case, inputs, key)
  bounds = {
    t.name: correctness.float32_bounds(
      exact[t.name], single[t.name], problem.tolerance_factor
    )
    for t in problem.outputs
    if t.dtype == "float32"
  }
  return Checked(key, exact, single, bounds)
