"""The least time that a right kernel takes on a device: below, it did not work.

The larger of two: the memory brings the inputs (`timing_sizes`), the tensor
cores multiply (`problems/flops.py`), for a candidate may use them wherever its
answers stay right. How precise they have to be is what limits the rate, since
inputs of timed calls are normally distributed, with all bits of their type:

- float16 answers may come from one product of halves. Bytes and float8 multiply
  twice as fast, but such a number does not fit in one of them within tolerance;
  two of them each make three products, which takes longer.
- float32 answers must be nearer than one rounding of the inputs to half or TF32
  (`correctness.TOLERANCES`). With both matrices split in two, three products of
  halves do, or four of bytes, which take as long as two of halves. Two are
  counted. TF32 is half as fast as float16, so three of its products take twice
  as long as those of halves.

So the floor is lower than what the best kernel takes, often by far; and a
kernel that answers without arithmetic is seen by its answers, not here.
"""

import dataclasses

from kernels_eval.cuda import jobs, peaks
from kernels_eval.problems import timing_sizes
from kernels_eval.problems.spec import Problem

MEMORY, ARITHMETIC = "memory", "arithmetic"
NEEDS = {
  MEMORY: "the memory needs to bring the inputs",
  ARITHMETIC: "the tensor cores need to multiply the matrices",
}
_SINGLE_PRODUCTS = 2


@dataclasses.dataclass(frozen=True)
class Floor:
  """Milliseconds, and which of the two bounds them; None, and why there is no
  floor."""

  ms: float | None
  note: str


def of(problem: Problem, dims: dict[str, int], device: jobs.Hello) -> Floor:
  """The floor of a problem at a size. A bound that the device does not tell
  enough for (no bandwidth of its driver's, no peak of ours) is left out."""
  bounds_s = {}
  if device.bandwidth_bytes_per_s > 0:
    read_bytes = timing_sizes.least_read_bytes(problem, dims)
    bounds_s[MEMORY] = read_bytes / device.bandwidth_bytes_per_s
  peak = peaks.HALF_FLOPS_PER_S.get(device.device)
  if peak is not None and problem.least_flops is not None:
    flops = problem.least_flops(**dims)
    bounds_s[ARITHMETIC] = _num_half_products(problem) * flops / peak
  if not bounds_s:
    return Floor(None, f"the driver gives no bandwidth of {device.device}")
  note = max(bounds_s, key=bounds_s.get)
  return Floor(1e3 * bounds_s[note], note)


def _num_half_products(problem):
  """Products of halves that one product of the problem takes, at least."""
  tensors = (*problem.inputs, *problem.outputs)
  is_single = all(t.dtype == "float32" for t in tensors)
  if is_single and problem.tolerance_factor <= 1:
    return _SINGLE_PRODUCTS
  return 1
