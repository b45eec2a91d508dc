"""From a candidate's plan and a problem's cases to buffers and launches with
numbers, for every executor."""

import struct
from collections.abc import Sequence

import numpy as np

from kernels_eval import dtypes, expressions
from kernels_eval.candidate import NUMBA, Candidate
from kernels_eval.cpu import protocol
from kernels_eval.cpu.limits import plan_launch
from kernels_eval.cpu.numba import build as numba_build
from kernels_eval.launch_plan import Launch
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec
from kernels_eval.schema import Status


def make(
  entries: Sequence[Launch],
  candidate: Candidate,
  problem: spec.Problem,
  cases: Sequence[tuple[spec.Case, dict[str, np.ndarray]]],
  *,
  max_buffer_bytes: int,
  max_shared_bytes: int,
) -> list[protocol.RunCase]:
  """One RunCase for each case.

  Args:
    entries: of the compiled artefact, in their order.
    candidate: its launch plan and scratch.
    problem: parameters and shapes.
    cases: with stored input arrays.
    max_buffer_bytes: of all cases together.
    max_shared_bytes: dynamic shared memory of a block.

  Raises:
    Stop: CONTRACT_VIOLATION or LAUNCH_ERROR.
  """
  made = [
    _make_case(
      entries,
      candidate,
      problem,
      case,
      arrays,
      max_buffer_bytes,
      max_shared_bytes,
    )
    for case, arrays in cases
  ]
  total = sum(b.num_bytes for c in made for b in c.buffers)
  if total > max_buffer_bytes:
    raise Stop(
      Status.CONTRACT_VIOLATION,
      f"buffers and scratch take {total} bytes over all cases; at most "
      f"{max_buffer_bytes}",
    )
  return made


def _make_case(
  entries, candidate, problem, case, arrays, max_bytes, max_shared_bytes
):
  buffers, place, shapes = [], {}, []
  for role, tensors in (
    (protocol.INPUT, problem.inputs),
    (protocol.OUTPUT, problem.outputs),
    (protocol.SCRATCH, candidate.scratch),
  ):
    for tensor in tensors:
      try:
        shape = tensor.shape_for(case.dims)
      except expressions.ExpressionError as error:
        raise Stop(
          Status.CONTRACT_VIOLATION, f"scratch `{tensor.name}`: {error}"
        ) from None
      if any(n < 0 for n in shape):
        raise Stop(
          Status.CONTRACT_VIOLATION,
          f"scratch `{tensor.name}` has a negative size for {case}",
        )
      dtype = dtypes.DTYPES[tensor.dtype]
      num_bytes = dtype.item_bytes
      for n in shape:
        num_bytes *= n
      if num_bytes > max_bytes:
        raise Stop(
          Status.CONTRACT_VIOLATION,
          f"scratch `{tensor.name}` takes {num_bytes} bytes for {case}; at "
          f"most {max_bytes}",
        )
      place[tensor.name] = len(buffers)
      shapes.append(shape)
      buffers.append(
        protocol.RunBuffer(
          tensor.name,
          role,
          num_bytes,
          dtype.item_bytes,
          arrays.get(tensor.name) if role == protocol.INPUT else None,
          dtype.poison_byte
          if role == protocol.OUTPUT
          else protocol.SCRATCH_BYTE,
        )
      )
  keys = [(e.kernel, e.template, e.arguments) for e in entries]
  launches = []
  for launch in candidate.launches:
    entry = keys.index((launch.kernel, launch.template, launch.arguments))
    arguments = []
    for name in launch.arguments:
      i = place.get(name)
      if i is None:
        arguments.append(("bits", _scalar_bits(name, case)))
      elif candidate.language == NUMBA:
        arguments += numba_build.run_arguments(
          i, shapes[i], buffers[i].item_bytes
        )
      else:
        arguments.append(("buffer", i))
    launches.append(
      plan_launch(launch, entry, case.dims, arguments, max_shared_bytes)
    )
  return protocol.RunCase(tuple(buffers), tuple(launches))


def _scalar_bits(name, case):
  if name in case.scalars:
    return struct.unpack("<I", struct.pack("<f", case.scalars[name]))[0]
  return case.dims[name] & 0xFFFFFFFF
