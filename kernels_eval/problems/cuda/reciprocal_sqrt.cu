__global__ void reciprocal_sqrt(const float* __restrict__ x,
                                float* __restrict__ out, float epsilon, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = rsqrtf(__ldg(&x[i]) + epsilon);
}
