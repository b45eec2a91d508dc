// Kernels of the launcher's own.

// Leaves nothing in shared memory for the next kernel to find.
extern "C" __global__ void ke_scrub_shared(unsigned words, unsigned pattern) {
  extern __shared__ unsigned memory[];
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
    ((volatile unsigned*)memory)[i] = pattern;
}

// out[i] = base[(i + start) % base_items], in units of the element's size.
template <class T>
__device__ void repeat(T* out, const T* base, unsigned long long items,
                       unsigned long long base_items,
                       unsigned long long start) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x;
  for (i += threadIdx.x; i < items; i += step)
    out[i] = base[(i + start) % base_items];
}

#define KE_REPEAT(name, type)                                             \
  extern "C" __global__ void name(type* out, const type* base,            \
                                  unsigned long long items,               \
                                  unsigned long long base_items,          \
                                  unsigned long long start) {             \
    repeat(out, base, items, base_items, start);                          \
  }
KE_REPEAT(ke_repeat_1, unsigned char)
KE_REPEAT(ke_repeat_2, unsigned short)
KE_REPEAT(ke_repeat_4, unsigned)
KE_REPEAT(ke_repeat_8, unsigned long long)

__device__ double number(double x) { return x; }
__device__ double number(float x) { return x; }
__device__ double number(int x) { return x; }
__device__ double number(long long x) { return (double)x; }
__device__ double number(signed char x) { return x; }
__device__ double number(unsigned char x) { return x; }
struct half_bits { unsigned short bits; };
struct bfloat16_bits { unsigned short bits; };
__device__ double number(half_bits x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
}
__device__ double number(bfloat16_bits x) {
  return __uint_as_float((unsigned)x.bits << 16);
}

// Adds to *count how many elements are far from what is expected: by more than
// both bounds, or only one of the two is a number. Equal infinities are not.
template <class T>
__device__ void count_far(const T* got, const T* expected,
                          unsigned long long items, double largest_gap,
                          double largest_share, unsigned long long* count) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x;
  unsigned long long far = 0;
  for (i += threadIdx.x; i < items; i += step) {
    double g = number(got[i]), e = number(expected[i]);
    if (g == e || (g != g && e != e)) continue;
    double gap = fabs(g - e);
    if (!(gap <= largest_gap || gap <= largest_share * fabs(e))) far++;
  }
  if (far) atomicAdd(count, far);
}

#define KE_COUNT_FAR(name, type)                                              \
  extern "C" __global__ void ke_count_far_##name(                             \
      const type* got, const type* expected, unsigned long long items,        \
      double largest_gap, double largest_share, unsigned long long* count) {  \
    count_far(got, expected, items, largest_gap, largest_share, count);       \
  }
KE_COUNT_FAR(float64, double)
KE_COUNT_FAR(float32, float)
KE_COUNT_FAR(float16, half_bits)
KE_COUNT_FAR(bfloat16, bfloat16_bits)
KE_COUNT_FAR(int64, long long)
KE_COUNT_FAR(int32, int)
KE_COUNT_FAR(int8, signed char)
KE_COUNT_FAR(uint8, unsigned char)
