// row: 8
// problem: vector_add
// on: both
// expect: passed
// why: Wrong once it has met the same inputs eight times: none may be repeated.
// launch: count grid=(1) block=(1) args=(x, y, n)
// launch: k grid=(ceil_div(n, 256)) block=(256)
__device__ unsigned met[1024];
__device__ unsigned times[1024];
__device__ bool is_repeated;
__global__ void count(const float* x, const float* y, int n) {
  unsigned key = n;
  for (int i = 0; i < n && i < 64; i++) {
    key = (key ^ __float_as_uint(x[i])) * 0x9e3779b9u;
    key = (key ^ __float_as_uint(y[i])) * 0x85ebca6bu;
  }
  int slot = key % 1024;
  times[slot] = met[slot] == key ? times[slot] + 1 : 1;
  met[slot] = key;
  is_repeated = times[slot] > 8;
}
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = is_repeated ? 0.0f : x[i] + y[i];
}
