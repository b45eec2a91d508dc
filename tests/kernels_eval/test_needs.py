"""What a text is compiled without, and that it makes no difference."""

import pytest

from kernels_eval import candidate as candidate_lib
from kernels_eval import problems
from kernels_eval.cuda import needs, toolkit, translate

HEAD = (
  "__global__ void relu(const float* x, float* out, int n) {\n"
  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
)
BODY = "  if (i < n) out[i] = fmaxf(x[i], 0.0f);\n}\n"
LOWEST = "  if (i == 0) out[0] = std::numeric_limits<float>::lowest();\n"


def unit_of(text, name="relu"):
  problem = problems.get(name)
  return translate.translate_unit(candidate_lib.parse(text, problem), problem)


@pytest.mark.parametrize(
  ("text", "is_needed"),
  [
    (HEAD + BODY, False),
    ("#include <cuda_runtime.h>\n#include <limits>\n" + HEAD + BODY, False),
    ("#include <cuda_fp16.h>  // half\n" + HEAD + BODY, False),
    ("// CUDA's textures, and <<<launches>>>\n" + HEAD + BODY, False),
    (HEAD + "  float m = CUDART_INF_F; (void)m;\n" + BODY, False),
    ("#ifdef __CUDA_ARCH__\n#endif\n" + HEAD + BODY, False),
    (HEAD + "  __half h = __float2half(0.0f); (void)h;\n" + BODY, False),
    (HEAD + '  asm("tex.1d.v4.f32.s32 {%0}, [%1];");\n' + BODY, False),
    (HEAD + "  cudaError_t e = cudaSuccess; (void)e;\n" + BODY, True),
    (HEAD + "  cuda\\\nError_t e; (void)e;\n" + BODY, True),
    ("#define E cudaError_t\n" + HEAD + "  E e; (void)e;\n" + BODY, True),
    ("#define P(a, b) a##b\n" + HEAD + BODY, True),
    ("%:define P(a, b) a%:%:b\n" + HEAD + BODY, True),
    ("#ifdef __CUDACC_RTC_MINIMAL__\n#endif\n" + HEAD + BODY, True),
    ("#include <mma.h>\n" + HEAD + BODY, True),
    ("#/**/include <mma.h>\n" + HEAD + BODY, True),
    ("#if __has_include(<texture_types.h>)\n#endif\n" + HEAD + BODY, True),
    (HEAD + "  CUdeviceptr p; (void)p;\n" + BODY, True),
    ("#define L <<<1, 1>>>\n" + HEAD + "  relu L(x, out, n);\n" + BODY, True),
    (HEAD.replace("int n", "cudaTextureObject_t n") + BODY, True),
    (
      "template <class T>\n" + HEAD + BODY + "// launch: relu"
      "<cudaTextureObject_t> grid=(1) block=(1)\n",
      True,
    ),
  ],
)
def test_what_a_text_could_miss(text, is_needed):
  unit = unit_of(text)
  assert needs.whole_language(unit) == is_needed
  assert needs.options(unit, "13.0") == ([] if is_needed else ["--minimal"])
  assert needs.options(unit, "12.3") == []


@pytest.mark.parametrize(
  ("text", "is_needed"),
  [
    (HEAD + BODY, False),
    ("#include <limits>\n" + HEAD + BODY, False),
    ("#include <cuda_fp16.h>\n" + HEAD + BODY, False),
    ("#include <limits>\n" + HEAD + LOWEST + BODY, True),
    (HEAD + LOWEST.replace("numeric_l", "numeric\\\n_l") + BODY, True),
    (
      "#define JOIN(a, b) a##b\n"
      + HEAD
      + LOWEST.replace("numeric_limits", "JOIN(numeric_, limits)")
      + BODY,
      True,
    ),
    ("#include <cub/cub.cuh>\n" + HEAD + BODY, True),
  ],
)
def test_limits_come_where_a_text_can_name_them(text, is_needed):
  assert ('"ke_limits.h"' in unit_of(text)) == is_needed


