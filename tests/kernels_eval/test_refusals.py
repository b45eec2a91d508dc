"""What is refused: by name, by the compiler, or as code of the host."""

import numpy as np
import pytest

from kernels_eval.cpu import refusals
from kernels_eval.schema import Status

X = {"x": np.arange(32, dtype=np.float32)}

# name: (status, line, words, text)
_K = "__global__ void k(const float* x, float* out) { "
C, V = Status.COMPILE_ERROR, Status.CONTRACT_VIOLATION
REFUSED = {
  "asm": (
    C,
    2,
    "not supported on the CPU executor: inline assembly",
    _K + '\n asm volatile("trap;"); }',
  ),
  "asm_in_macro": (
    C,
    1,
    "inline assembly",
    '#define T asm("trap;")\n' + _K + "T; }",
  ),
  "asm_behind_a_false_comment": (
    C,
    3,
    "inline assembly",
    '// \\\n/*\n__device__ void f() { asm("trap;"); }\n// */\n' + _K + "}",
  ),
  "asm_from_pieces": (
    C,
    2,
    "poisoned",
    "#define T a##sm\n" + _K + '\n T("trap;"); }'.replace("\n", " "),
  ),
  "wmma": (C, 1, "tensor-core operations", "#include <mma.h>\n" + _K + "}"),
  "cooperative_groups": (
    C,
    1,
    "cooperative groups",
    "#include <cooperative_groups.h>\n" + _K + "}",
  ),
  "cooperative_groups_name": (
    C,
    1,
    "cooperative groups",
    "namespace cg = cooperative_groups;\n" + _K + "}",
  ),
  "cub": (C, 1, "CUB", "#include <cub/cub.cuh>\n" + _K + "}"),
  "thrust": (C, 1, "Thrust", "#include <thrust/device_vector.h>\n" + _K + "}"),
  "textures": (
    C,
    1,
    "textures",
    "__device__ cudaTextureObject_t t;\n" + _K + "}",
  ),
  "libcu++": (C, 1, "libcu++", "#include <cuda/std/atomic>\n" + _K + "}"),
  "password_file": (C, 1, "no header", '#include "/etc/passwd"\n' + _K + "}"),
  "endless_file": (C, 1, "no header", '#include "/dev/zero"\n' + _K + "}"),
  "itself": (C, 1, "no header", '#include "kernel.cu"\n' + _K + "}"),
  "unit": (C, 1, "no header", '#include "unit.cpp"\n' + _K + "}"),
  "through_a_macro": (
    C,
    2,
    "no header",
    '#define F "/etc/passwd"\n#include F\n' + _K + "}",
  ),
  "with_a_comment_inside": (
    C,
    1,
    "no header",
    '#/**/include/**/"/etc/passwd"\n' + _K + "}",
  ),
  "with_a_continued_line": (
    C,
    1,
    "no header",
    '#inc\\\nlude "/etc/passwd"\n' + _K + "}",
  ),
  "include_next": (C, 1, "no header", "#include_next <stdio.h>\n" + _K + "}"),
  "digraph": (C, 1, "digraphs", '%:include "/etc/passwd"\n' + _K + "}"),
  "unknown_header": (
    C,
    1,
    "no header <vector>",
    "#include <vector>\n" + _K + "}",
  ),
  "raw_string": (C, 1, "raw string", 'const char* s = R"(x)";\n' + _K + "}"),
  "launch": (
    V,
    3,
    "`<<<...>>>` launches a kernel",
    _K + "}\nvoid run(float* p) {\n k<<<1, 1>>>(p, p); }",
  ),
  "cuda_malloc": (
    V,
    2,
    "`cudaMalloc` is not device code",
    _K + "}\nvoid run(float* p) { cudaMalloc(&p, 4); }",
  ),
  "main": (
    V,
    2,
    "`main` is not device code",
    _K + "}\nint main() { return 0; }",
  ),
  "syntax": (C, 4, "expected ',' or ';'", _K + "\n int i = 0;\n int j = 1\n}"),
  "undeclared": (
    C,
    2,
    "'undeclared' was not declared",
    _K + "\n undeclared(); }",
  ),
  "inside_a_template": (
    C,
    2,
    "no member named 'nothing'",
    "template <class T> __device__ float f(T v) {\n return v.nothing; }\n"
    "struct S {};\n" + _K + "\n out[0] = f(S{}); }",
  ),
  "beside_a_shared_declaration": (
    C,
    2,
    "was not declared",
    _K + "\n __shared__ float s[4]; __shared__ int n; s[0] = missing; }",
  ),
  "type_of_a_shared_variable": (
    C,
    2,
    "'Missing'",
    _K + "\n __shared__ Missing s; }",
  ),
  "two_types_of_dynamic_memory": (
    C,
    2,
    "conflicting declaration",
    "__global__ void a(float* out) { extern __shared__ float s[]; s[0] = 1; }\n"
    + _K
    + "extern __shared__ int s[]; s[0] = 1; }\n// launch: k grid=(1) block=(1)",
  ),
  "variable_length_array": (
    C,
    2,
    "variable length array",
    _K + "\n int n = out[0]; float a[n]; a[0] = 1; }",
  ),
  "helper_without_device": (
    C,
    3,
    "`helper` is host code",
    "float helper(float v) { return v; }\n" + _K + "\n out[0] = helper(1); }",
  ),
  "template_without_device": (
    C,
    2,
    "`helper` is host code",
    "template <class T> T helper(T v) { return v; }\n"
    + _K
    + "out[0] = helper(1); }",
  ),
  "helper_with_a_default_value": (
    C,
    2,
    "`helper` is host code",
    "float helper(float v, float eps = 1e-5f) { return v + eps; }\n"
    + _K
    + "out[0] = helper(1); }",
  ),
  "method_without_device": (
    C,
    2,
    "`get` is host code",
    "struct S { float get() { return 1; } };\n"
    + _K
    + "S s; out[0] = s.get(); }",
  ),
  "table_of_the_host": (
    C,
    2,
    "`weights` is host code",
    "const float weights[3] = {1, 2, 3};\n"
    + _K
    + "out[0] = weights[threadIdx.x]; }",
  ),
  "variable_of_the_host": (
    C,
    2,
    "`count` is host code",
    "int count = 3;\n" + _K + "out[0] = count; }",
  ),
  "call_of_a_kernel": (
    C,
    2,
    "`a` is a __global__ function",
    "__global__ void a(float* p) { p[0] = 1; }\n"
    + _K
    + "a(out); }\n// launch: k grid=(1) block=(1)",
  ),
  "kernel_with_a_result": (
    C,
    None,
    "must return void",
    "__global__ int k(const float* x, float* out) { return 1; }",
  ),
  "dynamic_initialization": (
    C,
    None,
    "dynamic initialisation",
    "__device__ float f(float v) { return v; }\n__device__ float g = f(2.0f);\n"
    + _K
    + "out[0] = g; }",
  ),
  "throw": (C, 2, "exception", _K + "\n throw 1; }"),
  "heap": (
    C,
    2,
    "memory allocation in a kernel",
    _K + "\n int* p = new int[4]; p[0] = 1; }",
  ),
  "c_library": (
    C,
    2,
    "`puts` is not defined",
    'extern "C" int puts(const char*);\n' + _K + 'puts("hi"); }',
  ),
  "assigned_index": (C, 1, "read-only", _K + "threadIdx.x = 3; }"),
  "builtin": (
    C,
    1,
    "compiler's own function",
    _K + "__builtin_return_address(0); }",
  ),
  "atomic_builtin": (
    C,
    1,
    "compiler's own function",
    _K + "__atomic_fetch_add((int*)out, 1, 0); }",
  ),
  "executor_name": (V, 1, "the executor's own", _K + "ke_sync_block(1, 2); }"),
  "executor_macro": (
    V,
    1,
    "the executor's own",
    "KE_ENTRY void f() {}\n" + _K + "}",
  ),
  "keyword_as_macro": (
    V,
    1,
    "changes the language",
    "#define static_assert(...)\n" + _K + "}",
  ),
  "unclosed_comment": (C, 1, "unterminated comment", _K + "} /* "),
  "unclosed_condition": (C, 1, "unterminated #if", "#if 1\n" + _K + "}"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(lab, name):
  status, line, words, text = REFUSED[name]
  stop = lab.stop(text, inputs=X)
  assert stop.status == status, stop
  assert words in stop.message, stop.message
  if hasattr(stop, "diagnostics"):
    got = stop.diagnostics[0].line if stop.diagnostics else None
  else:
    got = stop.line
  assert got == line, stop.message


@pytest.mark.parametrize(
  ("arguments", "words"),
  [
    ("const float* x", "must take 4 parameters"),
    ("const float* x, float* out, float s, int n, int m", "must take 4"),
    (
      "const double* x, float* out, float s, int n",
      "parameter 1 must be `float* x`",
    ),
    (
      "const float* x, __half* out, float s, int n",
      "parameter 2 must be `float* out`",
    ),
    (
      "const float* x, float* out, double s, int n",
      "parameter 3 must be `float s`",
    ),
    (
      "const float* x, float* out, float s, long n",
      "parameter 4 must be `int n`",
    ),
    (
      "const float* x, float* out, float s, size_t n",
      "parameter 4 must be `int n`",
    ),
    ("float x, float* out, float s, int n", "parameter 1 must be `float* x`"),
    ("const float4* x, float* out, float s, int n", "parameter 1 must be"),
    ("const float** x, float* out, float s, int n", "parameter 1 must be"),
  ],
)
def test_parameters_that_do_not_fit(lab, arguments, words):
  stop = lab.stop(
    f"__global__ void k({arguments}) {{}}",
    inputs=X,
    scalars={"s": 1.5},
    dims={"n": 3},
  )
  assert stop.status == V
  assert words in stop.message
  assert "(float* x, float* out, float s, int n)" in stop.message


def test_the_message_about_a_header_names_every_one_that_there_is(lab):
  stop = lab.stop("#include <vector>\n__global__ void k(float* out) {}")
  assert "no header <vector>" in stop.message
  for header in refusals.HEADERS:
    assert f" {header}" in stop.message
  every = "".join(f"#include <{h}>\n" for h in sorted(refusals.HEADERS))
  text = every + "__global__ void k(float* out) { out[0] = 1.0f; }"
  assert lab.out(text, size=1, launch="grid=(1) block=(1)")[0] == 1.0
