// row: 26
// problem: vector_add
// on: both
// expect: compile_error
// why: Embeds a file.
__device__ const unsigned char bytes[] = {
#embed "/etc/passwd"
};
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = bytes[0];
}
