import math

from numba import cuda, float32

THREADS = 64


# One block per query; the scores of all keys lie in dynamic shared memory.
# launch: attention grid=(queries) block=(64) smem=4*keys
@cuda.jit
def attention(q, k, v, out, queries, keys, dim):
  score = cuda.shared.array(0, float32)
  buffer = cuda.shared.array(THREADS, float32)
  i, t = cuda.blockIdx.x, cuda.threadIdx.x
  scale = float32(1.0) / math.sqrt(float32(dim))
  highest = float32(-math.inf)
  for j in range(t, keys, THREADS):
    dot = float32(0.0)
    for d in range(dim):
      dot += q[i, d] * k[j, d]
    score[j] = dot * scale
    highest = max(highest, score[j])
  buffer[t] = highest
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      buffer[t] = max(buffer[t], buffer[t + half])
    cuda.syncthreads()
    half //= 2
  highest = buffer[0]
  cuda.syncthreads()

  total = float32(0.0)
  for j in range(t, keys, THREADS):
    score[j] = math.exp(score[j] - highest)
    total += score[j]
  buffer[t] = total
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      buffer[t] += buffer[t + half]
    cuda.syncthreads()
    half //= 2
  inverse = float32(1.0) / buffer[0]

  for d in range(t, dim, THREADS):
    mean = float32(0.0)
    for j in range(keys):
      mean += score[j] * v[j, d]
    out[i, d] = mean * inverse
