"""Data races that are found, each at the right line."""

import pytest

from tests.kernels_eval.kernels import X, kernel_text

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
  "one_of_many_readers_writes": (
    6,
    "read by other threads of the block",
    "grid=(1) block=(64)",
    """
    __shared__ float s;
    if (threadIdx.x == 0) s = 1.0f;
    __syncthreads();
    float v = s; __syncwarp(); v += s; __shfl_xor_sync(~0u, v, 1);
    if (threadIdx.x == 0) s = v + 1.0f;
    __syncthreads();
    out[threadIdx.x] = s;
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
    3,
    "writes shared s[1], which was read by thread 0",
    "grid=(1) block=(2)",
    """
    __shared__ float s[64];
    for (int i = threadIdx.x; i < 64; i += 2) s[i] = x[i];
    memcpy(&out[32 * threadIdx.x], &s[32 * threadIdx.x], 128);
    """,
  ),
}


@pytest.mark.parametrize("name", RACES)
def test_race_is_found(lab, name):
  line, words, launch, body = RACES[name]
  text = kernel_text(body)
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
