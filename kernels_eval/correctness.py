"""Compares a kernel's output with its reference.

A value is right when

    |got - expected| <= relative * |expected| + scaled * rms(expected)
                        + 16 * |reference in float32 - reference in float64|

and the RMS of all errors is at most `rms` times the RMS of the reference (plus
the same float32 term). All three numbers belong to the output's dtype. Nothing
is absolute: zeros do not pass because the outputs are small. The last term is
what the problem's own arithmetic loses in single precision, so that long sums
and cancellation do not fail an honest kernel; float64 outputs do without it.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernels_eval import dtypes
from kernels_eval.schema import ERROR_EDGES, Mismatch

_FLOAT32_SLACK = 16.0


@dataclasses.dataclass(frozen=True)
class Tolerance:
  """Bounds for one dtype; the formula stands at the top of the file."""

  relative: float
  scaled: float
  rms: float


# float32: tighter than one rounding to half or TF32 (2.8e-4 RMS), so that a
# silent loss of precision fails. float16 and bfloat16: a few roundings.
TOLERANCES = {
  "float64": Tolerance(1e-9, 1e-11, 1e-10),
  "float32": Tolerance(1e-4, 2e-5, 4e-5),
  "float16": Tolerance(4e-3, 1e-3, 1.2e-3),
  "bfloat16": Tolerance(3e-2, 8e-3, 9e-3),
}


def _rms(x):
  return float(np.sqrt(np.mean(np.square(x)))) if x.size else 0.0


class Bounds(NamedTuple):
  """What float32 outputs are right, for a first look that costs little. Rather
  too narrow than too wide: what is not within is for `compare` to judge."""

  low: np.ndarray
  high: np.ndarray
  middle: np.ndarray
  per_rms: np.float32  # one by the largest RMS error

  def hold(self, got: np.ndarray) -> bool:
    """Whether `got` (float32) is right beyond doubt."""
    if not ((got >= self.low) & (got <= self.high)).all():  # NaN is neither
      return False
    # As a share of what is allowed: squares of small numbers are 0 in float32.
    with np.errstate(over="ignore", invalid="ignore"):
      share = ((got - self.middle) * self.per_rms).reshape(-1)
      return float(np.dot(share, share)) <= 0.5 * share.size


def float32_bounds(
  expected: np.ndarray, expected_float32: np.ndarray, factor: float
) -> Bounds:
  """The bounds that `compare` applies, in float32."""
  allowed, rms_allowed = _allowed(expected, expected_float32, "float32", factor)
  with np.errstate(over="ignore", divide="ignore"):
    return Bounds(
      np.nextafter((expected - allowed).astype(np.float32), np.float32(np.inf)),
      np.nextafter(
        (expected + allowed).astype(np.float32), np.float32(-np.inf)
      ),
      expected.astype(np.float32),
      np.float32(np.float64(1.0) / rms_allowed),
    )


def _allowed(expected, expected_float32, dtype_name, factor):
  """Largest error of each element, and largest RMS error."""
  bound = TOLERANCES[dtype_name]
  own = np.abs(expected_float32 - expected)
  if dtype_name == "float64":
    own = np.zeros_like(own)  # else single precision would pass as double
  rms = _rms(expected)
  allowed = _FLOAT32_SLACK * own + factor * (
    bound.relative * np.abs(expected) + bound.scaled * rms
  )
  return allowed, _FLOAT32_SLACK * _rms(own) + factor * bound.rms * rms


class Nearness(NamedTuple):
  """How near two right outputs of the same inputs are to each other, whatever
  the inputs are: but for a share `far_elements` by gap + share * |one of them|,
  and in RMS by rms + rms_share * its RMS."""

  far_elements: float
  gap: float
  share: float
  rms: float
  rms_share: float


# Each of two right outputs may have all of an allowed error; the rest is for
# inputs that are less kind than those that `nearness` knows.
_BOTH, _BOTH_RMS = 4.0, 3.0
# Elements that may be worse conditioned than the rest; whole numbers have only
# those between which rounding decides.
_FAR_ELEMENTS, _FAR_NUMBERS = 0.01, 1e-4


def _some(x):
  """Elements from all of it, about a million."""
  return x.reshape(-1)[:: x.size // 2**20 | 1]


def nearness(
  references: Sequence[tuple[np.ndarray, np.ndarray]],
  dtype_name: str,
  factor: float,
) -> Nearness:
  """Bounds for the same output with any inputs of the same kind.

  Args:
    references: of one or several inputs, in float64 and in float32 arithmetic;
      several where an output is too small to tell what its errors may be.
    dtype_name: a key of `dtypes.DTYPES`; whole numbers have to be the same.
    factor: as in `compare`.

  Raises:
    ValueError: a reference is no finite number somewhere, which bounds nothing.
  """
  if not dtypes.DTYPES[dtype_name].is_float:
    return Nearness(_FAR_NUMBERS, 0.0, 0.0, 0.0, 0.0)
  bound = TOLERANCES[dtype_name]
  usual, own_rms, rms = 0.0, 0.0, 0.0
  for expected, single in references:
    if not expected.size:
      continue
    expected, single = (_some(x) for x in (expected, single))
    own = np.abs(single - expected)
    if dtype_name == "float64":
      own = np.zeros_like(own)
    if not np.isfinite(own).all():
      raise ValueError("the reference is no finite number somewhere")
    usual = max(usual, float(np.quantile(own, 1 - _FAR_ELEMENTS / 2)))
    own_rms, rms = max(own_rms, _rms(own)), max(rms, _rms(expected))
  return Nearness(
    far_elements=_FAR_ELEMENTS,
    gap=_BOTH * (_FLOAT32_SLACK * usual + factor * bound.scaled * rms),
    share=_BOTH * factor * bound.relative,
    rms=_BOTH_RMS * _FLOAT32_SLACK * own_rms,
    rms_share=_BOTH_RMS * factor * bound.rms,
  )


def error_histogram(
  error: np.ndarray, expected: np.ndarray, finite: np.ndarray
) -> tuple[int, ...]:
  """Counts of elements by relative error; bins as in `Mismatch`.

  Args:
    error: |got - expected|, float64.
    expected: reference in float64, the same shape.
    finite: where `got` is finite, the same shape.
  """
  # What is beyond float64 is beyond every edge as well.
  with np.errstate(over="ignore", invalid="ignore"):
    scale = np.where(expected == 0, _rms(expected) or 1.0, np.abs(expected))
    relative = (error / scale)[finite]
  bins = np.searchsorted(ERROR_EDGES, relative, side="left")
  counts = np.bincount(bins, minlength=len(ERROR_EDGES) + 1)
  return (*(int(n) for n in counts), int((~finite).sum()))


# Outputs hold anything: signalling NaNs, numbers whose square is infinite.
@np.errstate(over="ignore", invalid="ignore")
def compare(
  name: str,
  got_stored: np.ndarray,
  expected: np.ndarray,
  expected_float32: np.ndarray,
  dtype_name: str,
  *,
  factor: float = 1.0,
) -> Mismatch | None:
  """Judges one output buffer.

  Args:
    name: of the output.
    got_stored: what the kernel wrote, in the dtype's storage form.
    expected: reference in float64, the same shape.
    expected_float32: reference computed in float32 arithmetic, as float64.
    dtype_name: a key of `dtypes.DTYPES`.
    factor: multiplies the tolerance of problems that are less exact by nature.

  Returns:
    None if the output is right, else how it is wrong.

  Raises:
    ValueError: the shapes differ, so that nothing is ever broadcast.
  """
  if got_stored.shape != expected.shape:
    raise ValueError(
      f"{name} has shape {got_stored.shape}; the reference has {expected.shape}"
    )
  dtype = dtypes.DTYPES[dtype_name]
  got = dtype.decode(got_stored)
  if not dtype.is_float:
    wrong = got_stored.astype(np.int64) != np.rint(expected).astype(np.int64)
    finite = np.ones(got.shape, bool)
    rms_wrong = False
    error = np.abs(got - expected)
  else:
    finite = np.isfinite(got)
    error = np.abs(got - expected)
    allowed, rms_allowed = _allowed(
      expected, expected_float32, dtype_name, factor
    )
    wrong = ~finite | (error > allowed)
    rms_wrong = bool(finite.all()) and _rms(error) > rms_allowed
  num_wrong = int(wrong.sum())
  if not num_wrong and not rms_wrong:
    return None
  if num_wrong:
    first = int(np.argmax(wrong.reshape(-1)))
  else:  # every element is near, but all of them drift
    first = int(np.argmax(error.reshape(-1)))
    num_wrong = int((error > 0).sum())
  index = np.unravel_index(first, got.shape) if got.shape else ()
  shown = np.where(finite, error, 0.0)
  unwritten = (
    got_stored.reshape(-1).view(np.uint8).reshape(-1, dtype.item_bytes)
  )
  reference_rms = _rms(expected)
  return Mismatch(
    output=name,
    shape=tuple(int(n) for n in got.shape),
    first_wrong_index=tuple(int(i) for i in index),
    expected=float(expected.reshape(-1)[first]),
    got=float(got.reshape(-1)[first]),
    num_wrong=num_wrong,
    num_elements=int(got.size),
    max_abs_error=float(shown.max()) if shown.size else 0.0,
    relative_rms_error=_rms(shown) / reference_rms if reference_rms else 0.0,
    num_not_finite=int((~finite).sum()),
    num_unwritten=int((unwritten == dtype.poison_byte).all(axis=1).sum()),
    error_histogram=error_histogram(error, expected, finite),
  )
