import math

from numba import cuda, float32, int32

THREADS = 128


@cuda.jit(device=True)
def is_better(value, place, other_value, other_place):
  if value != other_value:
    return value > other_value
  return place < other_place


# launch: row_argmax grid=(rows) block=(128)
@cuda.jit
def row_argmax(x, out, rows, cols):
  values = cuda.shared.array(THREADS, float32)
  places = cuda.shared.array(THREADS, int32)
  r, t = cuda.blockIdx.x, cuda.threadIdx.x
  values[t] = float32(-math.inf)
  places[t] = cols
  for c in range(t, cols, THREADS):
    if is_better(x[r, c], c, values[t], places[t]):
      values[t] = x[r, c]
      places[t] = c
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      other = t + half
      if is_better(values[other], places[other], values[t], places[t]):
        values[t] = values[other]
        places[t] = places[other]
    cuda.syncthreads()
    half //= 2
  if t == 0:
    out[r] = places[0]
