// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: Words of the host API where they do nothing.
// Called as k<<<(n + 255) / 256, 256>>>(x, y, out, n) from main(), after
// cudaMalloc(&x, bytes) and cudaMemcpy(x, host, bytes, ...).
/* int main() { cudaDeviceSynchronize(); asm("trap;"); system("ls"); } */
__global__ void k(const float* x, const float* y, float* out, int n) {
  if (n < 0) printf("main() cudaFree(p) <<<1, 1>>> asm(x)\n");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
