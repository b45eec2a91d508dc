"""Warp operations, lane for lane against the definitions in CUDA's manual."""

import numpy as np
import pytest

LANES = np.arange(32)
X = {"x": (np.arange(32) * 7 % 32).astype(np.int32)}


def _run(lab, expression, threads=32, size=None, inputs=None, head=""):
  text = f"""{head}
  __global__ void k(const int* x, int* out) {{
    int t = threadIdx.x, v = x[t % 32];
    out[t] = {expression};
  }}"""
  return lab.out(
    text,
    "int32",
    size or threads,
    inputs=inputs or X,
    launch=f"grid=(1) block=({threads})",
  )


def _source(op, argument, width):
  """The lane that each lane reads from."""
  low = LANES // width * width
  if op == "idx":
    return low + argument % width
  if op == "up":
    source = LANES - argument
    return np.where(source < low, LANES, source)
  if op == "down":
    source = LANES + argument
    return np.where(source >= low + width, LANES, source)
  source = LANES ^ argument
  return np.where(source >= low + width, LANES, source)


@pytest.mark.parametrize("width", [32, 16, 8, 4, 2, 1])
def test_shuffles(lab, width):
  """Four operations, five arguments each, in one kernel."""
  arguments = (0, 1, 3, 16, 31)
  text = (
    "__global__ void k(const int* x, int* out) {\n"
    "  int t = threadIdx.x, v = x[t]; const unsigned m = 0xffffffffu;\n"
    "  int place = t;\n"
  )
  expected = []
  for op, name in (
    ("idx", ""),
    ("up", "_up"),
    ("down", "_down"),
    ("xor", "_xor"),
  ):
    for argument in arguments:
      text += (
        f"  out[place] = __shfl{name}_sync(m, v, {argument}, {width});"
        " place += 32;\n"
      )
      expected.append(X["x"][_source(op, argument, width)])
  got = lab.out(text + "}", "int32", 640, inputs=X)
  np.testing.assert_array_equal(got.reshape(-1, 32), expected)


def test_shuffle_from_a_lane_of_its_own_choice(lab):
  got = _run(lab, "__shfl_sync(0xffffffffu, v, (t * 5 + 1) % 32)")
  np.testing.assert_array_equal(got, X["x"][(LANES * 5 + 1) % 32])


def test_shuffles_of_every_type(lab):
  text = """
  __global__ void k(const int* x, double* out) {
    const unsigned m = 0xffffffffu;
    int t = threadIdx.x, o = t ^ 1;
    bool ok = true;
    ok &= __shfl_xor_sync(m, (unsigned)t, 1) == (unsigned)o;
    ok &= __shfl_xor_sync(m, (long long)t << 40, 1) == (long long)o << 40;
    ok &= __shfl_xor_sync(m, (unsigned long long)t << 40, 1)
          == (unsigned long long)o << 40;
    ok &= __shfl_xor_sync(m, (long)t, 1) == (long)o;
    ok &= __shfl_xor_sync(m, t + 0.25f, 1) == o + 0.25f;
    ok &= __shfl_xor_sync(m, t + 1e-12, 1) == o + 1e-12;
    ok &= __half2float(__shfl_xor_sync(m, __float2half(t), 1)) == o;
    ok &= __bfloat162float(__shfl_xor_sync(m, __float2bfloat16(t), 1)) == o;
    __half2 pair = __floats2half2_rn(t, -t);
    ok &= __high2float(__shfl_down_sync(m, pair, 0)) == -t;
    out[t] = ok;
  }"""
  np.testing.assert_array_equal(lab.out(text, "float64", inputs=X), np.ones(32))


def test_shuffles_within_half_a_warp(lab):
  got = _run(
    lab,
    "t < 16 ? __shfl_down_sync(0x0000ffffu, v, 4, 16)"
    " : __shfl_up_sync(0xffff0000u, v, 4, 16)",
  )
  source = np.where(LANES < 16, _source("down", 4, 16), _source("up", 4, 16))
  np.testing.assert_array_equal(got, X["x"][source])


def test_active_mask_names_the_lanes_that_came_here(lab):
  text = """
  __global__ void k(int* out) {
    int t = threadIdx.x;
    out[t] = 0;
    if (t % 3 == 0) {
      unsigned m = __activemask();
      out[t] = __reduce_add_sync(m, t) + 10000 * __popc(m);
    } else if (t > 40) {
      out[t] = __popc(__activemask());
    }
  }"""
  got = lab.out(text, "int32", 64, launch="grid=(1) block=(64)")
  t = np.arange(64)
  third = t % 3 == 0
  expected = np.where(~third & (t > 40), np.sum(~third & (t > 40)), 0)
  for warp in (t < 32, t >= 32):
    lanes = third & warp
    expected[lanes] = t[lanes].sum() + 10000 * lanes.sum()
  np.testing.assert_array_equal(got, expected)


def test_a_reduction_tree(lab):
  text = """
  __device__ int reduce(int v) {
    #pragma unroll
    for (int k = warpSize / 2; k > 0; k >>= 1)
      v += __shfl_down_sync(0xffffffff, v, k);
    return v;
  }
  __global__ void k(const int* x, int* out) {
    int sum = reduce(x[threadIdx.x % 32] + threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = sum;
  }"""
  got = lab.out(text, "int32", 3, inputs=X, launch="grid=(1) block=(96)")
  np.testing.assert_array_equal(got, 496 + 32 * np.arange(3))


