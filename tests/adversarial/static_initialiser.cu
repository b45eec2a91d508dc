// row: -
// problem: vector_add
// on: both
// expect: compile_error
// why: Runs at load time, as a constructor of C++.
__device__ int touched;
struct Early {
  __device__ Early() { touched = 1; }
};
__device__ Early early;
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
