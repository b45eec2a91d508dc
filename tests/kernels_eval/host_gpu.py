"""A GPU of host memory, for timed calls without one: the driver's calls that
they make, the launcher's own kernels compiled by g++ for one thread, and Python
functions as candidates."""

import ctypes
import pathlib
import subprocess
import types

import numpy as np

from kernels_eval import dtypes
from kernels_eval.cuda import jobs

_HELPERS = (
  pathlib.Path(__file__).parents[2] / "kernels_eval" / "cuda" / "helpers.cu"
)
_ONE_THREAD = r"""
#include <cmath>
#include <cstring>
#define KE_HOST
#define __device__
#define __global__
#define __shared__
struct Place { unsigned x; };
static const Place threadIdx{0}, blockIdx{0}, blockDim{1}, gridDim{1};
unsigned memory[1];
using std::isfinite;
template <class T> void atomicAdd(T* p, T x) { *p += x; }
template <class T> T __shfl_down_sync(unsigned, T, int) { return 0; }
static float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static float ke_half_as_float(unsigned short bits) {
  _Float16 x;
  memcpy(&x, &bits, 2);
  return x;
}
"""


def compile_helpers(folder: pathlib.Path) -> ctypes.CDLL:
  """The launcher's kernels as functions of the host."""
  text, library = folder / "helpers.cpp", folder / "helpers.so"
  text.write_text(_ONE_THREAD + _HELPERS.read_text())
  subprocess.run(
    ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", library, text],
    check=True,
  )
  return ctypes.CDLL(str(library))


class Driver:
  """The calls, and what is allocated. A class because it owns memory."""

  CUevent_flags = types.SimpleNamespace(CU_EVENT_DEFAULT=0)

  def __init__(self):
    self.memory = {}  # address -> array
    self.freed = []

  def cuMemAlloc(self, num_bytes):  # noqa: N802, as CUDA has it
    array = np.zeros(num_bytes, np.uint8)
    self.memory[array.ctypes.data] = array
    return array.ctypes.data

  def cuMemFree(self, address):  # noqa: N802
    self.freed.append(self.memory.pop(address))

  def cuMemsetD8(self, address, byte, num_bytes):  # noqa: N802
    ctypes.memset(address, byte, num_bytes)

  def cuMemsetD8Async(self, address, byte, num_bytes, _):  # noqa: N802
    ctypes.memset(address, byte, num_bytes)

  def copy(self, to, source, num_bytes, _):
    ctypes.memmove(to, source, num_bytes)

  cuMemcpyHtoDAsync = cuMemcpyDtoDAsync = cuMemcpyDtoHAsync = copy  # noqa: N815

  def cuEventCreate(self, _):  # noqa: N802
    return object()

  def cuEventDestroy(self, _):  # noqa: N802
    pass

  def cuEventRecord(self, *_):  # noqa: N802
    pass

  def cuStreamSynchronize(self, _):  # noqa: N802
    pass

  def cuEventElapsedTime(self, *_):  # noqa: N802
    return 1.0


class Launcher:
  """What `timed_calls` asks of a launcher."""

  stream = None
  uuid = "GPU-none"
  hello = jobs.Hello("host", (9, 0), "0", 1024, 2, 1e9, 2**30)

  def __init__(self, helpers: ctypes.CDLL):
    self._helpers = helpers

  def push_out(self):
    """There is no cache to speak of."""

  def enqueue(self, kernels, case):
    """Runs Python functions."""
    for kernel in kernels:
      kernel()

  def helper(self, name, grid, block, shared_bytes, *arguments):
    """A kernel of `helpers.cu`."""
    del grid, block, shared_bytes
    function = self._helpers[name]
    numbers = [ctypes.c_uint64(a) for a in arguments]
    if name.startswith("ke_compare"):
      for i in (3, 4):  # doubles travel as their bits
        numbers[i] = ctypes.c_double.from_buffer(numbers[i])
    return types.SimpleNamespace(enqueue=lambda _: function(*numbers))


def install(monkeypatch, timed_calls, programs) -> Driver:
  """Makes `timed_calls` run here.

  Args:
    monkeypatch: pytest's.
    timed_calls: the module.
    programs: one for each subject, called with the image's address and the
      driver.

  Returns:
    The driver.
  """
  driver, left = Driver(), iter(programs)

  class Program:
    def __init__(self, *_):
      self._run = next(left)

    def kernel(self, launch, base):
      return lambda: self._run(base, driver)

    def unload(self):
      pass

  monkeypatch.setattr(timed_calls, "cuda", driver)
  monkeypatch.setattr(timed_calls, "call", lambda f, *a: f(*a))
  monkeypatch.setattr(timed_calls.module_lib, "Program", Program)
  monkeypatch.setattr(timed_calls.state, "describe", lambda name: name)
  return driver


def stored(values, name: str) -> np.ndarray:
  """Numbers as a dtype's memory has them."""
  return np.ascontiguousarray(dtypes.DTYPES[name].encode(np.asarray(values)))
