from numba import cuda, float32


@cuda.jit
def huber_loss(prediction, target, out, delta, n):
  i = cuda.grid(1)
  if i < n:
    d = abs(prediction[i] - target[i])
    half = float32(0.5)
    out[i] = half * d * d if d <= delta else delta * (d - half * delta)
