// row: 6
// problem: vector_add
// on: both
// expect: compile_error
// why: Runs when the process ends, as a destructor of C++.
__device__ int touched;
struct Late {
  __device__ ~Late() { touched = 1; }
};
__device__ Late late;
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