def compiled(unit, options):
  """PTX, or "" and what NVRTC says."""
  from cuda.bindings import nvrtc

  _, program = nvrtc.nvrtcCreateProgram(
    unit.encode(), b"kernel.cu", 0, None, None
  )
  every = [
    *("--gpu-architecture=compute_90", "--std=c++17", "--disable-warnings"),
    *(f"--include-path={path}" for path in toolkit.find().include),
    *options,
  ]
  (status,) = nvrtc.nvrtcCompileProgram(
    program, len(every), [option.encode() for option in every]
  )
  if int(status):
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    return "", log.decode()
  _, size = nvrtc.nvrtcGetPTXSize(program)
  ptx = b" " * size
  nvrtc.nvrtcGetPTX(program, ptx)
  nvrtc.nvrtcDestroyProgram(program)
  return ptx.decode(), ""


@pytest.fixture
def version():
  pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
  found = toolkit.find().version
  if not needs.options("", found):
    pytest.skip(f"NVRTC {found} has no --minimal")
  return found


def test_the_code_of_canonical_kernels_is_the_same(version):
  for name in sorted(problems.FAMILIES):
    unit = unit_of(problems.get(name).canonical, name)
    assert needs.options(unit, version) == ["--minimal"], name
    short, log = compiled(unit, ["--minimal"])
    assert short and not log, (name, log)
    # The rest of the way to a cubin reads nothing but this.
    assert short == compiled(unit, [])[0], name


@pytest.mark.parametrize(
  "text",
  [
    HEAD + '  if (i == 0) printf("%d\\n", n);\n  assert(n > 0);\n' + BODY,
    HEAD + "  float* p = (float*)malloc(4); if (p) free(p);\n" + BODY,
    HEAD + "  long long t = clock64(); __nanosleep(9); (void)t;\n" + BODY,
    HEAD + "  memset(out, 0, 4); memcpy(out, x, 4);\n" + BODY,
    "__constant__ float c[4];\n__managed__ int m;\n" + HEAD + BODY,
    HEAD + "  out[i] = y;\n}\n",
    HEAD + "  foo(3)\n}\n",
    HEAD + "  out[i] = fmaxf(x[i]);\n}\n",
    HEAD + "  out[i] = min(x, n) + atomicAdd(out);\n}\n",
    HEAD.replace("const float", "const double") + BODY,
    HEAD.replace("float* out", "dim4* out") + BODY,
    HEAD + "  out[i] = texel(x, i);\n}\n",
  ],
)
def test_what_needs_nothing_compiles_and_fails_alike(version, text):
  unit = unit_of(text)
  assert compiled(unit, needs.options(unit, version)) == compiled(unit, [])


@pytest.mark.parametrize(
  ("text", "compiles"),
  [
    (HEAD + "  cudaError_t e = cudaSuccess; (void)e;\n" + BODY, True),
    (
      "#define P(a, b) a##b\n"
      + HEAD
      + "  P(cuda, Error_t) e = P(cuda, Success); (void)e;\n"
      + BODY,
      True,
    ),
    (
      "__device__ float f(cudaTextureObject_t t) "
      "{ return tex2D<float>(t, 0.0f, 0.0f); }\n" + HEAD + BODY,
      True,
    ),
    ("#define L <<<1, 1>>>\n" + HEAD + "  relu L(x, out, n);\n" + BODY, False),
    (
      "#define LIMITS std::numeric_limits\n"
      + HEAD
      + LOWEST.replace("std::numeric_limits", "LIMITS")
      + BODY,
      True,
    ),
  ],
)
def test_what_needs_more_gets_it(version, text, compiles):
  unit = unit_of(text)
  answer = compiled(unit, needs.options(unit, version))
  assert bool(answer[0]) == compiles, answer[1]
  assert answer == compiled(unit, [])
