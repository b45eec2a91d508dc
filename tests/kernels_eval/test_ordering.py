"""Code that is ordered, or whose races cannot show, is left in peace."""

import numpy as np
import pytest

from kernels_eval.schema import Status
from tests.kernels_eval.kernels import X, kernel_text

# name: (launch, text, expected output)
QUIET = {
  "same_value": (
    "grid=(2) block=(64)",
    """
    __shared__ int any;
    any = 0;
    __syncthreads();
    if (x[threadIdx.x] > 3.0f) any = 1;
    __syncthreads();
    out[0] = any;
    """,
    [1.0],
  ),
  "atomics": (
    "grid=(4) block=(64)",
    """
    __shared__ int h[4];
    if (threadIdx.x < 4) h[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&h[threadIdx.x % 4], 1);
    __syncthreads();
    if (threadIdx.x < 4) atomicExch(&out[threadIdx.x], (float)h[threadIdx.x]);
    """,
    [16.0] * 4,
  ),
  "reduction": (
    "grid=(1) block=(256)",
    """
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
      if (t < k) s[t] += s[t + k];
      __syncthreads();
    }
    if (t == 0) out[0] = s[0];
    """,
    [256 * 257 / 2],
  ),
  "double_buffer": (
    "grid=(1) block=(64)",
    """
    __shared__ float s[2][64];
    int t = threadIdx.x;
    s[0][t] = x[t];
    __syncthreads();
    for (int k = 1, p = 0; k < 64; k *= 2, p ^= 1) {
      s[p ^ 1][t] = s[p][t] + (t >= k ? s[p][t - k] : 0.0f);
      __syncthreads();
    }
    out[t] = s[0][t];
    """,
    np.cumsum(np.arange(1, 65)),
  ),
  "syncwarp": (
    "grid=(1) block=(64)",
    """
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    for (int k = 16; k > 0; k /= 2) {
      float v = s[t ^ k];
      __syncwarp();
      s[t] += v;
      __syncwarp();
    }
    out[t] = s[t];
    """,
    [32 * 33 / 2] * 32 + [32 * 33 / 2 + 1024] * 32,
  ),
  "own_word_after_a_neighbour's_ordered_read": (
    "grid=(1) block=(32)",
    """
    __shared__ float s[33];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t == 0) s[32] = 0.0f;
    __syncwarp();
    float next = s[t + 1];
    __syncwarp();
    s[t] += next;
    out[t] = s[t];
    """,
    [2 * t + 3 for t in range(31)] + [32.0],
  ),
  "last_block": (
    "grid=(4) block=(32)",
    """
    __shared__ bool last;
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 32 + t];
    __syncthreads();
    if (t == 0) {
      float sum = 0.0f;
      for (int j = 0; j < 32; j++) sum += s[j];
      out[1 + blockIdx.x] = sum;
      __threadfence();
      last = atomicInc(&count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
      s[t] = t < gridDim.x ? out[1 + t] : 0.0f;
      __syncthreads();
      if (t == 0) out[0] = s[0] + s[1] + s[2] + s[3];
    }
    """,
    [128 * 129 / 2],
  ),
  "grid_stride_loop": (
    "grid=(3) block=(32)",
    """
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 64;
         i += gridDim.x * blockDim.x) out[i] = 2.0f * x[i];
    """,
    2.0 * np.arange(1, 65),
  ),
  "shuffles_in_a_loop": (
    "grid=(2) block=(64)",
    """
    float v = x[threadIdx.x];
    for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(~0u, v, k);
    __shared__ float s[2];
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = s[0] + s[1];
    """,
    [64 * 65 / 2] * 2,
  ),
  "bytes_of_one_word": (
    "grid=(1) block=(64)",
    """
    __shared__ unsigned char s[64];
    __shared__ unsigned short h[64];
    int t = threadIdx.x;
    s[t] = t; h[t] = 1000 * t;
    __syncthreads();
    unsigned word = ((unsigned*)s)[t / 4], pair = ((unsigned*)h)[t / 2];
    __syncthreads();
    s[t] = word >> 8 * (t % 4); h[t] = pair >> 16 * (t % 2);
    __syncthreads();
    out[t] = s[t] + h[t];
    """,
    1001.0 * np.arange(64),
  ),
  "objects_by_value": (
    "grid=(1) block=(64)",
    """
    __shared__ Best s[64];
    __shared__ float4 v[64];
    int t = threadIdx.x;
    s[t] = make_best(x[t ^ 5], t);
    v[t] = make_float4(x[t], 0, 0, 1);
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
      if (t < k) { s[t] = better(s[t], s[t + k]); v[t] = v[t] + v[t + k]; }
      __syncthreads();
    }
    if (t == 0) { out[0] = s[0].value; out[1] = s[0].index; out[2] = v[0].w; }
    """,
    [64.0, 63 ^ 5, 64.0],
  ),
  "pairs_of_halves": (
    "grid=(1) block=(32)",
    """
    __shared__ __half s[64];
    int t = threadIdx.x;
    ((__half2*)s)[t] = __floats2half2_rn(x[2 * t], x[2 * t + 1]);
    __syncthreads();
    s[2 * t] = __half(2.0f) * s[2 * t]; s[2 * t + 1] = s[2 * t + 1];
    __syncthreads();
    __half2 v = ((__half2*)s)[31 - t];
    out[t] = __low2float(v) + __high2float(v);
    """,
    [2 * (2 * t + 1) + 2 * t + 2 for t in range(31, -1, -1)],
  ),
  "spin_lock": (
    "grid=(2) block=(64)",
    """
    if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = 0.0f;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence();
    out[0] += x[threadIdx.x];
    __threadfence();
    atomicExch(&lock, 0);
    """,
    [64 * 65],
  ),
  "compare_and_swap_maximum": (
    "grid=(4) block=(64)",
    """
    if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(&out[0], -1.0f);
    int* address = (int*)&total;
    int old = *address, assumed;
    do {
      assumed = old;
      float v = x[blockIdx.x * 64 + threadIdx.x];
      v = fmaxf(v, __int_as_float(assumed));
      old = atomicCAS(address, assumed, __float_as_int(v));
    } while (old != assumed);
    if (old > 0) atomicExch(&out[0], total);
    """,
    [256.0],
  ),
  "flag_of_the_block_before": (
    "grid=(4) block=(32)",
    """
    // A chained scan: each block waits for the sum of the one before it.
    __shared__ float before;
    int t = threadIdx.x, b = blockIdx.x;
    if (t == 0) {
      before = 0.0f;
      if (b > 0) {
        while (*(volatile int*)&flags[b - 1] == 0) {}
        __threadfence();
        before = sums[b - 1];
      }
      sums[b] = before + x[b];
      __threadfence();
      *(volatile int*)&flags[b] = 1;
      out[b] = sums[b];
    }
    """,
    [1.0, 3.0, 6.0, 10.0],
  ),
  "wait_for_another_warp": (
    "grid=(1) block=(64)",
    """
    __shared__ int ready;
    __shared__ float value;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      while (atomicAdd(&ready, 0) == 0) {}
      __threadfence_block();
      out[0] = value;
    } else if (threadIdx.x == 40) {
      value = 7.0f;
      __threadfence_block();
      atomicExch(&ready, 1);
    }
    """,
    [7.0],
  ),
}


