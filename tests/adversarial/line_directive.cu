// row: -
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: compile_error contract_violation
// why: Moves its errors to another file.
#line 1 "launch"
# 7 "launch"
__global__ void k(const float* x, const float* y, float* out, int n) {
  undeclared;
}
