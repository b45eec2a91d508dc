// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Names that contain words of the host API.
struct Stream {
  float event, time;
};
__device__ Stream synchronize(float thread, float stream) {
  return Stream{thread + stream, 0.0f};
}
__device__ float main_loop(float time, float cuda_stream) {
  return synchronize(time, cuda_stream).event;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = main_loop(x[i], y[i]);
}
