"""What a problem is: parameters, reference, cases, statement.

A kernel's parameters stand in one order: inputs, outputs, float scalars, then
the dimensions as `int`. Shapes and launch plans are expressions over the
dimensions (`expressions.py`).
"""

import dataclasses
import hashlib
import inspect
import pathlib
from collections.abc import Callable, Mapping

import numpy as np

from kernels_eval import dtypes, expressions
from kernels_eval.problems import inputs

_CANONICAL = pathlib.Path(__file__).parent / "cuda"
_NUMBA = pathlib.Path(__file__).parent / "numba"


def generator(key: str) -> np.random.Generator:
  """Random numbers that only this key leads to."""
  digest = hashlib.sha256(key.encode()).digest()
  return np.random.Generator(
    np.random.PCG64(int.from_bytes(digest[:16], "little"))
  )


@dataclasses.dataclass(frozen=True)
class Tensor:
  """A buffer. `fill(rng, shape, dims)` makes an input that no general
  distribution suits (indices, labels); it returns float64 values."""

  name: str
  shape: tuple[str, ...]
  dtype: str = "float32"
  fill: Callable[..., np.ndarray] | None = None

  def shape_for(self, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape for these dimensions."""
    return tuple(expressions.value_of(s, dims) for s in self.shape)


@dataclasses.dataclass(frozen=True)
class Scalar:
  """A `float` parameter. Its value changes from case to case, so that a
  candidate cannot write it down as a constant."""

  name: str
  values: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Case:
  """One test of a problem: dimensions, distribution, scalar values."""

  index: int
  dims: dict[str, int]
  distribution: str
  scalars: dict[str, float]

  def __str__(self):
    dims = ", ".join(f"{k}={v}" for k, v in self.dims.items())
    return f"{dims} ({self.distribution} inputs)"


@dataclasses.dataclass(frozen=True)
class Problem:
  """A family with its shapes. `reference` takes, by name, any of the inputs
  (float64 arrays), scalars and dimensions, and returns one array per output. It
  may take `xp` too: the module of array functions, NumPy for a verdict; with
  JAX's in its place it is the JAX baseline of timing (`jax_baseline.py`).
  `least_flops` takes all dimensions by name: arithmetic that no right kernel
  can do without, where it is more than some operations for each input element
  (`flops.py`)."""

  name: str
  level: int
  statement: str
  dims: tuple[str, ...]
  inputs: tuple[Tensor, ...]
  outputs: tuple[Tensor, ...]
  reference: Callable[..., np.ndarray | tuple[np.ndarray, ...]]
  launch: str
  shapes: tuple[dict[str, int], ...]
  scalars: tuple[Scalar, ...] = ()
  distributions: tuple[str, ...] = inputs.DEFAULT
  tolerance_factor: float = 1.0
  least_flops: Callable[..., float] | None = None
  canonical_source: str | None = None  # None: problems/cuda/<name>.cu
  numba_source: str | None = None  # None: problems/numba/<name>.py
  kernel_name: str | None = None  # None: the problem's name

  @property
  def signature(self) -> str:
    """The kernel's declaration, as CUDA C++."""
    parameters = [
      f"const {dtypes.DTYPES[t.dtype].cuda}* {t.name}" for t in self.inputs
    ]
    parameters += [
      f"{dtypes.DTYPES[t.dtype].cuda}* {t.name}" for t in self.outputs
    ]
    parameters += [f"float {s.name}" for s in self.scalars]
    parameters += [f"int {d}" for d in self.dims]
    return f"__global__ void {self.kernel}({', '.join(parameters)})"

  @property
  def kernel(self) -> str:
    """The name that the statement suggests; any other is as good."""
    return self.kernel_name or self.name

  @property
  def canonical(self) -> str:
    """A correct CUDA C++ solution."""
    if self.canonical_source is not None:
      return self.canonical_source
    return (_CANONICAL / f"{self.name}.cu").read_text()

  @property
  def numba_canonical(self) -> str:
    """A correct Numba-CUDA solution."""
    if self.numba_source is not None:
      return self.numba_source
    return (_NUMBA / f"{self.name}.py").read_text()

  @property
  def cases(self) -> tuple[Case, ...]:
    """Every shape and every distribution at least once; small ones first."""
    count = max(len(self.shapes), len(self.distributions))
    return tuple(
      Case(
        i,
        self.shapes[i % len(self.shapes)],
        self.distributions[i % len(self.distributions)],
        {s.name: s.values[i % len(s.values)] for s in self.scalars},
      )
      for i in range(count)
    )

  def make_inputs(self, case: Case, seed: int) -> dict[str, np.ndarray]:
    """Stored input arrays of one case, from the judge's seed."""
    arrays = {}
    for tensor in self.inputs:
      rng = generator(f"{seed}/{self.name}/{case.index}/{tensor.name}")
      shape = tensor.shape_for(case.dims)
      if tensor.fill is not None:
        values = tensor.fill(rng, shape, case.dims)
      else:
        values = inputs.DISTRIBUTIONS[case.distribution](rng, shape)
      arrays[tensor.name] = np.ascontiguousarray(
        dtypes.DTYPES[tensor.dtype].encode(values)
      )
    return arrays

  def expected(
    self,
    case: Case,
    arrays: Mapping[str, np.ndarray],
    precision: type = np.float64,
  ) -> dict[str, np.ndarray]:
    """Reference outputs for stored inputs, computed in `precision`."""
    values = {"xp": np, **case.dims}
    values |= {name: float(np.float32(v)) for name, v in case.scalars.items()}
    for tensor in self.inputs:
      dtype = dtypes.DTYPES[tensor.dtype]
      decoded = dtype.decode(arrays[tensor.name])
      values[tensor.name] = (
        decoded.astype(precision)
        if dtype.is_float
        else arrays[tensor.name].astype(np.int64)
      )
    wanted = inspect.signature(self.reference).parameters
    result = self.reference(**{name: values[name] for name in wanted})
    if not isinstance(result, tuple):
      result = (result,)
    return {
      tensor.name: np.broadcast_to(
        np.asarray(value, np.float64), tensor.shape_for(case.dims)
      )
      for tensor, value in zip(self.outputs, result, strict=True)
    }
