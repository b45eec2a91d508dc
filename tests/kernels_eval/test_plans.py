"""Answers, launch plans and the limits of the hardware."""

import numpy as np
import pytest

from kernels_eval import candidate, launch_plan, source
from kernels_eval.cpu import limits
from kernels_eval.outcome import Stop
from kernels_eval.schema import Status
from tests.kernels_eval import lab as lab_lib

K = "__global__ void k(const float* x, float* out, int n) { out[0] = 1; }\n"
PROBLEM = lab_lib.make_problem(
  inputs=[("x", "float32", 8)],
  outputs=[("out", "float32", 8)],
  dims=["n"],
  launch="grid=(ceil_div(n, 256)) block=(256)",
)


def _refused(text):
  with pytest.raises(candidate.CandidateError) as caught:
    candidate.parse(text, PROBLEM)
  return caught.value


# ---- the source inside of an answer


def test_the_last_block_with_a_kernel_wins():
  answer = (
    f"First:\n```cuda\n{K}// old\n```\nBetter:\n```cpp\n{K}// new\n```\n"
    "Run it with\n```sh\nnvcc k.cu\n```\n"
  )
  assert candidate.extract(answer) == f"{K}// new\n"


@pytest.mark.parametrize(
  ("answer", "words"),
  [
    ("I cannot do that.", "no code block"),
    ("", "no code block"),
    ("```cuda\nint x;\n```", "no code block holds"),
    (f"```cuda\n{K}", "cut off"),
    ("int main() {}", "no code block"),
  ],
)
def test_answers_without_a_kernel(answer, words):
  error = _refused(answer)
  assert error.status == Status.NO_KERNEL
  assert words in error.message


def test_only_a_comment_or_string_with_the_word_is_no_kernel():
  error = _refused('// __global__ void k()\nconst char* s = "__global__";')
  assert error.status == Status.NO_KERNEL


def test_fences_of_other_lengths_and_indentation():
  answer = f"````\n```\n{K}```\n````"
  assert candidate.extract(answer) == f"```\n{K}```\n"
  assert candidate.extract(f"  ```c++ title\n{K}  ```") == K


@pytest.mark.parametrize(
  "head",
  [
    "/*\nReLU kernel\n~~~~~~~~~~~\n*/\n",
    "/*\nUse it so:\n```\nk grid=(1)\n```\n*/\n",
    "/*\n```\n__global__ void old(int* p);\n```\n*/\n",
    "/*\n```\n*/\n",
  ],
)
def test_what_looks_like_a_fence_in_a_comment_is_none(head):
  assert candidate.extract(head + K) == head + K
  assert len(candidate.parse(head + K, PROBLEM).launches) == 1


def test_prose_with_a_comment_sign_is_no_program():
  answer = f"Use /* for `__global__`.\n```cuda\n{K}```\n"
  assert candidate.extract(answer) == K


def test_a_byte_order_mark_is_dropped():
  assert candidate.extract("\ufeff" + K) == K


@pytest.mark.parametrize(
  "text",
  [
    '#define KERNEL extern "C" __global__\nKERNEL void k(float* out) {}',
    "#define G __global__\n#define K2 G __launch_bounds__(64)\n"
    "K2 void k(float* out) {}",
  ],
)
def test_a_macro_may_stand_for_the_word(text):
  assert list(candidate.kernel_names(source.code(text))) == ["k"]


def test_a_macro_with_parameters_does_not():
  text = "#define K(name) __global__ void name\nvoid K(int) {}"
  assert not candidate.kernel_names(source.code(text))


def test_kernels_keep_their_namespaces():
  text = """
  namespace a { namespace b::c {
  struct S { int x; };
  __global__ void k(float* out) { if (out) { out[0] = 1; } }
  } namespace { __global__ void hidden() {} } }
  extern "C" { __global__ void plain() {} }
  namespace d { __global__ void k(float* out) {} }
  """
  assert candidate.kernel_names(source.code(text)) == {
    "k": "a::b::c::k",
    "a::b::c::k": "a::b::c::k",
    "hidden": "a::hidden",
    "a::hidden": "a::hidden",
    "plain": "plain",
    "d::k": "d::k",
  }
  plan = "// launch: {} grid=(1) block=(1)\n"
  for name, path in (("k", "a::b::c::k"), ("d::k", "d::k")):
    parsed = candidate.parse(plan.format(name) + text, PROBLEM)
    assert parsed.launches[0].kernel == path


