from numba import cuda, float32


# One thread per channel walks through time; neighbouring threads read
# neighbouring channels.
@cuda.jit
def linear_recurrence(x, decay, out, steps, channels):
  k = cuda.grid(1)
  if k < channels:
    state = float32(0.0)
    for t in range(steps):
      state = decay[t, k] * state + x[t, k]
      out[t, k] = state
