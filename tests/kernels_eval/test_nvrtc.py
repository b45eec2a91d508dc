"""Compiling for a GPU in the sandbox. NVRTC needs no device; the server's
launchers are stand-ins (`fake_launcher.py`)."""

import os
import pathlib
import socket
import threading

import pytest

from kernels_eval import candidate as candidate_lib
from kernels_eval import problems, sandbox
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu import toolchain
from kernels_eval.cpu import translate as shared_translate
from kernels_eval.cuda import build, jobs, toolkit, translate
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.outcome import Stop
from kernels_eval.schema import Status
from kernels_eval.settings import Settings
from tests.kernels_eval import machine

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
HEAD = (
  "__global__ void relu(const float* x, float* out, int n) {\n"
  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
)
BODY = "  if (i < n) out[i] = fmaxf(x[i], 0.0f);\n}\n"


@pytest.fixture(scope="module")
def executor(tmp_path_factory):
  from kernels_eval.cuda import executor as executor_lib

  folder = tmp_path_factory.mktemp("nvrtc")
  listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  listener.bind(str(folder / "gpu"))
  listener.listen(1)

  def greet():
    import msgspec

    hello = jobs.Hello("stand-in", (9, 0), "13.0", 232448, 132, 4.8e12, 2**37)
    link, _ = listener.accept()
    link.send(msgspec.msgpack.encode(hello))
    link.recv(1)
    link.close()

  greeter = threading.Thread(target=greet)
  greeter.start()
  made = executor_lib.CudaExecutor(
    toolchain.prepare(),
    toolkit.find(),
    sandbox.probe(),
    folder,
    folder / "gpu",
    Settings(),
    CudaSettings(),
  )
  yield made
  made.close()
  greeter.join()
  listener.close()


def compile_text(executor, text, name="relu"):
  problem = problems.get(name)
  with executor.folder() as folder:
    return executor.compile(candidate_lib.parse(text, problem), problem, folder)


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_canonical_solutions_compile(executor, name):
  artefact = compile_text(executor, problems.get(name).canonical, name)
  assert artefact.modules[0].startswith(b"\x7fELF")
  assert len(artefact.places) == len(artefact.entries) >= 1


def test_a_composed_solution_compiles(executor):
  for name in ("chain-relu-mul_y", "chain-tanh-max"):
    compile_text(executor, problems.get(name).canonical, name)


@pytest.mark.parametrize(
  "text",
  [
    "#include <cuda_runtime.h>\n#include <math.h>\n" + HEAD + BODY,
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + HEAD + BODY,
    'extern "C" ' + HEAD + BODY,
    HEAD + '  asm volatile("membar.gl;");\n' + BODY,
    HEAD + "  float m = -INFINITY, f = FLT_MAX; (void)m; (void)f;\n" + BODY,
    HEAD + "  uint64_t k = UINT64_MAX; int64_t j = INT64_MIN;\n" + BODY,
    HEAD + '  static_assert(std::is_same<int, int>::value, "");\n' + BODY,
    "#include <limits>\n"
    + HEAD
    + '  static_assert(std::numeric_limits<float>::lowest() < 0, "");\n'
    + '  static_assert(std::numeric_limits<int>::max() == INT_MAX, "");\n'
    + "  out[0] = std::numeric_limits<float>::infinity();\n"
    + BODY,
    HEAD + '  if (i == 0) printf("%d\\n", n);\n' + BODY,
    HEAD + "  __half h = __float2half(0.0f); (void)h;\n" + BODY,
  ],
)
def test_what_a_candidate_finds_without_asking(executor, text):
  compile_text(executor, text)


_LIBRARIES = {  # header, text
  "cooperative groups": (
    "cooperative_groups.h",
    "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
    "namespace cg = cooperative_groups;\n" + HEAD + "  auto block = "
    "cg::this_thread_block();\n  auto warp = cg::tiled_partition<32>(block);\n"
    "  float v = i < n ? fmaxf(x[i], 0.0f) : 0.0f;\n"
    "  float most = cg::reduce(warp, v, cg::greater<float>());\n"
    "  block.sync();\n  if (i < n) out[i] = fminf(v, most);\n}\n",
  ),
  "CUB": (
    "cub/block/block_scan.cuh",
    "#include <cub/block/block_scan.cuh>\n" + HEAD + "  using Scan = "
    "cub::BlockScan<float, 256>;\n  __shared__ typename Scan::TempStorage s;\n"
    "  float v = i < n ? fmaxf(x[i], 0.0f) : 0.0f, sum;\n"
    "  Scan(s).InclusiveSum(v, sum);\n"
    "  if (i < n) out[i] = fminf(v, sum);\n}\n",
  ),
  "all of CUB that is device code": (
    "cub/block/block_scan.cuh",
    "#include <cub/cub.cuh>\n" + HEAD + "  using Sort = "
    "cub::BlockRadixSort<float, 256, 1>;\n  using Warp = "
    "cub::WarpReduce<float>;\n  __shared__ typename Sort::TempStorage s;\n"
    "  __shared__ typename Warp::TempStorage w[8];\n"
    "  float v[1] = {i < n ? fmaxf(x[i], 0.0f) : 0.0f};\n  Sort(s).Sort(v);\n"
    "  float sum = Warp(w[threadIdx.x / 32]).Sum(v[0]);\n"
    "  if (i < n) out[i] = fminf(v[0], sum);\n}\n",
  ),
}