@pytest.mark.parametrize("name", QUIET)
def test_ordered_code_is_left_in_peace(lab, name):
  launch, body, expected = QUIET[name]
  text = kernel_text(body)
  got = lab.out(text, size=256, inputs=X, launch=launch)
  np.testing.assert_array_equal(got[: len(expected)], expected)


def test_launches_are_ordered(lab):
  text = """
  // scratch: tmp float32 (256)
  // launch: first grid=(4) block=(64) args=(x, tmp)
  // launch: second grid=(4) block=(64) args=(tmp, out)
  // launch: second grid=(1) block=(256) args=(tmp, out)
  __global__ void first(const float* x, float* tmp) {
    int i = blockIdx.x * 64 + threadIdx.x;
    tmp[i] = x[i];
  }
  __global__ void second(float* tmp, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tmp[255 - i];
  }"""
  got = lab.out(text, size=256, inputs=X)
  np.testing.assert_array_equal(got, X["x"][::-1])


def test_shared_variables_may_change_from_case_to_case(check):
  """Nothing of one case's shared memory is left in the next."""
  text = """
  __global__ void k(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n == 1) {
      __shared__ float first[256];
      first[threadIdx.x] = 1.0f;
    }
    __shared__ float s[256];
    s[threadIdx.x] = i < n ? x[i] + y[i] : 0.0f;
    __syncthreads();
    int t = blockDim.x - 1 - threadIdx.x;
    i = blockIdx.x * blockDim.x + t;
    if (i < n) out[i] = s[t];
  }"""
  answer = check("vector_add", text)
  assert answer.status == Status.PASSED, answer.message
