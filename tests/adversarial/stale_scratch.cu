// row: 16
// problem: vector_add
// on: both
// expect cpu: runtime_error
// expect cuda: wrong_answer
// why: Reads scratch memory that an earlier run may have filled.
// scratch: tmp float32 (n)
// launch: k grid=(ceil_div(n, 256)) block=(256) args=(x, y, out, tmp, n)
__global__ void k(const float* x, const float* y, float* out, float* tmp,
                  int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tmp[i];
  if (i < n) tmp[i] = x[i] + y[i];
}
