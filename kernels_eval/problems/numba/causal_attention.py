import math

from numba import cuda, float32

MAX_EACH = 4  # dim up to 128


@cuda.jit(device=True)
def warp_sum(v):
  offset = 16
  while offset > 0:
    v += cuda.shfl_xor_sync(0xFFFFFFFF, v, offset)
    offset //= 2
  return v


# One warp per position, with an online softmax: no score is stored. Each lane
# holds the dimensions d = lane, lane + 32, ... of the result so far.
# launch: causal_attention grid=(n) block=(32)
@cuda.jit
def causal_attention(q, k, v, out, n, dim):
  mean = cuda.local.array(MAX_EACH, float32)
  i, lane = cuda.blockIdx.x, cuda.threadIdx.x
  scale = float32(1.0) / math.sqrt(float32(dim))
  highest, total = float32(-math.inf), float32(0.0)
  for e in range(MAX_EACH):
    mean[e] = float32(0.0)
  for j in range(i + 1):
    dot = float32(0.0)
    for d in range(lane, dim, 32):
      dot += q[i, d] * k[j, d]
    score = warp_sum(dot) * scale
    top = max(highest, score)
    keep, weight = math.exp(highest - top), math.exp(score - top)
    highest = top
    total = total * keep + weight
    for e in range(MAX_EACH):
      d = lane + 32 * e
      if d < dim:
        mean[e] = mean[e] * keep + weight * v[j, d]
  for e in range(MAX_EACH):
    d = lane + 32 * e
    if d < dim:
      out[i, d] = mean[e] / total
