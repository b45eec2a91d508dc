"""Data races: which are found, where, and which code is left in peace."""

import numpy as np
import pytest

X = {"x": np.arange(1, 257, dtype=np.float32)}

# name: (line, words of the message, launch, kernel body or text)
RACES = {
  "sum_between_threads": (
    2,
    "thread 0",
    "grid=(1) block=(64)",
    """
    out[0] = threadIdx.x == 0 ? 0.0f : out[0] + x[threadIdx.x];
    """,
  ),
  "accumulate_between_blocks": (
    3,
    "another block",
    "grid=(4) block=(1)",
    """
    if (blockIdx.x == 0) out[0] = 0.0f;
    out[0] += x[blockIdx.x];
    """,
  ),
  "no_barrier_before_reduction": (
    5,
    "__syncthreads()",
    "grid=(1) block=(256)",
    """
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    for (int k = 128; k > 0; k /= 2) { if (t < k) s[t] += s[t + k];
      __syncthreads(); }
    if (t == 0) out[0] = s[0];
    """,
  ),
  "no_barrier_between_steps": (
    6,
    "__syncthreads()",
    "grid=(1) block=(256)",
    """
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) if (t < k) s[t] += s[t + k];
    if (t == 0) out[0] = s[0];
    """,
  ),
  "no_barrier_before_reuse": (
    8,
    "was written by thread 0",
    "grid=(1) block=(64)",
    """
    __shared__ float s[64];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int tile = 0; tile < 2; tile++) {
      s[t] = x[tile * 64 + t];
      __syncthreads();
      for (int j = 0; j < 64; j++) sum += s[j];
    }
    out[t] = sum;
    """,
  ),
  "warp_synchronous_reduction": (
    8,
    "nor __syncwarp()",
    "grid=(1) block=(32)",
    """
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = 0.0f;
    __syncthreads();
    volatile float* v = s;
    v[t] += v[t + 16]; v[t] += v[t + 8];
    if (t == 0) out[0] = v[0];
    """,
  ),
  "shuffle_is_no_barrier": (
    6,
    "nor __syncwarp()",
    "grid=(1) block=(32)",
    """
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = __shfl_xor_sync(0xffffffffu, x[t], 1);
    float v = __shfl_xor_sync(0xffffffffu, x[t], 1);
    out[t] = s[t ^ 1] + v;
    """,
  ),
  "histogram_without_atomics": (
    5,
    "data race: reads shared h[0]",
    "grid=(1) block=(64)",
    """
    __shared__ int h[4];
    if (threadIdx.x < 4) h[threadIdx.x] = 0;
    __syncthreads();
    h[threadIdx.x % 4] += 1;
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = h[threadIdx.x];
    """,
  ),
  "neighbours_in_place": (
    4,
    "out[",
    "grid=(1) block=(64)",
    """
    out[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x > 0) out[threadIdx.x] += out[threadIdx.x - 1];
    """,
  ),
  "neighbours_in_place_between_blocks": (
    5,
    "another block",
    "grid=(2) block=(32)",
    """
    int i = blockIdx.x * 32 + threadIdx.x;
    out[i] = x[i];
    __syncthreads();
    if (i == 32) out[0] = out[i - 1];
    """,
  ),
  "read_by_one_block_written_by_another": (
    5,
    "another block",
    "grid=(3) block=(1)",
    """
    // The first launch fills `out`; see the plan.
    float v = out[0];
    out[1 + blockIdx.x] = v;
    if (blockIdx.x == 2) out[0] = v + 1.0f;
    """,
  ),
  "plain_write_beside_atomics": (
    4,
    "data race",
    "grid=(1) block=(64)",
    """
    __shared__ float s;
    if (threadIdx.x == 0) s = 0.0f;
    atomicAdd(&s, x[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[0] = s;
    """,
  ),
  "plain_write_after_everybody's_atomics": (
    6,
    "written by other threads",
    "grid=(1) block=(64)",
    """
    __shared__ float s;
    if (threadIdx.x == 0) s = 0.0f;
    __syncthreads();
    atomicAdd(&s, 1.0f);
    if (threadIdx.x == 63) s = 100.0f;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = s;
    """,
  ),
  "last_block_without_fence": (
    10,
    "another block",
    "grid=(4) block=(32)",
    """
    __shared__ bool last;
    if (threadIdx.x == 0) {
      out[1 + blockIdx.x] = x[blockIdx.x];
      last = atomicAdd(&count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
      float sum = 0.0f;
      for (int b = 0; b < gridDim.x; b++) sum += out[1 + b];
      out[0] = sum;
    }
    """,
  ),
  "lock_without_fence": (
    5,
    "nor __syncwarp()",
    "grid=(1) block=(64)",
    """
    if (threadIdx.x == 0) out[0] = 0.0f;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0) {}
    out[0] += x[threadIdx.x];
    atomicExch(&lock, 0);
    """,
  ),
  "global_variable": (
    2,
    "global variable total",
    "grid=(1) block=(64)",
    """
    total += x[threadIdx.x];
    out[0] = 1.0f;
    """,
  ),
  "halves_of_one_word": (
    4,
    "shared s[1]",
    "grid=(1) block=(64)",
    """
    __shared__ __half s[64];
    int t = threadIdx.x;
    s[t] = __float2half(x[t]); if (t == 40) s[1] = __float2half(-1.0f);
    __syncthreads();
    out[t] = __half2float(s[t]);
    """,
  ),
  "a_byte_that_two_threads_write": (
    3,
    "shared s[5]",
    "grid=(1) block=(64)",
    """
    __shared__ unsigned char s[64];
    s[threadIdx.x == 9 ? 5 : threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
    """,
  ),
  "memcpy": (
    4,
    "shared s[1] before anything",
    "grid=(1) block=(2)",
    """
    __shared__ float s[64];
    for (int i = threadIdx.x; i < 64; i += 2) s[i] = x[i];
    memcpy(&out[32 * threadIdx.x], &s[32 * threadIdx.x], 128);
    """,
  ),
}


def _text(body):
  return (
    "struct Best { float value; int index; };"
    "__device__ Best make_best(float v, int i) { Best b; b.value = v;"
    " b.index = i; return b; }"
    "__device__ Best better(Best a, Best b) { return b.value > a.value ? b : a; }"
    "__device__ float4 operator+(float4 a, float4 b) { return make_float4("
    "a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }"
    "__device__ int lock; __device__ unsigned count; __device__ float total;"
    "__global__ void k(const float* x, float* out) {" + body + "}"
  )


@pytest.mark.parametrize("name", RACES)
def test_race_is_found(lab, name):
  line, words, launch, body = RACES[name]
  text = _text(body)
  if "see the plan" in body:
    text = (
      f"// launch: fill grid=(1) block=(1)\n// launch: k {launch}\n"
      "__global__ void fill(const float* x, float* out) { out[0] = x[0]; }\n"
      + text
    )
    line += 3
  stop = lab.stop(text, size=64, inputs=X, launch=launch)
  assert stop.finding is not None, stop
  # Threads run one after another, so that a missing barrier may show itself as
  # memory that nobody has written yet.
  unwritten = "is a __syncthreads() missing?" in stop.message
  kind = "uninitialized_read" if unwritten else "data_race"
  assert stop.finding.kind == kind, stop
  assert words in stop.message
  assert stop.finding.line == line, stop.message


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
      float v = fmaxf(x[blockIdx.x * 64 + threadIdx.x], __int_as_float(assumed));
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
  text = "__device__ int flags[4]; __device__ float sums[4];" + _text(body)
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
