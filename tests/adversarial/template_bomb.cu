// row: -
// problem: vector_add
// on: both
// expect cpu: compile_error
// expect cuda: compile_error timeout
// why: Templates that instantiate one another.
template <int A, int B>
struct G {
  static const int v = G<A - 1, B>::v + G<A, B - 1>::v + G<A - 1, B - 1>::v;
};
__global__ void k(const float* x, const float* y, float* out, int n) {
  out[0] = G<400, 400>::v;
}
