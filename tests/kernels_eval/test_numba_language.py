"""What Numba kernels may say, and that it means on the CPU what it means on a
device."""

import numpy as np
import pytest

from kernels_eval.schema import Status
from tests.kernels_eval.numba_texts import HEAD, kernel, per_thread

X = np.arange(64, dtype=np.float32) - 20


LANES = np.arange(32)
_WARP = {
  "shfl_sync(m, t, 5)": np.full(32, 5),
  "shfl_up_sync(m, t, 3)": np.where(LANES < 3, LANES, LANES - 3),
  "shfl_down_sync(m, t, 3)": np.where(LANES > 28, LANES, LANES + 3),
  "shfl_xor_sync(m, t, 5)": LANES ^ 5,
  "all_sync(m, t < 40)": np.ones(32),
  "all_sync(m, t < 4)": np.zeros(32),
  "any_sync(m, t == 4)": np.ones(32),
  "any_sync(m, t == 40)": np.zeros(32),
  "eq_sync(m, t == 40)": np.ones(32),
  "eq_sync(m, t == 4)": np.zeros(32),
  "ballot_sync(m, t % 2 == 0)": np.full(32, 0x55555555),
  "match_any_sync(m, int32(t // 8))": 0xFF << (LANES // 8 * 8),
  "match_all_sync(m, int32(7))[0]": np.full(32, -1),
  "match_all_sync(m, int32(t))[1]": np.zeros(32),
  "lanemask_lt()": (1 << LANES) - 1,
  "activemask()": np.full(32, -1),
  "laneid": LANES,
  "warpsize": np.full(32, 32),
}


@pytest.mark.parametrize("expression", _WARP)
def test_warp_operations(lab, expression):
  text = per_thread(f"cuda.{expression}").replace(
    "  t =", "  m = int32(-1)\n  t ="
  )
  got = lab.out(text, "int64")
  want = _WARP[expression].astype(np.int64)
  np.testing.assert_array_equal(got.astype(np.uint32), want.astype(np.uint32))


@pytest.mark.parametrize("dtype", ("float32", "float64", "int64", "int32"))
def test_shuffles_carry_every_type(lab, dtype):
  text = per_thread(f"cuda.shfl_down_sync(0xffffffff, {dtype}(t) * 3, 1)")
  got = lab.out(text, dtype)
  np.testing.assert_array_equal(got[:31], 3 * LANES[1:])


def test_a_warp_is_in_step_after_syncwarp(lab):
  body = """
s = cuda.shared.array(32, float32)
t = cuda.threadIdx.x
s[t] = t
cuda.syncwarp()
out[t] = s[31 - t]
"""
  np.testing.assert_array_equal(lab.out(kernel(body)), LANES[::-1])


@pytest.mark.parametrize(
  "name, want", (("count", 12), ("and", 0), ("or", 1)), ids=str
)
def test_barriers_that_count(lab, name, want):
  text = per_thread(f"cuda.syncthreads_{name}(int32(t < 12))")
  np.testing.assert_array_equal(lab.out(text, "int32"), np.full(32, want))


_ATOMICS = {  # call, dtype: start, what is there afterwards
  ("add(out, 0, 2)", "int32"): (5, 69),
  ("add(out, 0, 2)", "int64"): (5, 69),
  ("add(out, 0, 0.5)", "float32"): (5, 21),
  ("add(out, 0, 0.5)", "float64"): (5, 21),
  ("sub(out, 0, 2)", "int32"): (5, -59),
  ("sub(out, 0, 0.5)", "float32"): (5, -11),
  ("max(out, 0, t)", "int32"): (5, 31),
  ("max(out, 0, float32(t))", "float32"): (5, 31),
  ("min(out, 0, -t)", "int64"): (5, -31),
  ("min(out, 0, float64(-t))", "float64"): (5, -31),
  ("nanmax(out, 0, float32(t))", "float32"): (5, 31),
  ("and_(out, 0, 6)", "int32"): (5, 4),
  ("or_(out, 0, 1 << (t % 4))", "int32"): (0, 15),
  ("xor(out, 0, 1 << t)", "int64"): (0, 0xFFFFFFFF),
  ("exch(out, 0, 9)", "int32"): (5, 9),
  ("cas(out, 0, 5, 7)", "int32"): (5, 7),
  ("compare_and_swap(out, 5, 7)", "int32"): (5, 7),
}


@pytest.mark.parametrize("call, dtype", _ATOMICS)
def test_atomics(lab, call, dtype):
  start, want = _ATOMICS[call, dtype]
  body = f"""
t = cuda.threadIdx.x
if t == 0:
  out[0] = {start}
cuda.syncthreads()
cuda.atomic.{call}
"""
  assert lab.out(kernel(body), dtype, 1)[0] == want


def test_atomics_of_unsigned_words(lab):
  body = """
s = cuda.shared.array(2, uint32)
t = cuda.threadIdx.x
if t < 2:
  s[t] = 0
cuda.syncthreads()
cuda.atomic.inc(s, 0, 9)
cuda.atomic.dec(s, 1, 9)
cuda.syncthreads()
if t < 2:
  out[t] = s[t]
"""
  # 32 steps of 0, 1, ..., 9, 0; and down from 0 to 9, 8, ...
  np.testing.assert_array_equal(lab.out(kernel(body), "int32", 2), [2, 8])


def test_an_atomic_returns_the_old_value(lab):
  body = """
out[0] = 0
old = cuda.atomic.add(out, 0, 3)
out[1] = old
out[2] = cuda.atomic.exch(out, 0, 8)
"""
  got = lab.out(kernel(body), "int32", 3, launch="grid=(1) block=(1)")
  np.testing.assert_array_equal(got, [8, 0, 3])


def test_two_shared_arrays_in_one_line(lab):
  body = """
a = cuda.shared.array(32, float32); b = cuda.shared.array(32, float32)
t = cuda.threadIdx.x
a[t] = t
b[t] = 100 + t
cuda.syncthreads()
out[t] = a[31 - t] + 1000 * b[t]
"""
  want = 31 - LANES + 1000.0 * (100 + LANES)
  np.testing.assert_array_equal(lab.out(kernel(body)), want)


def test_a_device_function_has_its_own_shared_array(lab):
  before = """
@cuda.jit(device=True)
def staged(v):
  s = cuda.shared.array(32, float32)
  s[cuda.threadIdx.x] = v
  cuda.syncthreads()
  return s[31 - cuda.threadIdx.x]
"""
  body = "t = cuda.threadIdx.x\nout[t] = staged(float32(t))"
  got = lab.out(kernel(body, before=before))
  np.testing.assert_array_equal(got, LANES[::-1])


def test_dynamic_shared_memory_has_the_launch_s_size(lab):
  body = """
s = cuda.shared.array(0, float32)
t = cuda.threadIdx.x
s[t] = t
cuda.syncthreads()
out[t] = s[s.size - 1 - t]
"""
  got = lab.out(kernel(body), launch="grid=(1) block=(32) smem=128")
  np.testing.assert_array_equal(got, LANES[::-1])


def test_local_and_constant_arrays(lab):
  before = "TABLE = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)\n"
  body = """
t = cuda.threadIdx.x
table = cuda.const.array_like(TABLE)
mine = cuda.local.array((2, 4), float32)
for i in range(8):
  mine[i // 4, i % 4] = i * t
out[t] = mine[1, t % 4] + table[t % 2, 1]
"""
  want = (4 + LANES % 4) * LANES + np.where(LANES % 2, 4, 2)
  np.testing.assert_array_equal(lab.out(kernel(body, before=before)), want)


def test_arrays_have_shapes_slices_and_rows(lab):
  body = """
t = cuda.threadIdx.x
s = cuda.shared.array((4, 8), float32)
s[t // 8, t % 8] = t
cuda.syncthreads()
row = s[t // 8]
tail = row[4:]
out[t] = tail[t % 4] + 100 * row.size + 1000 * s.shape[1] + 10000 * s.ndim
"""
  want = LANES // 8 * 8 + 4 + LANES % 4 + 28800
  np.testing.assert_array_equal(lab.out(kernel(body)), want)


def test_grids_of_three_dimensions(lab):
  body = """
x, y, z = cuda.grid(3)
sx, sy, sz = cuda.gridsize(3)
out[(z * sy + y) * sx + x] = x + 10 * y + 100 * z
"""
  got = lab.out(
    kernel(body), "int32", 24, launch="grid=(2, 1, 3) block=(2, 2, 1)"
  ).reshape(3, 2, 4)
  z, y, x = np.indices((3, 2, 4))
  np.testing.assert_array_equal(got, x + 10 * y + 100 * z)


def test_division_by_zero_does_not_raise(lab):
  body = """
t = cuda.threadIdx.x
zero = t - t
out[t] = t // zero + t % zero
"""
  lab.out(kernel(body), "int32")  # a value that the language does not define
  body = "t = cuda.threadIdx.x\nout[t] = float32(1 + t) / float32(t - t)"
  assert np.isinf(lab.out(kernel(body))).all()


def test_negative_indices_count_from_the_end(lab):
  text = per_thread("x[-1 - t]", parameters="x, out")
  np.testing.assert_array_equal(
    lab.out(text, inputs={"x": X[:32].copy()}), X[:32][::-1]
  )


def test_hints_for_the_cache_are_loads_and_stores(lab):
  body = "t = cuda.threadIdx.x\ncuda.stcs(out, t, cuda.ldcg(x, t + 1))"
  got = lab.out(kernel(body, "x, out"), inputs={"x": X})
  np.testing.assert_array_equal(got, X[1:33])
  stop = lab.stop(kernel(body, "x, out"), size=31, inputs={"x": X})
  assert stop.finding.kind == "out_of_bounds"


def test_print_goes_to_the_log(lab):
  body = "if cuda.threadIdx.x == 3:\n  print('value', 7, 2.5)\nout[0] = 1"
  lab.out(kernel(body), launch="grid=(1) block=(32)", size=1)
  assert lab.result.log == "value 7 2.500000\n"


def test_fences_order_blocks(lab):
  """The last block to come adds up what the others have written."""
  text = (
    "# scratch: count int32 (1)\n# scratch: part float32 (4)\n"
    "# launch: clear grid=(1) block=(1) args=(count)\n"
    "# launch: total grid=(4) block=(1) args=(part, count, out)\n"
    f"{HEAD}@cuda.jit\ndef clear(count):\n  count[0] = 0\n"
    "@cuda.jit\ndef total(part, count, out):\n"
    "  part[cuda.blockIdx.x] = cuda.blockIdx.x + 1\n"
    "  FENCE\n"
    "  if cuda.atomic.add(count, 0, 1) == 3:\n"
    "    out[0] = part[0] + part[1] + part[2] + part[3]\n"
  )
  fenced = text.replace("FENCE", "cuda.threadfence()")
  assert lab.out(fenced, size=1)[0] == 10
  stop = lab.stop(text.replace("FENCE", "cuda.nanosleep(10)"), size=1)
  assert stop.finding.kind == "data_race"


def test_what_the_executor_cannot_do_is_said(lab):
  stop = lab.stop(kernel("cuda.cg.this_grid().sync()"))
  assert stop.status == Status.COMPILE_ERROR
  assert "is not available" in stop.message
  stop = lab.stop(kernel("a = out.reshape(2, 32)\na[0, 0] = 1"))
  assert "`array.reshape` is not available" in stop.message


def test_several_kernels_share_a_device_function(lab):
  text = (
    "# launch: a grid=(1) block=(32) args=(out)\n"
    "# launch: b grid=(1) block=(32) args=(out)\n"
    f"{HEAD}@cuda.jit(device=True)\ndef f(v):\n  return v * float32(2)\n"
    "@cuda.jit\ndef a(out):\n  t = cuda.threadIdx.x\n"
    "  out[t] = f(float32(t))\n"
    "@cuda.jit\ndef b(out):\n  t = cuda.threadIdx.x\n"
    "  out[t] = f(out[t]) + f(float32(1))\n"
  )
  np.testing.assert_array_equal(lab.out(text), 4 * LANES + 2)


def test_a_kernel_is_launched_on_several_buffers(lab):
  text = (
    "# scratch: a float32 (32)\n# scratch: b float32 (32)\n"
    "# launch: twice grid=(1) block=(32) args=(x, a)\n"
    "# launch: twice grid=(1) block=(32) args=(a, b)\n"
    "# launch: twice grid=(1) block=(32) args=(b, out)\n"
    f"{HEAD}@cuda.jit\ndef twice(v, w):\n  t = cuda.threadIdx.x\n"
    "  w[t] = v[t] + v[t]\n"
  )
  got = lab.out(text, inputs={"x": X[:32].copy()})
  np.testing.assert_array_equal(got, 8 * X[:32])


def test_fast_mathematics_is_near(lab):
  text = per_thread("math.exp(x[t]) / float32(3)", parameters="x, out")
  text = text.replace("@cuda.jit\n", "@cuda.jit(fastmath=True)\n")
  x = np.linspace(-3, 3, 32).astype(np.float32)
  got = lab.out(text, inputs={"x": x})
  np.testing.assert_allclose(got, np.exp(x) / 3, rtol=1e-5)


# ---- what is found, and where


_FINDINGS = {  # body: kind, line within the body (1-based), text
  "t = cuda.threadIdx.x\nout[t + 1] = 1":
    ("out_of_bounds", 2, "writes out[32], but out has 32 elements"),
  "t = cuda.threadIdx.x\nv = x[t + 40]\nout[t] = v":
    ("out_of_bounds", 2, "reads x[64], but x has 64 elements"),
  "t = cuda.threadIdx.x\ns = cuda.shared.array(8, float32)\ns[t] = 1":
    ("out_of_bounds", 3, "writes shared s[8], but s has 8 elements"),
  "s = cuda.shared.array(0, float32)\ns[0] = 1":
    ("out_of_bounds", 2, "the launch gives smem=0 bytes"),
  "t = cuda.threadIdx.x\nx[t] = 1":
    ("input_modified", 2, "writes to x[0], which is an input"),
  "t = cuda.threadIdx.x\nout[0] = t":
    ("data_race", 2, "writes out[0]"),
  "t = cuda.threadIdx.x\nv = x[t + 64]\nout[t] = 1":
    ("out_of_bounds", 2, "reads x[64]"),
  "t = cuda.threadIdx.x\na = cuda.local.array(8, float32)\na[t] = 1":
    ("out_of_bounds", 3, "writes element 8 of a local array that has 8"),
  "t = cuda.threadIdx.x\na = cuda.local.array((2, 3), float32)\na[0, 0] = 1\n"
  "out[t] = a[1, 3 + t]":
    ("out_of_bounds", 4, "reads element 6 of a local array that has 6"),
  "t = cuda.threadIdx.x\ncuda.atomic.add(out, 40 + t, 1.0)":
    ("out_of_bounds", 2, "updates out[40]"),
  "t = cuda.threadIdx.x\ns = cuda.shared.array(32, float32)\ns[t] = t\n"
  "out[t] = s[31 - t]":
    ("uninitialized_read", 4, "shared s[31]"),
  "t = cuda.threadIdx.x\nif t < 9:\n  cuda.syncthreads()\nout[t] = 1":
    ("divergent_barrier", 3, "thread 0 waits"),
  "t = cuda.threadIdx.x\nif t < 9:\n  cuda.syncthreads()\nelse:\n"
  "  cuda.syncthreads()\nout[t] = 1":
    ("divergent_barrier", 3, "waits at the one in line 11"),
  "t = cuda.threadIdx.x\nif t < 9:\n  cuda.shfl_sync(0xffffffff, t, 0)":
    ("divergent_warp", 3, "which has left the kernel"),
  "a = cuda.local.array(200000, float32)\nout[0] = a[cuda.threadIdx.x]":
    ("stack_overflow", None, "512 KiB"),
  "s = cuda.shared.array(20000, float32)\ns[0] = 1":
    ("shared_memory_limit", 1, "80000 bytes with s"),
}  # fmt: skip


@pytest.mark.parametrize("body", _FINDINGS)
def test_findings(lab, body):
  kind, line, text = _FINDINGS[body]
  stop = lab.stop(kernel(body, "x, out"), size=32, inputs={"x": X})
  assert stop.finding.kind == kind
  assert text in stop.finding.message
  assert stop.finding.line == (None if line is None else line + 6)


def test_a_finding_in_a_device_function_has_its_line(lab):
  before = "@cuda.jit(device=True)\ndef put(a, i):\n  a[i] = 1\n"
  stop = lab.stop(kernel("put(out, 99)", before=before), size=32)
  assert stop.finding.kind == "out_of_bounds"
  assert stop.finding.line == 7


def test_a_race_between_blocks(lab):
  text = kernel("out[0] = cuda.blockIdx.x")
  stop = lab.stop(text, size=1, launch="grid=(2) block=(1)")
  assert stop.finding.kind == "data_race"
  assert "another block" in stop.finding.message


def test_an_endless_kernel(lab):
  text = kernel("out[0] = 0\nwhile out[0] == 0:\n  out[1] = 0")
  stop = lab.stop(text, size=2, launch="grid=(1) block=(1)")
  assert stop.status == Status.TIMEOUT
