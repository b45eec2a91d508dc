// A scan over pairs (did a segment start here?, sum since then), one block per
// row. The operator is associative, so Hillis and Steele's scheme holds.
// launch: segmented_cumsum grid=(rows) block=(128)
struct Pair {
  float sum;
  int started;
};

__device__ Pair combine(Pair before, Pair after) {
  if (after.started) return after;
  return {before.sum + after.sum, before.started};
}

__global__ void segmented_cumsum(const float* __restrict__ x,
                                 const int* __restrict__ start,
                                 float* __restrict__ out, int rows, int cols) {
  __shared__ Pair scan[2][128];
  int t = threadIdx.x;
  Pair carry = {0.0f, 0};
  for (int first = 0; first < cols; first += 128) {
    int c = first + t;
    int i = blockIdx.x * cols + c;
    int source = 0;
    scan[0][t] = c < cols ? Pair{x[i], start[i]} : Pair{0.0f, 0};
    __syncthreads();
    // Two buffers in turn need one barrier for each step instead of two.
    for (int offset = 1; offset < 128; offset *= 2) {
      Pair own = scan[source][t];
      if (t >= offset) own = combine(scan[source][t - offset], own);
      scan[1 - source][t] = own;
      source = 1 - source;
      __syncthreads();
    }
    if (c < cols) out[i] = combine(carry, scan[source][t]).sum;
    carry = combine(carry, scan[source][127]);
    __syncthreads();
  }
}
