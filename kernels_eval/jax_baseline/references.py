"""References of problems as jitted functions of stored arrays.

Most are the problem's own, with `jax.numpy` for `xp`. Those that NumPy needs a
loop or a method of its own for are written here as one would in JAX. Products
and convolutions are in full float32 ("highest"), since TF32 is wrong by the
tolerance that candidates are held to. Arithmetic on half and bfloat16 is in
float32, as candidates' has to be.
"""

import contextlib
import inspect
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from kernels_eval import correctness, dtypes
from kernels_eval.problems import spec
from kernels_eval.schema import Mismatch

_WIDE = ("float64", "int64")


def _half_matmul(a, b):
  return jnp.matmul(a, b, preferred_element_type=jnp.float32)


def _conv2d_3x3(x, weight):
  return jax.lax.conv_general_dilated(x[None], weight, (1, 1), "SAME")[0]


def _row_cummax(x):
  return jax.lax.cummax(x, axis=1)


def _segmented_cumsum(x, start):
  def join(before, after):
    total, begins = before
    more, begins_anew = after
    return jnp.where(begins_anew, more, total + more), begins | begins_anew

  return jax.lax.associative_scan(join, (x, start != 0), axis=1)[0]


def _linear_recurrence(x, decay):
  def join(before, after):
    factor, state = before
    next_factor, added = after
    return factor * next_factor, next_factor * state + added

  return jax.lax.associative_scan(join, (decay, x), axis=0)[1]


def _scatter_add(x, index, bins):
  return jnp.zeros((bins, x.shape[1]), x.dtype).at[index].add(x)


def _histogram(x, bins):
  # A negative index would count from the end.
  bin_or_none = jnp.where(x < 0, bins, x)
  return jnp.zeros(bins, jnp.int32).at[bin_or_none].add(1, mode="drop")


# They take stored arrays, scalars and dimensions by name.
_IN_JAX: dict[str, Callable[..., jax.Array]] = {
  "conv2d_3x3": _conv2d_3x3,
  "half_matmul": _half_matmul,
  "histogram": _histogram,
  "linear_recurrence": _linear_recurrence,
  "row_cummax": _row_cummax,
  "scatter_add": _scatter_add,
  "segmented_cumsum": _segmented_cumsum,
}


def _element_type(dtype):
  return jnp.bfloat16 if dtype == "bfloat16" else dtypes.DTYPES[dtype].storage


def _widened(array):
  """Float32 for half and bfloat16; everything else as it is."""
  if array.dtype in (jnp.float16, jnp.bfloat16):
    return array.astype(jnp.float32)
  return array


def typed(tensor: spec.Tensor, stored: np.ndarray) -> np.ndarray:
  """A stored array with the element type that JAX knows it by."""
  return stored.view(_element_type(tensor.dtype))


@contextlib.contextmanager
def arithmetic(problem: spec.Problem):
  """JAX's settings for a problem: full precision, NumPy's broadcasting, and 64
  bits where a tensor has them (elsewhere they would turn whole numbers times a
  constant into float64)."""
  tensors = (*problem.inputs, *problem.outputs)
  with (
    jax.enable_x64(any(t.dtype in _WIDE for t in tensors)),
    jax.default_matmul_precision("highest"),
    jax.numpy_rank_promotion("allow"),
  ):
    yield


def jitted(
  problem: spec.Problem, case: spec.Case
) -> Callable[[Mapping[str, jax.Array]], tuple[jax.Array, ...]]:
  """The reference of one case, to be called within `arithmetic`.

  Args:
    problem: whose reference it is.
    case: dimensions, which are constants of the program, and scalars, which
      are not, as they are none for a candidate.

  Returns:
    Inputs by name (as from `typed`) -> outputs, in their stored types.
  """
  function = _IN_JAX.get(problem.name, problem.reference)
  wanted = inspect.signature(function).parameters

  @jax.jit
  def compute(arrays, scalars):
    if problem.name not in _IN_JAX:
      arrays = {name: _widened(a) for name, a in arrays.items()}
    values = {"xp": jnp, **case.dims, **scalars, **arrays}
    results = function(**{name: values[name] for name in wanted})
    if not isinstance(results, tuple):
      results = (results,)
    return tuple(
      jnp.broadcast_to(
        result.astype(_element_type(tensor.dtype)), tensor.shape_for(case.dims)
      )
      for tensor, result in zip(problem.outputs, results, strict=True)
    )

  scalars = {name: float(np.float32(v)) for name, v in case.scalars.items()}
  return lambda arrays: compute(arrays, scalars)


def find_mismatch(
  problem: spec.Problem, case: spec.Case, seed: int
) -> Mismatch | None:
  """Where JAX's answer is not right by the measure for candidates, or None."""
  stored = problem.make_inputs(case, seed)
  with np.errstate(all="ignore"):
    exact = problem.expected(case, stored)
    single = problem.expected(case, stored, np.float32)
  with arithmetic(problem):
    arrays = {t.name: typed(t, stored[t.name]) for t in problem.inputs}
    outputs = jitted(problem, case)(arrays)
  for tensor, output in zip(problem.outputs, outputs, strict=True):
    mismatch = correctness.compare(
      tensor.name,
      np.asarray(output).view(dtypes.DTYPES[tensor.dtype].storage),
      exact[tensor.name],
      single[tensor.name],
      tensor.dtype,
      factor=problem.tolerance_factor,
    )
    if mismatch is not None:
      return mismatch
  return None
