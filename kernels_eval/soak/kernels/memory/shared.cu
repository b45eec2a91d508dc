// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: A mebibyte of shared memory.
__global__ void k(const float* x, const float* y, float* out, int n) {
  __shared__ float s[1 << 18];
  for (int j = threadIdx.x; j < 1 << 18; j += blockDim.x) s[j] = x[j % n];
  __syncthreads();
  out[0] = s[(1 << 18) - n];
}
