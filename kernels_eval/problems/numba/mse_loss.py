from numba import cuda, float32

THREADS = 128


# The result is an accumulator of atomics, so a first launch sets it to 0.
# launch: clear grid=(1) block=(1) args=(out)
# launch: mse_loss grid=(ceil_div(n, 512)) block=(128)
@cuda.jit
def clear(out):
  out[0] = float32(0.0)


@cuda.jit
def mse_loss(prediction, target, out, n):
  partial = cuda.shared.array(THREADS, float32)
  t = cuda.threadIdx.x
  total = float32(0.0)
  for i in range(cuda.grid(1), n, cuda.gridsize(1)):
    difference = prediction[i] - target[i]
    total += difference * difference
  partial[t] = total
  cuda.syncthreads()
  half = THREADS // 2
  while half > 0:
    if t < half:
      partial[t] += partial[t + half]
    cuda.syncthreads()
    half //= 2
  if t == 0:
    cuda.atomic.add(out, 0, partial[0] / float32(n))
