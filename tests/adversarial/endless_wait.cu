// row: -
// problem: vector_add
// on: both
// expect: timeout
// why: Waits for what nobody writes.
__global__ void k(const float* x, const float* y, float* out, int n) {
  atomicExch((int*)out, 1);
  while (atomicAdd((int*)out, 0) != 7) {
    if (threadIdx.x == 0) atomicExch((int*)out, 1);
  }
}
