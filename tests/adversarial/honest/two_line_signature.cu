// row: 37
// problem: vector_add
// on: both
// expect: passed
// why: The name stands in a line of its own, in a comment's company.
extern "C" __global__ /* void wrong( */ void
// not_the_name(
k
(
    const float* x,  // __global__ void other(
    const float* y,
    float* out,
    int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