@pytest.mark.parametrize(
  "text",
  [
    '#define KERNEL extern "C" __global__\n'
    "KERNEL void k(const float* x, float* out, int n) { out[0] = x[0]; }",
    "namespace mine { typedef float real;\n"
    "__device__ real same(real v) { return v; }\n"
    "__global__ void k(const real* x, real* out, int n) {"
    " out[0] = same(x[0]); } }",
    "namespace mine { template <int N>\n"
    "__global__ void k(const float* x, float* out, int n) { out[0] = x[N]; } }"
    "\n// launch: k<0> grid=(1) block=(1)\n",
    "\ufeff// launch: mine::k grid=(1) block=(1)\nnamespace mine {\n" + K + "}",
  ],
)
def test_such_kernels_run(lab, text):
  x = np.ones(8, np.float32)
  got = lab.out(text, size=8, inputs={"x": x}, dims={"n": 1})
  assert got[0] == 1.0


def test_line_ends_become_those_of_the_compiler():
  assert candidate.extract(K.replace("\n", "\r\n") + "\r//\r") == K + "\n//\n"


def test_kernel_names():
  text = """
  __global__ void __launch_bounds__(256, 2) first(int* p);
  template <int N> __global__ __launch_bounds__(N) void second(int* p) {}
  extern "C" __global__ void
  third
  (int* p) {}
  __global__ void first(int* p) {}
  // __global__ void comment(int* p) {}
  """
  names = candidate.kernel_names(source.code(text))
  assert list(names) == ["first", "second", "third"]


# ---- plans


def test_a_plan_with_everything():
  parsed = candidate.parse(
    "// scratch: tmp float16 (n, 2 * n)\n"
    "// launch: k<256> grid=(n, 2) block=(min(n, 64), 2, 1) smem=4*n "
    "args=(x, tmp, n)\n"
    "// LAUNCH : k grid=1 block=(32)\n" + K,
    PROBLEM,
  )
  first, second = parsed.launches
  assert first.template == "<256>"
  assert first.arguments == ("x", "tmp", "n")
  assert second.arguments == ("x", "out", "n")
  assert (first.line, second.line) == (2, 3)
  run = limits.plan_launch(first, 0, {"n": 48}, [])
  assert run.grid == (48, 2, 1)
  assert run.block == (48, 2, 1)
  assert run.shared_bytes == 192
  (scratch,) = parsed.scratch
  assert (scratch.name, scratch.dtype) == ("tmp", "float16")
  assert scratch.shape_for({"n": 3}) == (3, 6)


def test_without_a_plan_the_problem_has_one():
  parsed = candidate.parse(K, PROBLEM)
  run = limits.plan_launch(parsed.launches[0], 0, {"n": 257}, [])
  assert (run.grid, run.block) == ((2, 1, 1), (256, 1, 1))
  assert parsed.launches[0].line is None


