"""Faults of Numba's simulator and compiler that other judges have met: rows of
the list in `test_faults.py`. There is no simulator here: on the CPU a kernel is
what Numba's own compiler makes of it, run by threads that are checked."""

import numpy as np
import pytest

from kernels_eval.schema import Status
from tests.kernels_eval.numba_texts import HEAD, kernel


def test_row_28_continue_in_front_of_a_barrier_with_a_vote(lab):
  """Fine in the simulator; hangs a GPU."""
  body = (
    "t = cuda.threadIdx.x\nfor i in range(2):\n  if i == 0 and t < 16:\n"
    "    continue\n  cuda.syncthreads_or(1)\nout[t] = 1"
  )
  stop = lab.stop(kernel(body), size=32)
  assert stop.finding.kind == "divergent_barrier"
  assert stop.finding.line == 11


def test_row_30_an_exception_in_front_of_a_barrier(lab):
  """As on a GPU a thread that raises ends, and nobody waits for ever."""
  body = (
    "t = cuda.threadIdx.x\nif t == 3:\n  raise ValueError('x')\n"
    "cuda.syncthreads()\nout[t] = 1"
  )
  stop = lab.stop(kernel(body), size=32)
  assert stop.finding.kind == "divergent_barrier"
  assert "thread 3 has left the kernel" in stop.finding.message


def test_row_33_slices_of_dynamic_shared_memory(lab):
  """They share memory, and each begins where it says."""
  body = (
    "t = cuda.threadIdx.x\ns = cuda.shared.array(0, float32)\n"
    "a = s[:16]\nb = s[16:]\nif t < 16:\n  a[t] = t\nelse:\n"
    "  b[t - 16] = 100 + t\ncuda.syncthreads()\n"
    "out[t] = s[t] + 1000 * a[t % 16] + 1000000 * b.size"
  )
  launch = "grid=(1) block=(32) smem=128"
  t = np.arange(32)
  want = np.where(t < 16, t, 100 + t) + 1000 * (t % 16) + 16e6
  np.testing.assert_array_equal(lab.out(kernel(body), launch=launch), want)


_REFUSED = {  # what only looks like Python of a device
  "34 a local array as a result": (
    "out[0] = f(4)[1]",
    "@cuda.jit(device=True)\ndef f(n):\n  a = cuda.local.array(4, float32)\n"
    "  a[1] = n\n  return a\n",
  ),
  "35 an array expression": ("out[:] = out + 1", ""),
  "35 an array expression in place": ("out += 1", ""),
  "35 a local array of a size that is known too late": (
    "a = cuda.local.array(int(out.size), float32)\nout[0] = a.size",
    "",
  ),
  "35 records": (
    "a = cuda.local.array(4, np.dtype([('p', np.float32)]))\nout[0] = 1",
    "",
  ),
  "35 the default stream": ("s = cuda.default_stream()\nout[0] = 1", ""),
}


@pytest.mark.parametrize("what", _REFUSED)
def test_rows_34_and_35_what_a_device_has_not(lab, what):
  body, before = _REFUSED[what]
  stop = lab.stop(kernel(body, before=before), size=32)
  assert stop.status == Status.COMPILE_ERROR, stop.message


def test_row_50_shared_memory_is_each_launch_s_own(lab):
  text = (
    "# launch: first grid=(1) block=(1) smem=400 args=(out)\n"
    "# launch: second grid=(1) block=(1) args=(out)\n"
    f"{HEAD}@cuda.jit\ndef first(out):\n"
    "  s = cuda.shared.array(0, float32)\n  s[99] = 1\n  out[0] = s.size\n"
    "@cuda.jit\ndef second(out):\n  s = cuda.shared.array(0, float32)\n"
    "  out[1] = s.size\nREAD"
  )
  got = lab.out(text.replace("READ", ""), size=2)
  np.testing.assert_array_equal(got, [100, 0])
  stop = lab.stop(text.replace("READ", "  out[1] = s[0]\n"), size=2)
  assert stop.finding.kind == "out_of_bounds"


@pytest.mark.parametrize(
  "plan", ["block=(2048)", "block=(32) smem=1024*1024*1024"]
)
def test_row_51_what_no_device_can_launch(lab, plan):
  stop = lab.stop(kernel("out[0] = 1"), launch=f"grid=(1) {plan}")
  assert stop.status == Status.LAUNCH_ERROR


def test_row_51_a_race_of_one_block(lab):
  body = (
    "if cuda.threadIdx.x == 0:\n  out[0] = 0\ncuda.syncthreads()\nout[0] += 1"
  )
  stop = lab.stop(kernel(body), size=1, launch="grid=(1) block=(1024)")
  assert stop.finding.kind == "data_race"
