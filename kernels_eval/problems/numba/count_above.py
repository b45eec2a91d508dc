from numba import cuda


# The counter starts with poison, so a launch of its own sets it to 0.
# launch: clear grid=(1) block=(1) args=(out)
# launch: count grid=(ceil_div(n, 256)) block=(256) args=(x, out, threshold, n)
@cuda.jit
def clear(out):
  out[0] = 0


@cuda.jit
def count(x, out, threshold, n):
  i = cuda.grid(1)
  is_above = 0
  if i < n and x[i] > threshold:
    is_above = 1
  in_block = cuda.syncthreads_count(is_above)
  if cuda.threadIdx.x == 0:
    cuda.atomic.add(out, 0, in_block)
