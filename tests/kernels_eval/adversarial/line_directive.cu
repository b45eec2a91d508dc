// expect: compile_error
// Moves its errors to another file.
#line 1 "launch"
# 7 "launch"
__global__ void k(const float* x, const float* y, float* out, int n) {
  undeclared;
}
