// The mean and the sum of squared differences of all threads are merged by
// Chan's formula, so that one pass over the row is enough.
// launch: layer_norm grid=(rows) block=(128)
struct Moments {
  float count, mean, squares;
};

__device__ Moments merge(Moments a, Moments b) {
  float count = a.count + b.count;
  if (count == 0.0f) return a;
  float difference = b.mean - a.mean;
  float share = b.count / count;
  return {count, a.mean + difference * share,
          a.squares + b.squares + difference * difference * a.count * share};
}

__global__ void layer_norm(const float* __restrict__ x,
                           const float* __restrict__ gamma,
                           const float* __restrict__ beta,
                           float* __restrict__ out, int rows, int cols) {
  __shared__ Moments moments[128];
  const float* row = x + blockIdx.x * cols;
  int t = threadIdx.x;
  Moments mine = {0.0f, 0.0f, 0.0f};
  for (int c = t; c < cols; c += blockDim.x) {
    mine = merge(mine, Moments{1.0f, row[c], 0.0f});
  }
  moments[t] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) moments[t] = merge(moments[t], moments[t + half]);
    __syncthreads();
  }
  float mean = moments[0].mean;
  float scale = rsqrtf(moments[0].squares / cols + 1e-5f);
  for (int c = t; c < cols; c += blockDim.x) {
    out[blockIdx.x * cols + c] = (row[c] - mean) * scale * gamma[c] + beta[c];
  }
}