def test_votes(lab):
  text = """
  __global__ void k(const int* x, int* out) {
    const unsigned m = 0xffffffffu;
    int t = threadIdx.x, v = x[t];
    out[t] = __ballot_sync(m, v % 3 == 0);
    out[32 + t] = __any_sync(m, v == 5) + 2 * __any_sync(m, v == 99)
      + 4 * __all_sync(m, v < 32) + 8 * __all_sync(m, v < 31)
      + 16 * (__activemask() == m);
  }"""
  got = lab.out(text, "int32", 64, inputs=X)
  ballot = np.uint32(np.sum(1 << LANES[X["x"] % 3 == 0])).view(np.int32)
  np.testing.assert_array_equal(got[:32], np.full(32, ballot))
  np.testing.assert_array_equal(got[32:], np.full(32, 1 + 4 + 16))


def test_matches(lab):
  text = """
  __global__ void k(const int* x, int* out) {
    const unsigned m = 0xffffffffu;
    int t = threadIdx.x, all_same, all_zero;
    out[t] = __match_any_sync(m, x[t] % 5);
    unsigned different = __match_all_sync(m, t, &all_same);
    unsigned same = __match_all_sync(m, 7.5, &all_zero);
    out[32 + t] = (different == 0) + 2 * all_same + 4 * (same == m)
                  + 8 * all_zero;
  }"""
  got = lab.out(text, "int32", 64, inputs=X)
  equal = (X["x"] % 5)[:, None] == X["x"] % 5
  masks = (equal << LANES).sum(1).astype(np.uint32).view(np.int32)
  np.testing.assert_array_equal(got[:32], masks)
  np.testing.assert_array_equal(got[32:], np.full(32, 13))


def test_reductions_of_a_warp(lab):
  text = """
  __global__ void k(const int* x, int* out) {
    const unsigned m = 0xffffffffu;
    int t = threadIdx.x, v = x[t] - 10;
    unsigned u = (unsigned)v;
    out[t] = __reduce_add_sync(m, v);
    out[32 + t] = __reduce_min_sync(m, v);
    out[64 + t] = __reduce_max_sync(m, v);
    out[96 + t] = __reduce_max_sync(m, u);
    out[128 + t] = __reduce_and_sync(m, u | 16u);
    out[160 + t] = __reduce_or_sync(m, u & 5u);
    out[192 + t] = __reduce_xor_sync(m, u * 3u);
  }"""
  got = lab.out(text, "int32", 224, inputs=X).reshape(7, 32)
  v = X["x"] - 10
  u = v.view(np.uint32)
  expected = [
    v.sum(),
    v.min(),
    v.max(),
    u.max().view(np.int32),
    np.bitwise_and.reduce(u | 16).view(np.int32),
    np.bitwise_or.reduce(u & 5).view(np.int32),
    np.bitwise_xor.reduce(u * 3).view(np.int32),
  ]
  np.testing.assert_array_equal(got, np.tile(expected, (32, 1)).T)


def test_masks_of_a_part_of_the_warp(lab):
  got = _run(
    lab,
    "t % 2 ? __reduce_add_sync(0xaaaaaaaau, v) : __ballot_sync(0x55555555u, 1)",
  )
  odd = X["x"][1::2].sum()
  np.testing.assert_array_equal(got, np.where(LANES % 2, odd, 0x55555555))


@pytest.mark.parametrize("threads", [1, 7, 20, 48])
def test_warps_with_fewer_than_32_lanes(lab, threads):
  """Lanes that do not exist are neither waited for nor counted."""
  got = _run(
    lab,
    "__reduce_add_sync(0xffffffffu, 1) + 100 * __popc(__activemask())"
    " + 10000 * __all_sync(0xffffffffu, 1)",
    threads,
  )
  size = np.minimum(32, threads - np.arange(threads) // 32 * 32)
  np.testing.assert_array_equal(got, 101 * size + 10000)


def test_lanes_that_left_are_not_active(lab):
  text = """
  __global__ void k(int* out) {
    int t = threadIdx.x;
    if (t >= 20) return;
    __syncwarp(0x000fffffu);
    out[t] = __shfl_down_sync(0x000fffffu, t, 1, 4);
  }"""
  got = lab.out(text, "int32", 20, launch="grid=(1) block=(32)")
  t = np.arange(20)
  np.testing.assert_array_equal(got, np.where(t % 4 == 3, t, t + 1))


def test_broadcast_loop_over_lanes(lab):
  text = """
  __global__ void k(const int* x, int* out) {
    int sum = 0, v = x[threadIdx.x % 32];
    for (int lane = 0; lane < 32; lane++)
      sum += lane * __shfl_sync(0xffffffffu, v, lane);
    out[threadIdx.x] = sum;
  }"""
  got = lab.out(text, "int32", 64, inputs=X, launch="grid=(1) block=(64)")
  np.testing.assert_array_equal(got, np.full(64, (LANES * X["x"]).sum()))
