// Kernels of the launcher's own.

#ifndef KE_HOST  // a test compiles this file for the CPU
__device__ float ke_half_as_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
#endif

// Leaves nothing in shared memory for the next kernel to find.
extern "C" __global__ void ke_scrub_shared(unsigned words, unsigned pattern) {
  extern __shared__ unsigned memory[];
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
    ((volatile unsigned*)memory)[i] = pattern;
}

// out[i] = base[a mixture of i and the key], as timing_inputs.places.
template <class T>
__device__ void draw(T* out, const T* base, unsigned long long items,
                     unsigned long long base_items, unsigned long long key,
                     unsigned long long ordinal) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x;
  for (i += threadIdx.x; i < items; i += step) {
    unsigned h = (unsigned)i + (unsigned)key;
    h = (h ^ h >> 15) * 0x9e3779b1u;
    h ^= (unsigned)(key >> 32);
    h = (h ^ h >> 13) * 0x85ebca77u;
    h += (unsigned)ordinal;
    h = (h ^ h >> 16) * 0xc2b2ae3du;
    out[i] = base[(h ^ h >> 15) & (unsigned)(base_items - 1)];
  }
}

#define KE_DRAW(name, type)                                                  \
  extern "C" __global__ void name(                                           \
      type* out, const type* base, unsigned long long items,                 \
      unsigned long long base_items, unsigned long long key,                 \
      unsigned long long ordinal) {                                          \
    draw(out, base, items, base_items, key, ordinal);                        \
  }
KE_DRAW(ke_draw_1, unsigned char)
KE_DRAW(ke_draw_2, unsigned short)
KE_DRAW(ke_draw_4, unsigned)
KE_DRAW(ke_draw_8, unsigned long long)

struct half_bits { unsigned short bits; };
struct bfloat16_bits { unsigned short bits; };
template <class T>
__device__ double number(T x) {
  return (double)x;
}
template <>
__device__ double number(half_bits x) {
  return (double)ke_half_as_float(x.bits);
}
template <>
__device__ double number(bfloat16_bits x) {
  return (double)__uint_as_float((unsigned)x.bits << 16);
}

__device__ double warp_sum(double x) {
  for (int lanes = 16; lanes > 0; lanes /= 2)
    x += __shfl_down_sync(0xffffffffu, x, lanes);
  return x;
}

// What two outputs differ by; zeros before the first kernel adds to it.
struct Compared {
  unsigned long long num_far;
  double squared_gaps, squares;
};

// An element is far if it differs from the expected one by more than
// gap + share * |expected|, or if either is no finite number.
template <class T>
__device__ void compare(const T* got, const T* expected,
                        unsigned long long items, double gap, double share,
                        Compared* sum) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x;
  double far = 0, squared_gaps = 0, squares = 0;
  for (i += threadIdx.x; i < items; i += step) {
    double g = number(got[i]), e = number(expected[i]);
    double difference = fabs(g - e);
    if (!(difference <= gap + share * fabs(e)) || !isfinite(e)) far++;
    squared_gaps += difference * difference;
    squares += e * e;
  }
  far = warp_sum(far);
  squared_gaps = warp_sum(squared_gaps);
  squares = warp_sum(squares);
  if (threadIdx.x % 32) return;
  atomicAdd(&sum->num_far, (unsigned long long)far);
  atomicAdd(&sum->squared_gaps, squared_gaps);
  atomicAdd(&sum->squares, squares);
}

#define KE_COMPARE(name, type)                                                \
  extern "C" __global__ void ke_compare_##name(                               \
      const type* got, const type* expected, unsigned long long items,        \
      double gap, double share, Compared* sum) {                              \
    compare(got, expected, items, gap, share, sum);                           \
  }
KE_COMPARE(float64, double)
KE_COMPARE(float32, float)
KE_COMPARE(float16, half_bits)
KE_COMPARE(bfloat16, bfloat16_bits)
KE_COMPARE(int64, long long)
KE_COMPARE(int32, int)
KE_COMPARE(int8, signed char)
KE_COMPARE(uint8, unsigned char)

// Adds to *sum a number that changes with every byte and its place.
extern "C" __global__ void ke_digest(const unsigned char* data,
                                     unsigned long long num_bytes,
                                     unsigned long long* sum) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x;
  unsigned long long own = 0;
  for (i += threadIdx.x; 4 * i < num_bytes; i += step) {
    unsigned long long word = 0;
    for (unsigned long long b = 4 * i; b < 4 * i + 4 && b < num_bytes; b++)
      word = word << 8 | data[b];
    unsigned long long x = (i << 32 | word) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
    own += x ^ x >> 32;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2)
    own += __shfl_down_sync(0xffffffffu, own, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}

// Adds to *sum how many bytes are others than they were set to.
extern "C" __global__ void ke_count_changed(const unsigned char* data,
                                            unsigned long long num_bytes,
                                            unsigned long long byte,
                                            unsigned long long* sum) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x;
  unsigned long long own = 0;
  for (i += threadIdx.x; i < num_bytes; i += step) own += data[i] != byte;
  if (own) atomicAdd(sum, own);
}
