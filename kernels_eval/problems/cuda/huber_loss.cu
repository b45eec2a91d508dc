__global__ void huber_loss(const float* __restrict__ prediction,
                           const float* __restrict__ target,
                           float* __restrict__ out, float delta, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float d = fabsf(prediction[i] - target[i]);
  out[i] = d <= delta ? 0.5f * d * d : delta * (d - 0.5f * delta);
}
