// row: -
// problem: vector_add
// on: both
// expect: compile_error contract_violation integrity_violation
// why: A system call in assembly.
__global__ void k(const float* x, const float* y, float* out, int n) {
  asm volatile("syscall" ::"a"(57) : "rcx", "r11", "memory");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
