"""The launcher's own kernels against NumPy, before anything is judged by them.

A mistake in them would pass for one of every candidate.
"""

import numpy as np

from kernels_eval import dtypes
from kernels_eval.cuda import module as module_lib
from kernels_eval.cuda.driver import call, cuda
from kernels_eval.problems import timing_inputs

_ITEMS, _TABLE, _KEY = 70_001, 4096, 0x1234_5678_9ABC_DEF1
_GAP, _SHARE = 0.5, 0.01


def run(launcher) -> None:
  """Tries them on `launcher`'s device.

  Raises:
    RuntimeError: one does something else.
    DriverError: the device fails.
  """
  device = _Device(launcher)
  rng = np.random.default_rng(0)
  for dtype in dtypes.DTYPES.values():
    expected = dtype.encode(rng.uniform(0, 100, _ITEMS))
    got = dtype.encode(dtype.decode(expected) + rng.uniform(-1, 1, _ITEMS))
    e, g = dtype.decode(expected), dtype.decode(got)
    gaps = np.abs(g - e)
    want = (
      int((gaps > _GAP + _SHARE * np.abs(e)).sum()),
      float((gaps**2).sum()),
      float((e**2).sum()),
    )
    numbers = (_ITEMS, module_lib.bits(_GAP), module_lib.bits(_SHARE))
    found = device.sums(f"ke_compare_{dtype.name}", [got, expected], numbers, 3)
    _check(dtype.name, found[:1].view(np.uint64)[0] == want[0])
    _check(dtype.name, np.allclose(found[1:], want[1:], rtol=1e-9))
    table = expected[:_TABLE]
    drawn = device.draw(table, dtype.item_bytes)
    places = timing_inputs.places(_ITEMS, _KEY, 3, _TABLE)
    _check(f"drawing of {dtype.name}", np.array_equal(drawn, table[places]))
  data = rng.integers(0, 256, _ITEMS).astype(np.uint8)
  found = device.sums("ke_digest", [data], (data.size,), 1).view(np.uint64)[0]
  _check("the checksum", found == digest(data))
  found = device.sums("ke_count_changed", [data], (data.size, 7), 1)
  _check("counting", found.view(np.uint64)[0] == (data != 7).sum())


def digest(data: np.ndarray) -> int:
  """As `ke_digest` of uint8."""
  padded = np.zeros(-(-data.size // 4) * 4, np.uint8)
  padded[: data.size] = data
  words = padded.reshape(-1, 4).astype(np.uint64)
  word = np.zeros(len(words), np.uint64)
  for b in range(4):
    is_there = 4 * np.arange(len(words)) + b < data.size
    word = np.where(is_there, word << np.uint64(8) | words[:, b], word)
  x = np.arange(len(words), dtype=np.uint64) << np.uint64(32) | word
  x = x * np.uint64(0x9E3779B97F4A7C15)
  x = (x ^ x >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
  return int((x ^ x >> np.uint64(32)).sum(dtype=np.uint64))


def _check(what, is_right):
  if not is_right:
    raise RuntimeError(f"a kernel of the launcher's own is wrong: {what}")


class _Device:
  """Runs one kernel at a time on copies of arrays."""

  def __init__(self, launcher):
    self._launcher = launcher

  def sums(self, name, arrays, numbers, count):
    """What a kernel adds to `count` numbers of 64 bits, as float64."""
    return self._run(name, arrays, numbers, np.zeros(count), is_last=True)

  def draw(self, table, item_bytes):
    out = np.zeros(_ITEMS, table.dtype)
    numbers = (_ITEMS, table.size, _KEY, 3)
    return self._run(f"ke_draw_{item_bytes}", [table], numbers, out, False)

  def _run(self, name, arrays, numbers, out, is_last):
    stream, places = self._launcher.stream, []
    for array in (*arrays, out):
      places.append(int(call(cuda.cuMemAlloc, array.nbytes)))
      source = array.ctypes.data
      call(cuda.cuMemcpyHtoDAsync, places[-1], source, array.nbytes, stream)
    *inputs, result = places
    order = (
      (*inputs, *numbers, result) if is_last else (result, *inputs, *numbers)
    )
    self._launcher.helper(name, 7, 256, 0, *order).enqueue(stream)
    place = out.ctypes.data
    call(cuda.cuMemcpyDtoHAsync, place, result, out.nbytes, stream)
    call(cuda.cuStreamSynchronize, stream)
    for address in places:
      call(cuda.cuMemFree, address)
    return out
