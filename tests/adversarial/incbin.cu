// row: 26
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: compile_error passed
// why: Embeds a file by way of the assembler.
asm(".section .rodata\nsecret: .incbin \"/etc/passwd\"\n");
__global__ void k(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
