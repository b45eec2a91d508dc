"""What a Numba kernel is given: parameters, their types, their layout.

The one place that says how buffers become Numba's arguments:

  - a tensor is a C-contiguous array with the tensor's own number of dimensions
    and shape, so that `x[row, col]` works and `x.shape` is known;
  - a scalar is float32, a dimension int32, as in CUDA C++;
  - bfloat16, which has no array type in Numba, comes as uint16 arrays that hold
    the bits: `libdevice.int_as_float(int32(x[i]) << 16)` is the value.

In a compiled kernel an array takes 5 + 2 * ndim parameters: meminfo, parent
(two pointers, null here), nitems, itemsize, data, shape, strides (in bytes).
"""

import dataclasses
from collections.abc import Sequence

from kernels_eval.problems import spec

_STORED_AS = {"bfloat16": "uint16"}


@dataclasses.dataclass(frozen=True)
class Parameter:
  """One parameter of the Python function. `ndim` is None for a scalar."""

  dtype: str
  ndim: int | None

  def __str__(self):
    if self.ndim is None:
      return self.dtype
    return f"{self.dtype}[{', '.join([':'] * (self.ndim - 1) + ['::1'])}]"


def parameter(
  name: str, problem: spec.Problem, scratch: Sequence[spec.Tensor]
) -> Parameter:
  """The type of a launch's argument."""
  for tensor in (*problem.inputs, *problem.outputs, *scratch):
    if tensor.name == name:
      dtype = _STORED_AS.get(tensor.dtype, tensor.dtype)
      return Parameter(dtype, len(tensor.shape))
  if any(s.name == name for s in problem.scalars):
    return Parameter("float32", None)
  return Parameter("int32", None)


def declaration(problem: spec.Problem) -> str:
  """The kernel's signature, as Python with a comment on each type."""
  tensors = (*problem.inputs, *problem.outputs)
  names = [t.name for t in tensors]
  names += [s.name for s in problem.scalars] + list(problem.dims)
  lines = ["@cuda.jit", f"def {problem.kernel}({', '.join(names)}):"]
  for tensor in tensors:
    dtype = _STORED_AS.get(tensor.dtype, tensor.dtype)
    note = " (bits)" if dtype != tensor.dtype else ""
    lines.append(
      f"  # {tensor.name}: {dtype} array [{', '.join(tensor.shape)}]{note}"
    )
  if problem.scalars:
    scalars = ", ".join(s.name for s in problem.scalars)
    lines.append(f"  # {scalars}: float32")
  lines.append(f"  # {', '.join(problem.dims)}: int32")
  return "\n".join(lines)


def array_words(
  address: int, shape: Sequence[int], item_bytes: int
) -> tuple[int, ...]:
  """The 64-bit words that stand for one C-contiguous array.

  Args:
    address: of its first element, on the device.
    shape: elements along each axis.
    item_bytes: of one element.

  Returns:
    [5 + 2 * ndim] meminfo, parent, nitems, itemsize, data, shape, strides.
  """
  strides, stride = [], item_bytes
  for n in reversed(shape):
    strides.append(stride)
    stride *= n
  num_items = 1
  for n in shape:
    num_items *= n
  return (0, 0, num_items, item_bytes, address, *shape, *reversed(strides))