@pytest.mark.parametrize(
  ("plan", "words"),
  [
    ("k block=(1)", "no grid=(...)"),
    ("k grid=(1)", "no block=(...)"),
    ("k", "no grid=(...)"),
    ("", "cannot read ``"),
    ("7 grid=(1) block=(1)", "cannot read"),
    ("kk grid=(1) block=(1)", "no kernel `kk` (did you mean `k`?)"),
    ("k grid=(m) block=(1)", None),  # known only with the dimensions
    ("k grid=(1, 1, 1, 1) block=(1)", "grid has 4 values"),
    ("k grid=() block=(1)", "empty expression"),
    ("k grid=((1) block=(1)", "no block=(...)"),
    ("k block=(1) grid=(n))", "unexpected `)`"),
    ("k grid=(1 block=(1)", "no block=(...)"),
    ("k grid=(1.5) block=(1)", "unexpected '.'"),
    ("k grid=(n / 2) block=(1)", "use // (rounds down) or ceil_div"),
    ("k grid=(1) block=(1) shared=4", "no option `shared`"),
    ("k grid=(1) block=(1) sme=4", "did you mean `smem`?"),
    ("k grid=(1) grid=(2) block=(1)", "`grid` given twice"),
    ("k grid=(1) block=(1) args=(x, ot)", "did you mean `out`?"),
    ("k grid=(1) block=(1) args=(x, 3)", "no argument `3`"),
    ("k<a=b> grid=(1) block=(1)", "cannot read"),
    ("k<(1)[0]> grid=(1) block=(1)", "names and numbers only"),
    ("k grid=(pow(2, 3)) block=(1)", "no function `pow`"),
  ],
)
def test_plans_that_cannot_be_read(plan, words):
  text = f"\n// launch: {plan}\n{K}"
  if words is None:
    parsed = candidate.parse(text, PROBLEM)
    with pytest.raises(Stop, match="no dimension `m`") as caught:
      limits.plan_launch(parsed.launches[0], 0, {"n": 1}, [])
    assert caught.value.status == Status.CONTRACT_VIOLATION
    assert caught.value.diagnostics[0].line == 2
    return
  error = _refused(text)
  assert error.status == Status.CONTRACT_VIOLATION
  assert words in error.message
  assert error.line == 2


@pytest.mark.parametrize(
  "comment",
  [
    "Launch: one thread per element",
    "Launch: grid of ceil(n/256) blocks of 256 threads",
    "Launch: grid=(n / 256), block=(256)",
    "Launch: use grid=(n / 256) and block=(256)",
    "Launch bounds: k is small",
    "launch: one thread for each element (256 in a block)",
    "scratch: none needed",
    "Scratch: none (everything is in registers)",
    "scratch: registers only (no memory)",
    "SCRATCH: float4 values",
  ],
)
def test_english_is_no_plan(comment):
  parsed = candidate.parse(f"// {comment}\n{K}", PROBLEM)
  assert parsed.launches[0].line is None
  assert parsed.scratch == ()


def test_a_plan_in_capitals_counts():
  parsed = candidate.parse(
    f"// Scratch: tmp int32 (n)\n// Launch: k grid=(1) block=(n)\n{K}", PROBLEM
  )
  assert parsed.launches[0].line == 2
  assert len(parsed.scratch) == 1


@pytest.mark.parametrize(
  ("line", "words"),
  [
    ("tmp double (n)", "no dtype `double`"),
    ("tmp float32", "cannot read"),
    ("tmp float33 (n)", "did you mean `float32`?"),
    ("out float32 (n)", "`out` is a parameter"),
    ("tmp float32 (n,)", "empty expression"),
    ("tmp float32 (n)\n// scratch: tmp int32 (n)", "given twice"),
  ],
)
def test_scratch_that_cannot_be_read(line, words):
  error = _refused(f"// scratch: {line}\n{K}")
  assert error.status == Status.CONTRACT_VIOLATION
  assert words in error.message


def test_two_kernels_need_a_plan():
  error = _refused(K + K.replace("k(", "other("))
  assert "2 kernels (k, other) and no `// launch:` line" in error.message


def test_numbers_of_launches_and_scratch_are_bounded():
  line = "// launch: k grid=(1) block=(1)\n"
  candidate.parse(line * launch_plan.MAX_LAUNCHES + K, PROBLEM)
  assert "17 launches" in _refused(line * 17 + K).message
  scratch = "".join(f"// scratch: t{i} int8 (1)\n" for i in range(9))
  assert "9 scratch buffers" in _refused(scratch + K).message


# ---- runs


