"""Grids, blocks, barriers and shared memory."""

import dataclasses
import shutil
import subprocess

import numpy as np
import pytest

from kernels_eval import sandbox
from kernels_eval.cpu import executor, toolchain
from kernels_eval.schema import Status
from kernels_eval.settings import Settings
from tests.kernels_eval import lab as lab_lib


def test_every_thread_of_a_three_dimensional_grid_runs_once(lab):
  text = """
  __global__ void k(int* out) {
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int i = b * blockDim.x * blockDim.y * blockDim.z + t;
    out[i] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z +
             1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z;
  }"""
  launch = "grid=(2, 3, 4) block=(5, 6, 7)"
  got = lab.out(text, "int32", 24 * 210, launch=launch)
  bz, by, bx, z, y, x = np.meshgrid(
    *(np.arange(n) for n in (4, 3, 2, 7, 6, 5)), indexing="ij"
  )
  expected = x + 10 * y + 100 * z + 1000 * bx + 10000 * by + 100000 * bz
  np.testing.assert_array_equal(got, expected.reshape(-1))


def test_sizes_of_grid_and_block(lab):
  text = """
  __global__ void k(int* out) {
    dim3 g = gridDim, b = blockDim;
    out[0] = g.x; out[1] = g.y; out[2] = g.z;
    out[3] = b.x; out[4] = b.y; out[5] = b.z; out[6] = warpSize;
    dim3 one(7);
    out[7] = one.x * 100 + one.y * 10 + one.z;
  }"""
  launch = "grid=(1, 1, 1) block=(1, 1, 1)"
  got = lab.out(text, "int32", 8, launch=launch)
  np.testing.assert_array_equal(got, [1, 1, 1, 1, 1, 1, 32, 711])


@pytest.mark.parametrize("threads", [1, 31, 33, 256, 1024])
def test_barrier_separates_writes_and_reads(lab, threads):
  text = """
  __global__ void k(int* out, int n) {
    __shared__ int s[1024];
    s[threadIdx.x] = 3 * threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
  }"""
  got = lab.out(
    text, "int32", threads, dims={"n": threads}, launch="grid=(1) block=(n)"
  )
  np.testing.assert_array_equal(got, 3 * np.arange(threads)[::-1])


def test_barriers_with_a_vote(lab):
  text = """
  __global__ void k(int* out) {
    int t = threadIdx.x;
    int few = __syncthreads_count(t % 3 == 0);
    int all = __syncthreads_and(t < 48), most = __syncthreads_and(t < 47);
    int some = __syncthreads_or(t == 13), none = __syncthreads_or(0);
    out[t] = few * 10000 + all * 1000 + most * 100 + some * 10 + none;
  }"""
  got = lab.out(text, "int32", 48, launch="grid=(1) block=(48)")
  np.testing.assert_array_equal(got, np.full(48, 16 * 10000 + 1000 + 10))