@pytest.mark.parametrize("library", _LIBRARIES)
def test_libraries_of_the_toolkit_compile(executor, library):
  header, text = _LIBRARIES[library]
  if not any((path / header).is_file() for path in toolkit.find().include):
    pytest.skip(f"no {header}: the CUDA toolkit's headers are not installed")
  artefact = compile_text(executor, text)
  assert artefact.modules[0].startswith(b"\x7fELF")


def test_row_20_programs_of_the_compiler_are_not_kept(executor):
  """A leak seen elsewhere took 20 MB for each compilation."""
  root = executor._root

  def resident_bytes():
    pages = 0
    for pid in machine.processes(root):
      fields = machine.read(f"/proc/{pid}/statm").split()
      pages += int(fields[1]) if len(fields) > 1 else 0
    return pages * os.sysconf("SC_PAGE_SIZE")

  def compile_some(count, what):
    for i in range(count):
      compile_text(executor, f"// {what} {i}\n{HEAD}{BODY}")

  compile_some(5, "before")
  before = resident_bytes()
  assert before > 10 * 2**20  # the process that has NVRTC loaded is among them
  compile_some(25, "after")
  assert resident_bytes() - before < 25 * 2**20  # one for each


def test_a_template_is_found_by_its_arguments(executor):
  text = (
    "template <int N, class T>\n" + HEAD.replace("float", "T") + BODY
  ) + "// launch: relu<2 * 128, float> grid=(ceil_div(n, 256)) block=(256)\n"
  artefact = compile_text(executor, text)
  assert artefact.places[0][1].startswith("_Z4reluILi256Ef")


@pytest.mark.parametrize(
  ("text", "status", "message", "line"),
  [
    (HEAD + "  out[i] = y;\n}\n", "compile_error", '"y" is undefined', 3),
    (HEAD + "  foo(3)\n}\n", "compile_error", '"foo" is undefined', 3),
    (
      "template <class T> __device__ T f(T v) { return v.bad; }\n"
      + HEAD
      + "  out[i] = f(x[i]);\n}\n",
      "compile_error",
      "class type",
      1,
    ),
    (
      HEAD.replace("const float", "const double") + BODY,
      "contract_violation",
      "parameter 1 must be `float* x`",
      None,
    ),
    (
      HEAD.replace("int n", "long long n") + BODY,
      "contract_violation",
      "parameter 3 must be `int n`",
      None,
    ),
    (
      "__global__ void relu(const float* x, float* out) { out[0] = x[0]; }",
      "contract_violation",
      "must take 3 parameters",
      None,
    ),
    (
      HEAD + "  __shared__ float s[20000];\n  s[i] = x[i];\n"
      "  __syncthreads();\n  out[i] = s[n - i];\n}\n",
      "compile_error",
      "too much shared data",
      None,
    ),
    ('#include "/etc/passwd"\n' + HEAD + BODY, "compile_error", "passwd", 1),
    ('#include "/dev/zero"\n' + HEAD + BODY, "compile_error", "zero", 1),
    (
      "float host(float v) { return v; }\n"
      + HEAD
      + "  out[i] = host(x[i]);\n}\n",
      "compile_error",
      "execution space",
      1,
    ),
    (
      "template<int A,int B> struct G{static const int v=G<A-1,B>::v+"
      "G<A,B-1>::v+G<A-1,B-1>::v;};\n" + HEAD + "  out[i]=G<400,400>::v;\n}\n",
      "compile_error",
      "recursi",
      1,
    ),
  ],
)
def test_what_the_compiler_says_comes_with_the_candidates_line(
  executor, text, status, message, line
):
  with pytest.raises(Stop) as stop:
    compile_text(executor, text)
  assert stop.value.status == status, stop.value.message
  assert message in stop.value.message
  assert stop.value.diagnostics[0].line == line
  assert "root:" not in str(stop.value.diagnostics)


def test_an_endless_compilation_is_ended(executor):
  text = (
    "constexpr unsigned f(unsigned n) { unsigned s = 0; for (unsigned i = 0; "
    "i < n; i++) for (unsigned j = 0; j < n; j++) s += i ^ j; return s; }\n"
    + HEAD
    + "  constexpr unsigned v = f(100000); out[i] = v;\n}\n"
  )
  with pytest.raises(Stop) as stop:
    compile_text(executor, text)
  assert stop.value.status in (Status.COMPILE_ERROR, Status.TIMEOUT)
  compile_text(executor, HEAD + BODY)


