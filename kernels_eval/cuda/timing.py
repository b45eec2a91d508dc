"""How long a correct candidate takes on the GPU, beside the canonical kernel.

Candidate and baseline run in turn, each call with input values of its own,
outputs poisoned, what kernels asked the cache to keep forgotten and the rest
pushed out; one pair of events a call. One call, which the candidate cannot
tell from the others, is checked like a case of correctness; in each call what
it writes has to be near what the baseline writes, so that no time counts in
which it did not work, or worked with less precision. A time below what memory
and tensor cores need (`floor.py`) is no time. A second baseline, the reference
as jitted JAX, is timed by a process of its own (`jax_reference.py`).
"""

import collections
import dataclasses
import math
import os
import secrets
import statistics
from collections.abc import Sequence

import numpy as np

from kernels_eval import candidate as candidate_lib
from kernels_eval import correctness, dtypes
from kernels_eval.candidate import Candidate
from kernels_eval.cpu import protocol
from kernels_eval.cpu import run_cases as run_cases_lib
from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import (
  build,
  connection,
  executor,
  image,
  jax_reference,
  jobs,
  timed_keys,
  timed_outputs,
)
from kernels_eval.cuda import floor as floor_lib
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec, timing_inputs, timing_sizes
from kernels_eval.schema import Status, Timing, describe_mismatch

NUM_CALLS = 20
NUM_WARM = 3
_MORE_INPUTS = 6  # where one output does not tell what errors there may be
# Measured and datasheet figures differ by some percent in either direction.
_FLOOR_SLACK = 0.8
_MAX_CACHED = 2
# What a candidate's scratch may take at the timed size: several copies of all
# tensors, or as much as the partial results of small ones can need.
_SCRATCH_SHARE = 4
_SCRATCH_BYTES = 256 * 2**20
# Of an event's clock (the driver's manual): nothing is known to be shorter.
_RESOLUTION_MS = 5e-4


@dataclasses.dataclass
class _Prepared:
  case: spec.Case
  inputs: tuple[timing_inputs.TimedInput, ...]
  checked: timed_keys.Checked
  nearness: dict[str, correctness.Nearness]  # of outputs
  baseline: build.Artefact
  baseline_plan: Candidate
  num_uses: int = 0  # of `checked`