def test_several_launches_share_scratch(lab):
  text = """
  // scratch: partial float32 (ceil_div(n, 4))
  // scratch: count int32 (1)
  // launch: clear grid=(1) block=(1) args=(count)
  // launch: sum<4> grid=(ceil_div(n, 4)) block=(4) args=(x, partial, count, n)
  // launch: finish grid=(1) block=(1) args=(partial, count, out, n)
  __global__ void clear(int* count) { *count = 0; }
  template <int B>
  __global__ void sum(const float* x, float* partial, int* count, int n) {
    __shared__ float s[B];
    int i = blockIdx.x * B + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (threadIdx.x) return;
    float v = 0;
    for (int j = 0; j < B; j++) v += s[j];
    partial[blockIdx.x] = v;
    atomicAdd(count, 1);
  }
  __global__ void finish(const float* partial, const int* count, float* out,
                         int n) {
    float v = 0;
    for (int j = 0; j < *count; j++) v += partial[j];
    out[0] = v; out[1] = n; out[2] = *count;
  }"""
  x = np.arange(10, dtype=np.float32)
  got = lab.out(text, size=3, inputs={"x": x}, dims={"n": 10})
  np.testing.assert_array_equal(got, [45, 10, 3])


def test_scratch_is_not_initialised(lab):
  text = """
  // scratch: tmp float32 (4)
  // launch: k grid=(1) block=(1) args=(tmp, out)
  __global__ void k(float* tmp, float* out) { out[0] = tmp[3]; }"""
  stop = lab.stop(text)
  assert stop.finding.kind == "uninitialized_read"
  assert "tmp[3]" in stop.message


@pytest.mark.parametrize(
  ("plan", "words"),
  [
    ("grid=(1) block=(1025)", "block.x is 1025; the limit is 1 to 1024"),
    ("grid=(1) block=(1, 1025)", "block.y is 1025"),
    ("grid=(1) block=(1, 1, 65)", "block.z is 65; the limit is 1 to 64"),
    ("grid=(1) block=(32, 33)",
     "the block is 32 x 33 x 1 = 1056 threads; the limit is 1024"),
    ("grid=(1) block=(0)", "block.x is 0; the limit is 1 to 1024"),
    ("grid=(0) block=(1)", "grid.x is 0"),
    ("grid=(-n) block=(1)", "grid.x is -3"),
    ("grid=(1, 65536) block=(1)", "grid.y is 65536; the limit is 1 to 65535"),
    ("grid=(1, 1, 65536) block=(1)", "grid.z is 65536"),
    ("grid=(2147483648) block=(1)", "grid.x is 2147483648"),
    ("grid=(1) block=(1) smem=100*1024+n",
     "dynamic shared memory is 102403 bytes; the limit is 101376"),
    ("grid=(1) block=(1) smem=-4", "dynamic shared memory is -4 bytes"),
  ],
)  # fmt: skip
def test_limits_of_the_hardware(lab, plan, words):
  text = f"// launch: k {plan}\n__global__ void k(float* out, int n) {{}}"
  stop = lab.stop(text, dims={"n": 3})
  assert stop.status == Status.LAUNCH_ERROR
  assert words in stop.message
  assert stop.diagnostics[0].line == 1


def test_just_within_the_limits(lab):
  text = """
  // launch: k grid=(1) block=(16, 1, 64) smem=99*1024
  // launch: k grid=(1, 1, 65535) block=(1)
  __global__ void k(float* out) {
    extern __shared__ char s[];
    if (threadIdx.x + threadIdx.z + blockIdx.z == 0) out[0] = sizeof(s[0]);
    if (blockDim.z == 64 && threadIdx.x + threadIdx.z == 0) s[101375] = 1;
  }"""
  np.testing.assert_array_equal(lab.out(text, size=1), [1])


@pytest.mark.parametrize(
  ("scratch", "words"),
  [
    ("(n * 100000000)", "takes 1200000000 bytes"),
    ("(n - 4)", "negative size"),
    ("(9223372036854775807 * 2)", "beyond 64 bits"),
  ],
)
def test_sizes_of_scratch(lab, scratch, words):
  text = (
    f"// scratch: tmp float32 {scratch}\n// launch: k grid=(1) block=(1)\n"
    "__global__ void k(float* out, int n) {}"
  )
  stop = lab.stop(text, dims={"n": 3})
  assert stop.status == Status.CONTRACT_VIOLATION
  assert words in stop.message
