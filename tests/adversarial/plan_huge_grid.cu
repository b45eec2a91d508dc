// row: -
// problem: vector_add
// on: both
// expect cpu: timeout
// expect cuda: timeout wrong_answer
// why: As many blocks as there can be.
// launch: k grid=(2147483647) block=(1024)
__global__ void k(const float* x, const float* y, float* out, int n) {
}