class Timer:
  """Times candidates of an executor; keeps inputs and references of the last
  problems."""

  def __init__(
    self,
    owner: executor.CudaExecutor,
    seed: int,
    wall_s: float,
    jax: jax_reference.JaxReference | None = None,
  ):
    """Args: the executor, the judge's seed, the deadline of all calls of one
    candidate, what times the JAX baseline (None: nobody does)."""
    self._executor = owner
    self._jax = jax
    self._wall_s = wall_s
    self._seed = seed
    self._prepared: collections.OrderedDict[tuple, _Prepared | None] = (
      collections.OrderedDict()
    )

  def time(
    self,
    artefact: build.Artefact,
    plan: Candidate,
    problem: spec.Problem,
    dims: dict[str, int] | None = None,
  ) -> Timing | None:
    """Times a candidate that was right on every case.

    Args:
      artefact: compiled.
      plan: its launches and scratch.
      problem: what it solves.
      dims: of the timed case; None means the problem's own.

    Returns:
      The record; None where answers are the same for all inputs of that size.

    Raises:
      Stop: wrong, too fast to be true, or stopped at this size; or its scratch
        takes too much there, before anything is run.
      HostError: a fault of the machine.
    """
    dims = dims or timing_sizes.dims_for(problem)
    prepared = self._prepare(problem, dims)
    if prepared is None:
      return None
    report, checked_call, outputs = self._measure(
      artefact, plan, problem, prepared
    )
    for tensor in problem.outputs:
      bounds = prepared.checked.bounds.get(tensor.name)
      if bounds is not None and bounds.hold(outputs[tensor.name]):
        continue
      mismatch = correctness.compare(
        tensor.name,
        outputs[tensor.name],
        prepared.checked.exact[tensor.name],
        prepared.checked.single[tensor.name],
        tensor.dtype,
        factor=problem.tolerance_factor,
      )
      if mismatch is not None:
        raise Stop(
          Status.WRONG_ANSWER,
          f"in a timed call: {describe_mismatch(mismatch)}",
          case=prepared.case,
          mismatch=mismatch,
        )
    timed_outputs.check(
      report, checked_call, problem, prepared.case, prepared.nearness
    )
    mine, baseline = report.times_ms
    floor = floor_lib.of(problem, prepared.case.dims, self._executor.device)
    candidate_ms = max(statistics.median(mine), _RESOLUTION_MS)
    if floor.ms is not None and candidate_ms < _FLOOR_SLACK * floor.ms:
      raise Stop(
        Status.INTEGRITY_VIOLATION,
        f"{candidate_ms:.4f} ms is less than the {floor.ms:.4f} ms that "
        f"{floor_lib.NEEDS[floor.note]}",
        case=prepared.case,
      )
    jax = jax_reference.Report(reason="not asked for")
    if self._jax is not None:
      jax = self._jax.measure(problem.name, dims)
    return Timing(
      case=str(prepared.case),
      candidate_ms=candidate_ms,
      reference_ms=max(statistics.median(baseline), _RESOLUTION_MS),
      candidate_spread=spread(mine),
      reference_spread=spread(baseline),
      num_calls=len(mine),
      floor_ms=floor.ms,
      floor_note=floor.note,
      baseline="canonical",
      device=self._executor.device.device,
      device_state=report.device_state,
      jax_reference_ms=jax.median_ms,
      jax_reference_spread=spread(jax.times_ms) if jax.times_ms else None,
      jax_note=jax.reason or f"JAX {jax.version}",
    )

  def _prepare(self, problem, dims):
    """None where there is nothing to time."""
    name = (problem.name, *dims.items())
    if name not in self._prepared:
      self._prepared[name] = self._make(problem, dims)
      if len(self._prepared) > _MAX_CACHED:
        self._prepared.popitem(last=False)
    self._prepared.move_to_end(name)
    prepared = self._prepared[name]
    if prepared is None:
      return None
    if prepared.num_uses >= timed_keys.MAX_USES:
      prepared.checked = timed_keys.draw(
        problem, prepared.case, prepared.inputs
      )
      prepared.num_uses = 0
    prepared.num_uses += 1
    return prepared

  def _make(self, problem, dims):
    case = timing_inputs.case_for(problem, dims)
    if case is None:
      return None
    rng = spec.generator(f"{self._seed}/{problem.name}/timing")
    made = timing_inputs.make(problem, case, rng)
    checked = timed_keys.draw(problem, case, made)
    known = (checked.exact, checked.single)
    nearness = self._nearness(problem, case, made, known)
    plan = candidate_lib.parse(problem.canonical, problem)
    with self._executor.folder() as folder:
      baseline = self._executor.compile(plan, problem, folder)
    return _Prepared(case, made, checked, nearness, baseline, plan)

  def _nearness(self, problem, case, made, known):
    references = [known]
    sizes = [math.prod(t.shape_for(case.dims)) for t in problem.outputs]
    for _ in range(
      _MORE_INPUTS if min(sizes) < timed_outputs.TELLING_ITEMS else 0
    ):
      key = timed_keys.new()
      references.append(timed_keys.answers(problem, case, made, key))
    try:
      return {
        t.name: correctness.nearness(
          [(exact[t.name], single[t.name]) for exact, single in references],
          t.dtype,
          problem.tolerance_factor,
        )
        for t in problem.outputs
      }
    except ValueError as error:
      raise HostError(f"{problem.name} at its timed size: {error}") from None

  def _measure(self, artefact, plan, problem, prepared):
    case = prepared.case
    # Contents are made on the device.
    arrays = {
      t.name: np.broadcast_to(
        dtypes.DTYPES[t.dtype].storage.type(0), t.shape_for(case.dims)
      )
      for t in problem.inputs
    }
    subjects = []
    for a, p in (
      (artefact, plan),
      (prepared.baseline, prepared.baseline_plan),
    ):
      (run_case,) = run_cases_lib.make(
        a.entries,
        p,
        problem,
        [(case, arrays)],
        max_buffer_bytes=max_buffer_bytes(problem, case.dims),
        max_shared_bytes=self._executor.device.shared_bytes,
      )
      subjects.append((a, run_case))
    # Inputs and outputs come first in both, so that they share their places.
    layouts = [image.lay_out([c]) for _, c in subjects]
    parts, position = [], 0

    def place(data):
      nonlocal position
      start = position
      padding = -len(data) % 256
      parts.extend([data, bytes(padding)])
      position += len(data) + padding
      return start

    programs = [a.program for a, _ in subjects]
    starts = [place(program) for program in programs]
    table = []
    for i, item in enumerate(prepared.inputs):
      raw = item.base.view(np.uint8)
      table.append(
        jobs.Input(
          image_offset=layouts[0].offsets[0][i],
          num_items=int(np.prod(item.shape, dtype=np.int64)),
          item_bytes=item.base.itemsize,
          base_offset=place(memoryview(raw)),
          base_items=item.base.size,
        )
      )
    outputs, size = [], position
    offsets = layouts[0].offsets[0]
    written = (
      (buffer, offset)
      for buffer, offset in zip(subjects[0][1].buffers, offsets, strict=True)
      if buffer.role == protocol.OUTPUT
    )
    for tensor, (buffer, offset) in zip(problem.outputs, written, strict=True):
      dtype = dtypes.DTYPES[tensor.dtype]
      outputs.append(
        jobs.Output(
          image_offset=offset,
          mapping_offset=size,
          num_bytes=buffer.num_bytes,
          num_items=buffer.num_bytes // dtype.item_bytes,
          dtype=dtype.name,
          poison_byte=dtype.poison_byte,
          gap=prepared.nearness[tensor.name].gap,
          share=prepared.nearness[tensor.name].share,
        )
      )
      size += -(-buffer.num_bytes // 256) * 256
    num_calls = NUM_WARM + NUM_CALLS
    keys = [timed_keys.new() for _ in range(num_calls)]
    checked = NUM_WARM + secrets.randbelow(NUM_CALLS)
    keys[checked] = prepared.checked.key
    job = jobs.Timing(
      subjects=tuple(
        jobs.Subject(
          start,
          len(program),
          tuple(
            executor.make_launch(k, a.places[k.entry], layout.offsets[0])
            for k in run_case.launches
          ),
        )
        for start, program, (a, run_case), layout in zip(
          starts, programs, subjects, layouts, strict=True
        )
      ),
      image_bytes=max(layout.num_bytes for layout in layouts),
      inputs=tuple(table),
      keys=tuple(keys),
      num_warm=NUM_WARM,
      checked=checked,
      outputs=tuple(outputs),
      guards=_guards(subjects[0][1].buffers, offsets, layouts[0].num_bytes),
      wall_s=self._wall_s,
    )
    descriptor = connection.make_mapping(parts, max(size, 1))
    try:
      report = self._executor.ask(job, descriptor)
      executor.check_report(report, [(case, arrays)], self._wall_s)
      memory = connection.view(descriptor, max(size, 1))
      stored = {}
      for tensor, output in zip(problem.outputs, outputs, strict=True):
        start = output.mapping_offset
        stored[tensor.name] = (
          memory[start : start + output.num_bytes]
          .view(dtypes.DTYPES[tensor.dtype].storage)
          .reshape(tensor.shape_for(case.dims))
        )
      return report, checked - NUM_WARM, stored
    finally:
      os.close(descriptor)


def _guards(buffers, offsets, image_bytes):
  """(offset, bytes) of what is none of the buffers, in their order."""
  ends = [o + b.num_bytes for b, o in zip(buffers, offsets, strict=True)]
  starts = zip([0, *ends], [*offsets, image_bytes], strict=True)
  return tuple((a, b - a) for a, b in starts if b > a)


def max_buffer_bytes(problem: spec.Problem, dims: dict[str, int]) -> int:
  """What inputs, outputs and scratch may take together at a timed size."""
  tensors = sum(
    dtypes.DTYPES[t.dtype].item_bytes * math.prod(t.shape_for(dims))
    for t in (*problem.inputs, *problem.outputs)
  )
  return (1 + _SCRATCH_SHARE) * tensors + _SCRATCH_BYTES


def spread(times: Sequence[float]) -> float:
  """Distance of the quartiles of some milliseconds over their median."""
  low, middle, high = statistics.quantiles(times, n=4)
  return (high - low) / max(middle, _RESOLUTION_MS)
