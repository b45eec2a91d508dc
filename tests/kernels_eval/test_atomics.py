"""Atomic operations."""

import numpy as np
import pytest

from kernels_eval.dtypes import DTYPES

X = np.array([5, -3, 8, 5, 2, -7, 1, 6] * 4, np.int32)


def test_integer_operations(lab):
  text = """
  __global__ void k(const int* x, int* out) {
    __shared__ int s[9];
    int t = threadIdx.x, v = x[t];
    if (t < 9) s[t] = t == 2 ? 1000 : t == 4 ? -1 : 0;
    __syncthreads();
    atomicAdd(&s[0], v);
    atomicSub(&s[1], v);
    atomicMin(&s[2], v);
    atomicMax(&s[3], v);
    atomicAnd(&s[4], v);
    atomicOr(&s[5], v);
    atomicXor(&s[6], v * 3);
    atomicExch(&s[7], 42);
    atomicCAS(&s[8], 0, 17);
    __syncthreads();
    if (t < 9) out[t] = s[t];
  }"""
  got = lab.out(text, "int32", 9, inputs={"x": X})
  expected = [
    X.sum(), -X.sum(), X.min(), X.max(), np.bitwise_and.reduce(X),
    np.bitwise_or.reduce(X), np.bitwise_xor.reduce(X * 3), 42, 17,
  ]  # fmt: skip
  np.testing.assert_array_equal(got, expected)


def test_unsigned_and_wrapping_operations(lab):
  text = """
  __global__ void k(unsigned* out) {
    __shared__ unsigned s[5];
    __shared__ unsigned long long w[4];
    int t = threadIdx.x;
    if (t < 5) s[t] = t == 2 ? 7 : 0;
    if (t < 4) w[t] = t == 1 ? ~0ull : 0;
    __syncthreads();
    atomicInc(&s[0], 9);            // 32 steps of 0..9
    atomicDec(&s[1], 9);            // 0 goes to 9
    atomicMax(&s[3], (unsigned)-5); // unsigned comparison
    atomicSub(&s[4], 1u);
    atomicAdd(&w[0], 1ull << 33);
    atomicMin(&w[1], 5ull + t);
    atomicMax(&w[2], 1ull << t);
    atomicCAS(&w[3], 0ull, 9ull);
    __syncthreads();
    if (t == 0) {
      for (int i = 0; i < 5; i++) out[i] = s[i];
      out[5] = w[0] >> 33; out[6] = w[1]; out[7] = w[2] == 1ull << 31;
      out[8] = w[3];
    }
  }"""
  got = lab.out(text, "int32", 9).view(np.uint32)
  dec = (0 - 32) % 10
  expected = [32 % 10, dec, 7, 2**32 - 5, 2**32 - 32, 32, 5, 1, 9]
  np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(lab, dtype):
  c = DTYPES[dtype].cuda
  text = f"""
  __global__ void k(const int* x, {c}* out) {{
    __shared__ {c} s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    {c} old = atomicAdd(&s, ({c})(x[threadIdx.x] * 0.25));
    out[1 + threadIdx.x] = old;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = s;
  }}"""
  got = lab.out(text, dtype, 33, inputs={"x": X})
  assert got[0] == X.sum() * 0.25
  # The old values are the sums in the order of the operations.
  np.testing.assert_array_equal(got[1:], np.cumsum(X * 0.25) - X * 0.25)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_floats(lab, dtype):
  c = DTYPES[dtype].cuda
  pair = {"float16": "__half2", "bfloat16": "__nv_bfloat162"}[dtype]
  text = f"""
  __global__ void k({c}* out) {{
    __shared__ {c} s[4];
    if (threadIdx.x < 4) s[threadIdx.x] = {c}(0.0f);
    __syncthreads();
    atomicAdd(&s[1], {c}(0.5f));
    atomicAdd(({pair}*)&s[2], {pair}({c}(1.0f), {c}(2.0f)));
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = s[threadIdx.x];
  }}"""
  got = DTYPES[dtype].decode(lab.out(text, dtype, 4))
  np.testing.assert_array_equal(got, [0, 16, 32, 64])


def test_compare_and_swap_loops(lab):
  text = """
  __device__ float max_float(float* p, float v) {
    int* address = (int*)p;
    int old = *address, assumed;
    do {
      assumed = old;
      old = atomicCAS(address, assumed,
                      __float_as_int(fmaxf(v, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
  }
  __device__ double add_double(double* p, double v) {
    unsigned long long* address = (unsigned long long*)p;
    unsigned long long old = *address, assumed;
    do {
      assumed = old;
      old = atomicCAS(address, assumed,
                      __double_as_longlong(v + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
  }
  __device__ unsigned short step(unsigned short* p) {
    unsigned short old = *p, assumed;
    do {
      assumed = old;
      old = atomicCAS(p, assumed, (unsigned short)(old + 1));
    } while (assumed != old);
    return old;
  }
  __global__ void k(const int* x, double* out) {
    __shared__ float most; __shared__ double sum; __shared__ unsigned short n;
    if (threadIdx.x == 0) { most = -INFINITY; sum = 0; n = 0; }
    __syncthreads();
    max_float(&most, x[threadIdx.x] * 0.5f);
    add_double(&sum, x[threadIdx.x] * 0.5);
    step(&n);
    __syncthreads();
    if (threadIdx.x == 0) { out[0] = most; out[1] = sum; out[2] = n; }
  }"""
  got = lab.out(text, "float64", 3, inputs={"x": X})
  np.testing.assert_array_equal(got, [X.max() * 0.5, X.sum() * 0.5, 32])


def test_global_atomics_between_blocks(lab):
  text = """
  // launch: clear grid=(1) block=(8) args=(out)
  // launch: count grid=(16) block=(32)
  __global__ void clear(int* out) { out[threadIdx.x] = 0; }
  __global__ void count(const int* x, int* out) {
    atomicAdd(&out[x[threadIdx.x] & 7], 1);
    atomicAdd_block(&out[x[threadIdx.x] & 7], 0);
    atomicAdd_system(&out[x[threadIdx.x] & 7], 0);
  }"""
  got = lab.out(text, "int32", 8, inputs={"x": X})
  np.testing.assert_array_equal(got, 16 * np.bincount(X & 7, minlength=8))
