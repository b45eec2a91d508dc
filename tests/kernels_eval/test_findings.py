"""What the run-time checks find, with the candidate's own line."""

import dataclasses

import numpy as np
import pytest

from kernels_eval.schema import Status

X = {"x": np.arange(64, dtype=np.float32)}
_HEAD = """
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int zero;
__device__ int deep(int n, volatile int* p) {
  volatile int pad[64];
  pad[n % 64] = n;
  return n == 0 ? pad[0] : deep(n - 1, p) + pad[n % 64] + *p;
}
struct Pair { float a, b; };
__device__ float sum4(float4 v) { return v.x + v.y + v.z + v.w; }
__device__ Pair both(Pair p, Pair q) { return Pair{p.a + q.a, p.b + q.b}; }
__device__ float4 operator+(float4 p, float4 q) {
  return make_float4(p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w);
}
__global__ void k(const float* x, float* out) {
  int t = threadIdx.x;
"""
_FIRST = _HEAD.count("\n")  # the line before the body's first

# name: (kind, line within the body, words of the message, launch, body)
FINDINGS = {
  "write_just_past": (
    "out_of_bounds", 1, "writes out[64], but out has 64 elements",
    "block=(65)", "out[t] = 1.0f;",
  ),
  "read_just_past": (
    "out_of_bounds", 1, "reads x[64], but x has 64 elements",
    "block=(64)", "out[t] = x[t + 1];",
  ),
  "read_before": (
    "out_of_bounds", 1, "reads x[-1]", "block=(64)", "out[t] = x[t - 1];",
  ),
  "write_far_away": (
    "out_of_bounds", 1, "far outside of every buffer",
    "block=(1)", "out[(size_t(1) << 40) + t] = x[0];",
  ),
  "write_a_page_away": (
    "out_of_bounds", 1, "writes out[10000]", "block=(1)", "out[10000] = 1.0f;",
  ),
  "null": (
    "out_of_bounds", 2, "null pointer",
    "block=(1)", "float* p = nullptr;\n  p[t] = x[0];",
  ),
  "a_number_as_address": (
    "out_of_bounds", 1, "far outside",
    "block=(1)", "out[0] = *(const float*)0x7000000000ull;",
  ),
  "shared_static": (
    "out_of_bounds", 2, "index 64 of an array of type 'float [64]'",
    "block=(65)", "__shared__ float s[64];\n  s[t] = 1.0f;",
  ),
  "shared_static_by_pointer": (
    "out_of_bounds", 3, "writes shared s[64], but s has 64 elements",
    "block=(65)",
    "__shared__ float s[64], other[64];\n  float* p = s;\n  p[t] = 1.0f;"
    "\n  other[t % 64] = 0.0f;",
  ),
  "shared_inner_dimension": (
    "out_of_bounds", 2, "index 4 of an array of type 'float [4]'",
    "block=(1)", "__shared__ float s[4][4];\n  s[1][t + 4] = 1.0f;",
  ),
  "shared_dynamic": (
    "out_of_bounds", 2, "dynamic shared memory at byte 256, but the launch "
    "gives smem=256 bytes",
    "block=(65) smem=256", "extern __shared__ float d[];\n  d[t] = 1.0f;",
  ),
  "shared_dynamic_forgotten": (
    "out_of_bounds", 2, "smem=0 bytes",
    "block=(1)", "extern __shared__ float d[];\n  d[t] = 1.0f;",
  ),
  "local_array": (
    "out_of_bounds", 2, "index 8 of an array of type 'float [8]'",
    "block=(9)", "float a[8] = {};\n  a[t] = 1.0f; out[t] = a[t / 2];",
  ),
  "constant_table": (
    "out_of_bounds", 1, "index 4 of an array of type 'float [4]'",
    "block=(5)", "float v = table[t]; if (v > 100.0f) out[0] = v;",
  ),
  "another_thread's_local_memory": (
    "out_of_bounds", 5, "the local memory of another thread",
    "block=(32)",
    "__shared__ float* p;\n  float mine = x[t];\n  if (t == 0) p = &mine;"
    "\n  __syncthreads();\n  if (t == 1) *p = 2.0f;\n  __syncthreads();"
    "\n  out[t] = mine;",
  ),
  "misaligned_float4": (
    "misaligned", 1, "not a multiple of 16",
    "block=(1)", "float4 v = *(const float4*)(x + 1); out[0] = v.x + v.w;",
  ),
  "misaligned_store": (
    "misaligned", 1, "not a multiple of 8",
    "block=(1)", "*(float2*)(out + 1) = make_float2(1, 2);",
  ),
  "misaligned_atomic": (
    "misaligned", 1, "updates 4 bytes at out[0]",
    "block=(1)", "atomicExch((int*)((char*)out + 2), 1);",
  ),
  # Objects that go to functions and come from them by value.
  "argument_of_a_function": (
    "out_of_bounds", 1, "reads x[64]",
    "block=(17)", "out[t] = sum4(((const float4*)x)[t]);",
  ),
  "argument_of_an_operator": (
    "out_of_bounds", 2, "reads x[64]",
    "block=(1)", "const float4* v = (const float4*)x;\n"
    "  ((float4*)out)[0] = v[1] + v[16];",
  ),
  "result_of_a_function": (
    "out_of_bounds", 2, "writes out[64]",
    "block=(1)", "Pair* p = (Pair*)out; const Pair* q = (const Pair*)x;\n"
    "  p[32] = both(q[0], q[1]);",
  ),
  "half_as_argument": (
    "out_of_bounds", 1, "reads x[64]",
    "block=(1)", "out[t] = __half2float(((const __half*)x)[128]);",
  ),
  "half_as_result": (
    "out_of_bounds", 1, "writes out[64]",
    "block=(1)", "((__half*)out)[128] = __float2half(x[0]);",
  ),
  "unwritten_argument": (
    "uninitialized_read", 2, "reads shared s before",
    "block=(1)",
    "__shared__ Pair s;\n  out[t] = both(s, Pair{1, 2}).a;",
  ),
  "cached_load": (
    "out_of_bounds", 1, "reads x[64]", "block=(1)", "out[t] = __ldg(x + 64);",
  ),
  "unwritten_shared": (
    "uninitialized_read", 2, "reads shared s[3] before",
    "block=(4)",
    "__shared__ float s[4];\n  if (t < 3) s[t] = 1; out[t] = s[t];",
  ),
  "unwritten_dynamic_shared": (
    "uninitialized_read", 2, "dynamic shared memory at byte 8",
    "block=(1) smem=64", "extern __shared__ float d[];\n  out[t] = d[2];",
  ),
  "unwritten_output": (
    "uninitialized_read", 1, "reads out[0] before",
    "block=(1)", "out[t] += x[t];",
  ),
  "atomic_on_unwritten_output": (
    "uninitialized_read", 1, "reads out[5] before",
    "block=(1)", "atomicAdd(&out[5], 1.0f);",
  ),
  "half_written_word": (
    "uninitialized_read", 2, "reads out[0] before",
    "block=(1)", "((char*)out)[1] = 1;\n  out[1] = out[0];",
  ),
  "division": (
    "division_by_zero", 1, "integer division by zero",
    "block=(1)", "out[0] = 7 / zero;",
  ),
  "modulo": (
    "division_by_zero", 1, "integer division by zero",
    "block=(1)", "out[0] = (unsigned)t % (unsigned)zero;",
  ),
  "recursion": (
    "stack_overflow", None, "512 KiB of local memory",
    "block=(1)", "out[0] = deep(1000000, &zero);",
  ),
  "recursion_in_thread_40": (
    "stack_overflow", None, "512 KiB of local memory",
    "block=(64)",
    "__syncthreads();\n  if (t == 40) out[0] = deep(1000000, &zero);"
    "\n  __syncthreads();",
  ),
  "huge_frame": (
    "stack_overflow", None, "512 KiB of local memory",
    "block=(2)",
    "volatile float big[200000];\n  __syncthreads();\n  big[t] = 1.0f;"
    "\n  out[t] = big[t];",
  ),
  "early_return": (
    "divergent_barrier", 2, "thread 0 waits, but thread 33 has left the kernel",
    "block=(64)", "if (t == 33) return;\n  __syncthreads();\n  out[t] = 1;",
  ),
  "two_branches": (
    "divergent_barrier", 2, "waits at the one in line",
    "block=(64)",
    "if (t < 32)\n    __syncthreads();\n  else\n    __syncthreads();"
    "\n  out[t] = 1.0f;",
  ),
  "two_branches_in_one_line": (
    "divergent_barrier", 1, "waits at another one in line",
    "block=(64)",
    "if (t < 32) { __syncthreads(); } else { __syncthreads(); }"
    "\n  out[t] = 1.0f;",
  ),
  "different_trip_counts": (
    "divergent_barrier", 1, "has left the kernel",
    "block=(64)", "for (int i = 0; i <= t / 32; i++) __syncthreads();",
  ),
  "barrier_and_vote": (
    "divergent_barrier", 1, "waits at another one",
    "block=(2)", "int n = t ? __syncthreads_count(1) : (__syncthreads(), 0);"
    "\n  out[t] = n;",
  ),
  "missing_lane": (
    "divergent_warp", 1,
    "waits for lane 16 of its mask 0xffffffff, which waits",
    "block=(32)",
    "if (t < 16) out[t] = __shfl_down_sync(0xffffffffu, x[t], 1);"
    "\n  __syncthreads();",
  ),
  "exited_lane": (
    "divergent_warp", 2, "waits for lane 20 of its mask 0xffffffff, which has "
    "left the kernel",
    "block=(32)",
    "if (t >= 20) return;\n  out[t] = __shfl_xor_sync(0xffffffffu, x[t], 1);",
  ),
  "lane_not_in_its_mask": (
    "divergent_warp", 1, "lane 8 calls a warp operation whose mask 0x000000ff",
    "block=(32)", "out[t] = __ballot_sync(0xffu, t & 1);",
  ),
  "masks_that_differ": (
    "divergent_warp", 1, "which is in another warp operation",
    "block=(32)",
    "out[t] = __shfl_sync(t < 16 ? 0xffffffffu : 0xffff0001u, x[t], 0);",
  ),
  "bad_width": (
    "divergent_warp", 1, "shuffle width 12",
    "block=(32)", "out[t] = __shfl_sync(0xffffffffu, x[t], 0, 12);",
  ),
  "trap": ("trap", 1, "__trap()", "block=(1)", "if (x[0] < 1) __trap();"),
  "assertion": (
    "assertion_failed", 1, "assertion failed: x[t] > 0.5f",
    "block=(1)", "assert(x[t] > 0.5f);",
  ),
  "unreachable": (
    "unreachable", 1, "unreachable",
    "block=(1)", "if (x[t] < 1) __builtin_unreachable();",
  ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDINGS)
def test_finding(lab, name):
  kind, line, words, launch, body = FINDINGS[name]
  text = _HEAD + "  " + body + "\n}\n"
  stop = lab.stop(text, inputs=X, launch=f"grid=(1) {launch}")
  assert stop.finding is not None, stop
  assert stop.finding.kind == kind, stop
  assert stop.status == Status.RUNTIME_ERROR
  assert words in stop.message
  if line is None:  # the frame that met the guard page
    assert text.splitlines()[stop.finding.line - 1].strip(), stop
  else:
    assert stop.finding.line == _FIRST + line, stop.message


def test_the_thread_is_named(lab):
  text = """
  __global__ void k(float* out) {
    int i = threadIdx.x + 4 * (threadIdx.y + 4 * threadIdx.z);
    out[blockIdx.x * 64 + i] = 1.0f;
  }"""
  stop = lab.stop(text, size=64 + 41, launch="grid=(2) block=(4, 4, 4)")
  assert stop.finding.thread == (1, 2, 2)
  assert stop.finding.block == (1, 0, 0)


@pytest.mark.parametrize(
  "body",
  [
    "while (true) {}",
    "volatile float* v = out + threadIdx.x; v[0] = 1; while (v[0] != 2) {}",
    "while (atomicAdd((int*)out + threadIdx.x, 0) != 7) {}",
    "for (;;) __syncthreads();",
    "long long start = clock64(); while (clock64() >= start) {}",
  ],
)
def test_endless_loop(lab, body, monkeypatch):
  short = dataclasses.replace(lab.executor._settings, run_cpu_s=0.3)
  monkeypatch.setattr(lab.executor, "_settings", short)
  text = (
    "__global__ void k(float* out) {\n"
    f"  atomicExch((int*)out + threadIdx.x, 1); {body} }}"
  )
  stop = lab.stop(text, launch="grid=(1) block=(32)")
  assert stop.status == Status.TIMEOUT, stop


def test_a_loop_that_looks_at_the_clock_ends(lab):
  text = """
  __global__ void k(float* out) {
    long long start = clock64();
    while (clock64() - start < 10000) {}
    out[threadIdx.x] = 1.0f;
  }"""
  np.testing.assert_array_equal(lab.out(text), np.ones(32))


@pytest.mark.parametrize(
  "statement",
  ["((float*)x)[t] = 0.0f;", "((float*)x)[t] += 0.0f;",
   "atomicAdd((float*)x + t, 0.0f);", "memset((void*)x, 0, 4);"],
)  # fmt: skip
def test_inputs_may_not_be_written(lab, statement):
  stop = lab.stop(
    "__global__ void k(const float* x, float* out) {\n"
    f"  int t = threadIdx.x; {statement} out[t] = 1; }}",
    inputs=X,
  )
  assert stop.status == Status.INTEGRITY_VIOLATION
  assert stop.finding.line == 2
  assert "x[0], which is an input" in stop.message


def test_constants_may_not_be_written(lab):
  text = """__constant__ const int table[2] = {1, 2};
  __global__ void k(float* out) { int* p = (int*)table; p[1] = 3; out[0] = 1; }
  """
  stop = lab.stop(text)
  assert stop.finding.kind == "out_of_bounds"
  assert "which is a constant" in stop.message
  assert stop.finding.line == 2


@pytest.mark.parametrize(
  ("declarations", "store"),
  [
    ("__constant__ float c[4];", "c[1] = 1.0f;"),
    ("__constant__ float c[4] = {1, 2, 3, 4};", "c[t] += 1.0f;"),
    ("__device__ __constant__ int c;", "c = 1;"),
    ("static __constant__ int c = 3;", "atomicAdd(&c, 1);"),
    ("__constant__ const int d = 1; __constant__ int c = 3;", "c = d;"),
    ("namespace { __constant__ struct { float a, b; } c; }", "c.b = 1.0f;"),
    ("__constant__ int a, b, c[3], d;", "c[2] = a;"),
    ("".join(f"__constant__ int c{i};" for i in range(200)), "c150 = 1;"),
  ],
)
def test_no_kind_of_constant_may_be_written(lab, declarations, store):
  text = f"""{declarations}
  __global__ void k(float* out) {{ int t = threadIdx.x; {store} out[t] = 1; }}
  """
  stop = lab.stop(text, launch="grid=(1) block=(1)")
  assert stop.status == Status.RUNTIME_ERROR
  assert "which is a constant" in stop.message
  assert stop.finding.line == 2


def test_constants_may_be_read_in_any_number(lab):
  text = """
  __constant__ const float a = 1.0f; static __constant__ float b[2] = {2, 3};
  __constant__ float none[1 << 14]; __device__ float variable = 4.0f;
  template <int N> struct Sizes { static constexpr int value = N; };
  __global__ void k(float* out) {
    if (threadIdx.x == 0) variable += 1.0f;
    out[threadIdx.x] = a + b[1] + none[77] + variable;
  }"""
  got = lab.out(text, size=1, launch="grid=(1) block=(1)")
  np.testing.assert_array_equal(got, [9.0])


@pytest.mark.parametrize("kib", [320, 480])
def test_a_thread_may_have_as_much_local_memory_as_on_a_device(lab, kib):
  text = f"""__global__ void k(float* out) {{
    volatile float big[{kib} * 256];
    int t = threadIdx.x;
    big[t] = t; big[{kib} * 256 - 1 - t] = 1.0f;
    __syncthreads();
    out[t] = big[t] + big[{kib} * 256 - 1 - t];
  }}"""
  got = lab.out(text, launch="grid=(2) block=(32)")
  np.testing.assert_array_equal(got, np.arange(32) + 1.0)


def test_the_line_is_found_through_templates_and_device_functions(lab):
  text = """
  template <int N>
  __device__ __forceinline__ float get(const float* x, int i) {
    return x[i + N];
  }
  __global__ void k(const float* x, float* out) {
    out[threadIdx.x] = get<40>(x, threadIdx.x);
  }"""
  stop = lab.stop(text, inputs=X, launch="grid=(1) block=(32)")
  assert stop.finding.line == 4