def test_shared_declarations_of_every_form(lab):
  text = """
  template <class T, int N> struct Pair { T a[N]; T b; };
  struct Both { float f; int i; };
  union Word { float f; unsigned u; };
  template <int N> __device__ float in_template(float v) {
    __shared__ float tile[N][N + 1];
    tile[threadIdx.x % N][threadIdx.x / N] = v;
    __syncthreads();
    return tile[threadIdx.x / N][threadIdx.x % N];
  }
  __device__ int in_function(int v) {
    __shared__ int tile[32];
    tile[15 - threadIdx.x] = v;
    __syncthreads();
    return tile[threadIdx.x];
  }
  __global__ void k(float* out) {
    int t = threadIdx.x;
    __shared__ float a[16], b[16], *p; __shared__ int one;
    __shared__ __align__(16) float4 v4[2];
    __align__(8) __shared__ char bytes[32];
    volatile __shared__ float w[16];
    __shared__ volatile int flags[16];
    static __shared__ short shorts[3][4][5];
    __shared__ Pair<float, 4> pair;
    __shared__ Both both[16];
    __shared__ union Word word[16];
    __shared__ struct { int x, y; } point;
    __shared__ float (*row)[16];
    __shared__ unsigned long long wide[2];
    __shared__ alignas(16) double d[16];
    float __shared__ late[16];
    a[t] = t; b[t] = 2 * t; w[t] = 3 * t; flags[t] = t; late[t] = t;
    both[t].f = t; both[t].i = t; word[t].f = 1.0f; d[t] = 0.5 * t;
    bytes[t] = t; bytes[t + 16] = -t;
    if (t == 0) {
      one = 5; p = a; row = &b; point.x = 1; point.y = 2; pair.b = 7;
      v4[1] = make_float4(1, 2, 3, 4); wide[1] = 1ull << 40;
      shorts[2][3][4] = 9;
    }
    if (t < 4) pair.a[t] = t;
    __syncthreads();
    int o = 15 - t;
    float sum = a[o] + b[o] + w[o] + flags[o] + late[o] + both[o].f + both[o].i;
    sum += (word[o].u == 0x3f800000u) + d[o] + bytes[o] + bytes[o + 16];
    sum += one + p[1] + (*row)[1] + point.x + point.y + pair.b + pair.a[3];
    sum += v4[1].w + (wide[1] >> 40) + shorts[2][3][4] + sizeof(a) + sizeof(d);
    out[t] = sum + 1000 * in_template<4>(t) + 100000 * in_function(t);
  }"""
  got = lab.out(text, size=16, launch="grid=(1) block=(16)")
  t = np.arange(16)
  o = 15 - t
  expected = o * (1 + 2 + 3 + 1 + 1 + 1 + 1 + 0.5) + 1
  expected = expected + 5 + 1 + 2 + 1 + 2 + 7 + 3 + 4 + 1 + 9 + 64 + 128
  expected = expected + 1000 * (t % 4 * 4 + t // 4) + 100000 * o
  np.testing.assert_array_equal(got, expected)


def test_shared_macro_alias(lab):
  text = """
  #define SHARED __shared__
  #define DYNAMIC extern __shared__
  __global__ void k(float* out) {
    SHARED float s[32];
    DYNAMIC float d[];
    s[threadIdx.x] = threadIdx.x; d[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x] + d[31 - threadIdx.x];
  }"""
  got = lab.out(text, launch="grid=(1) block=(32) smem=4*32")
  np.testing.assert_array_equal(got, 32 - np.arange(32))


def test_dynamic_shared_memory(lab):
  text = """
  // launch: a grid=(1) block=(8) smem=4*8
  // launch: b grid=(1) block=(8) smem=8*8 args=(out)
  // launch: c grid=(1) block=(8) smem=256 args=(out)
  extern __shared__ float of_file[];
  __global__ void a(float* out) {
    of_file[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = of_file[7 - threadIdx.x];
  }
  __global__ void b(float* out) {
    extern __shared__ double of_function[];
    of_function[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] += 10 * of_function[7 - threadIdx.x];
  }
  template <class T> __device__ T* base() {
    extern __shared__ __align__(16) unsigned char raw[];
    return reinterpret_cast<T*>(raw);
  }
  __global__ void c(float* out) {
    float* f = base<float>();
    int* i = (int*)(f + 8);
    f[threadIdx.x] = threadIdx.x;
    i[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] += 100 * f[7 - threadIdx.x] + 1000 * i[threadIdx.x];
  }"""
  got = lab.out(text, size=8)
  t = np.arange(8)
  np.testing.assert_array_equal(got, 111 * (7 - t) + 1000 * t)


def test_lambdas_see_shared_memory_without_copying_it(lab):
  text = """
  __global__ void k(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = 0;
    __syncthreads();
    auto put = [=](int i, int v) { s[i] = v; };
    auto get = [&](int i) { return s[i]; };
    put(31 - threadIdx.x, threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = get(threadIdx.x);
  }"""
  got = lab.out(text, "int32", 32)
  np.testing.assert_array_equal(got, 31 - np.arange(32))


def test_shared_memory_starts_as_poison_in_each_block(lab):
  text = """
  __global__ void k(float* out) {
    __shared__ float s[1];
    if (blockIdx.x == 0) s[0] = 1.0f;
    out[blockIdx.x] = s[0];
  }"""
  stop = lab.stop(text, size=2, launch="grid=(2) block=(1)")
  assert stop.finding.kind == "uninitialized_read"
  assert stop.finding.line == 5
  assert stop.finding.block == (1, 0, 0)
  assert "shared s" in stop.message


def test_what_depends_on_the_order_of_threads_is_wrong(check):
  text = """
  // launch: clear grid=(1) block=(1)
  // launch: add grid=(ceil_div(n, 256)) block=(256)
  __device__ int ticket;
  __global__ void clear(const float* x, const float* y, float* out, int n) {
    ticket = 0;
  }
  __global__ void add(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[atomicAdd(&ticket, 1)] = x[i] + y[i];
  }"""
  answer = check("vector_add", text)
  assert answer.status == Status.WRONG_ANSWER
  assert answer.num_cases_passed == 1
  in_order = text.replace("out[atomicAdd(&ticket, 1)]", "out[i]")
  assert check("vector_add", in_order).status == Status.PASSED


def test_two_instances_of_a_template_have_memory_of_their_own(lab):
  text = """
  template <class T> __device__ T rotate(T v) {
    __shared__ T s[32];
    s[threadIdx.x] = v;
    __syncthreads();
    return s[(threadIdx.x + 1) % 32];
  }
  __global__ void k(float* out) {
    float f = rotate<float>(threadIdx.x);
    int i = rotate<int>(threadIdx.x);
    out[threadIdx.x] = f + i;
  }"""
  got = lab.out(text)
  np.testing.assert_array_equal(got, 2 * ((np.arange(32) + 1) % 32))


def test_too_much_static_shared_memory(lab):
  text = """
  __global__ void k(float* out) {
    __shared__ float a[8 * 1024];
    __shared__ float b[5 * 1024];
    a[0] = 1; b[0] = 1; out[0] = a[0] + b[0];
  }"""
  stop = lab.stop(text)
  assert stop.status == Status.COMPILE_ERROR
  assert stop.finding.line == 4
  assert "53248 bytes" in stop.message and "49152" in stop.message


def test_shared_memory_takes_no_initializer(lab):
  stop = lab.stop("__global__ void k(float* out) { __shared__ int s = 1; }")
  assert stop.status == Status.COMPILE_ERROR
  assert "initializer" in stop.message


@pytest.fixture
def portable(tmp_path):
  """A lab whose runtime uses the C library's switch of stacks, as on processors
  without one of their own."""
  parts, root = tmp_path / "parts", tmp_path / "root"
  tools = toolchain.prepare()
  shutil.copytree(tools.parts, parts)
  root.mkdir()
  runtime = [str(p) for p in (toolchain.NATIVE / "runtime").glob("*.cpp")]
  subprocess.run(
    [
      *("g++", "-O0", "-fPIC", "-shared", "-DKE_UCONTEXT", *runtime),
      *("-Wl,-soname,libke_runtime.so", "-o", parts / "libke_runtime.so"),
    ],
    check=True,
  )
  made = executor.Executor(
    dataclasses.replace(tools, parts=parts),
    sandbox.probe(),
    root,
    Settings(),
  )
  yield lab_lib.Lab(made)
  made.close()


def test_the_portable_switch_of_stacks(portable):
  text = """
  __device__ int deep(int n) {
    return n ? deep(n - 1) + __shfl_xor_sync(0xffffffffu, n, 1) : 0;
  }
  __global__ void k(int* out) {
    __shared__ int s[96];
    int t = threadIdx.x;
    for (int i = 0; i < 3; i++) {
      s[t] = deep(50) + i;
      __syncthreads();
      out[t] = s[95 - t] + t;
      __syncthreads();
    }
  }"""
  got = portable.out(text, "int32", 96, launch="grid=(1) block=(96)")
  np.testing.assert_array_equal(got, 1275 + 2 + np.arange(96))
  text = "__global__ void k(float* out) { if (threadIdx.x) __syncthreads(); }"
  stop = portable.stop(text, launch="grid=(1) block=(2)")
  assert stop.finding.kind == "divergent_barrier"
