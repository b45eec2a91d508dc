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
