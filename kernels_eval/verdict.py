"""Inputs and references of a problem, and whether a run was right."""

import numpy as np

from kernels_eval import correctness, dtypes
from kernels_eval.cpu.executor import RunResult
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Status, describe_mismatch


class Prepared:
  """Inputs and references of one problem."""

  def __init__(self, problem: spec.Problem, seed: int):
    self.problem = problem
    self.cases = []
    for case in problem.cases:
      arrays = problem.make_inputs(case, seed)
      with np.errstate(all="ignore"):
        exact = problem.expected(case, arrays)
        single = problem.expected(case, arrays, np.float32)
      for name, values in exact.items():
        # In float32 too: what is infinite there would make any answer right.
        if not (np.isfinite(values).all() and np.isfinite(single[name]).all()):
          raise ValueError(
            f"the reference of {problem.name} is not finite: {name}, {case}"
          )
      self.cases.append((case, arrays, exact, single))


def check_result(result: RunResult, prepared: Prepared) -> None:
  """Compares inputs and outputs of every pass with what they have to be.

  Raises:
    Stop: INTEGRITY_VIOLATION or WRONG_ANSWER, at the first case.
  """
  first = result.passes[0]
  for buffers in result.passes:
    for i in range(len(prepared.cases)):
      repeats = buffers is not first and all(
        np.array_equal(first.outputs[i][name], contents)
        for name, contents in buffers.outputs[i].items()
      )
      _check_inputs(buffers.inputs[i], prepared, i)
      if not repeats:
        _check_outputs(buffers.outputs[i], prepared, i)


def _check_inputs(stored, prepared, i):
  case, arrays, _, _ = prepared.cases[i]
  for tensor in prepared.problem.inputs:
    before = arrays[tensor.name].reshape(-1).view(np.uint8)
    if not np.array_equal(stored[tensor.name], before):
      raise Stop(
        Status.INTEGRITY_VIOLATION,
        f"input `{tensor.name}` was modified",
        case=case,
      )


def _check_outputs(stored, prepared, i):
  case, _, exact, single = prepared.cases[i]
  problem = prepared.problem
  for tensor in problem.outputs:
    mismatch = correctness.compare(
      tensor.name,
      stored[tensor.name]
      .view(dtypes.DTYPES[tensor.dtype].storage)
      .reshape(tensor.shape_for(case.dims)),
      exact[tensor.name],
      single[tensor.name],
      tensor.dtype,
      factor=problem.tolerance_factor,
    )
    if mismatch is not None:
      raise Stop(
        Status.WRONG_ANSWER,
        describe_mismatch(mismatch),
        case=case,
        mismatch=mismatch,
      )