def compile_with(executor, text, cuda_settings, prepare=lambda folder: None):
  problem = problems.get("relu")
  parsed = candidate_lib.parse(text, problem)
  with executor.folder() as folder:
    prepare(folder)
    return build.compile_cuda(
      executor._host,
      toolkit.find(),
      (9, 0),
      parsed,
      problem,
      shared_translate.entries(parsed),
      folder,
      Settings(),
      cuda_settings,
    )


def test_a_fault_of_the_compilers_process_is_no_verdict(executor):
  def occupy(folder):  # it may not write its result
    (folder / "unit.cubin").touch()

  with pytest.raises(host_lib.HostError, match="compiler: open: error"):
    compile_with(executor, HEAD + BODY, CudaSettings(), occupy)
  # An architecture that NVRTC does not know is no fault of the text either.
  problem = problems.get("relu")
  parsed = candidate_lib.parse(HEAD + BODY, problem)
  with executor.folder() as folder, pytest.raises(host_lib.HostError):
    build.compile_cuda(
      executor._host,
      toolkit.find(),
      (1, 0),
      parsed,
      problem,
      shared_translate.entries(parsed),
      folder,
      Settings(),
      CudaSettings(),
    )


@pytest.mark.parametrize("num_mib", [1, 200])
def test_a_text_that_takes_too_much_memory_is_to_blame(executor, num_mib):
  little = CudaSettings(compile_memory_bytes=num_mib * 2**20)
  with pytest.raises(Stop) as stop:
    compile_with(executor, HEAD + BODY, little)
  assert stop.value.status == Status.COMPILE_ERROR


def test_names_that_are_too_long_are_the_texts(executor):
  text = (
    f"namespace n{'a' * 5000} {{\ntemplate <int N>\n{HEAD}{BODY}}}\n"
    + "".join(
      f"// launch: relu<{n}> grid=(ceil_div(n, 256)) block=(256)\n"
      for n in range(16)
    )
  )
  with pytest.raises(Stop, match="more than 64 KiB") as stop:
    compile_text(executor, text)
  assert stop.value.status == Status.COMPILE_ERROR


def test_host_headers_leave_their_lines():
  text = "#include <math.h>\n#include \\\n <cstdio>\n" + HEAD + BODY
  problem = problems.get("relu")
  unit = translate.translate_unit(candidate_lib.parse(text, problem), problem)
  assert "math.h" not in unit and "cstdio" not in unit
  own = unit.split('#line 1 "kernel.cu"\n')[1].split("\n")
  assert own[3] == HEAD.split("\n")[0]


def test_the_headers_of_the_prelude_exist():
  for folder in toolkit.find().include:
    assert pathlib.Path(folder).is_dir()


def assemble(executor, ptx):
  with executor.folder() as folder:
    return build.assemble(
      executor._host,
      toolkit.find(),
      (9, 0),
      [ptx],
      ["k"],
      (),
      folder,
      Settings(compile_cpu_s=2.0, compile_wall_s=8.0),
      CudaSettings(),
    )


PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k() { BODY ret; }
"""


@pytest.mark.skipif(toolkit.find().nvjitlink is None, reason="no nvJitLink")
def test_numba_solutions_become_cubins(executor):
  pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
  for name in sorted(problems.FAMILIES)[::6]:
    artefact = compile_text(executor, problems.get(name).numba_canonical, name)
    assert artefact.modules[0].startswith(b"\x7fELF")
    for module, symbol in artefact.places:
      assert symbol.encode() in artefact.modules[module]


@pytest.mark.skipif(toolkit.find().nvjitlink is None, reason="no nvJitLink")
@pytest.mark.parametrize(
  "ptx",
  [
    "",
    "no assembly at all",
    "\x00\x7fELF" + "\x01" * 4000,
    PTX.replace("8.0", "99.9").replace("BODY", ""),
    PTX.replace("sm_90", "sm_999").replace("BODY", ""),
    PTX.replace("BODY", "call nowhere;"),
    PTX.replace("BODY", ".shared .b8 s[1000000]; st.shared.u8 [s], 1;"),
    PTX.replace("BODY", "{" * 20000),
    PTX.replace("BODY", '.file 1 "/etc/passwd"\n'),
  ],
)
def test_ptx_from_a_hostile_process_meets_the_sandboxed_assembler(
  executor, ptx
):
  with pytest.raises(Stop) as stop:
    assemble(executor, ptx)
  assert stop.value.status in (Status.COMPILE_ERROR, Status.TIMEOUT)
  assert "root:" not in str(stop.value.diagnostics)
  good = assemble(executor, PTX.replace("BODY", ""))
  assert good.modules[0].startswith(b"\x7fELF")
