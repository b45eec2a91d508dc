"""Text that several tests of races share."""

import numpy as np

X = {"x": np.arange(1, 257, dtype=np.float32)}
_COMMON = """
struct Best { float value; int index; };
__device__ Best make_best(float v, int i) {
  Best b; b.value = v; b.index = i; return b;
}
__device__ Best better(Best a, Best b) { return b.value > a.value ? b : a; }
__device__ float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ int lock; __device__ unsigned count; __device__ float total;
__device__ int flags[4]; __device__ float sums[4];
"""


def kernel_text(body):
  """A kernel with this body, which starts in the first line, and helpers."""
  return (
    "__global__ void k(const float* x, float* out);"
    + _COMMON.replace("\n", " ")
    + "__global__ void k(const float* x, float* out) {"
    + body
    + "}"
  )
