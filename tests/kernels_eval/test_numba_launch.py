"""PTX and the parameters that a driver launch of it takes."""

import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

import pytest

from kernels_eval import candidate, problems, sandbox
from kernels_eval.cpu import run_cases, translate
from kernels_eval.cuda import executor as cuda_executor
from kernels_eval.numba import build, client, signature
from kernels_eval.settings import Settings

_SETTINGS = Settings()


@pytest.fixture(scope="module")
def front_end():
  with tempfile.TemporaryDirectory() as root:
    made = client.FrontEnd(sandbox.probe(), pathlib.Path(root), "ptx")
    yield made
    made.close()


def _ptx(front_end, name):
  problem = problems.get(name)
  parsed = candidate.parse(problem.numba_canonical, problem)
  launches = translate.entries(parsed)
  kernels = build.kernels_of(launches, parsed, problem)
  compiled = build.compile_kernels(
    front_end, parsed.source, kernels, "ptx", (9, 0), _SETTINGS
  )
  return problem, parsed, launches, compiled.kernels


def test_an_array_s_words():
  # meminfo, parent, 2 * 3 elements of 4 bytes, data, shape, strides in bytes
  assert signature.array_words(4096, (2, 3), 4) == (
    *(0, 0, 6, 4, 4096),
    *(2, 3),
    *(12, 4),
  )
  assert signature.array_words(8, (5,), 2) == (0, 0, 5, 2, 8, 5, 2)


def _parsed(name, plan):
  problem = problems.get(name)
  text = f"{plan}\n{problem.numba_canonical}"
  parsed = candidate.parse(text, problem)
  return problem, parsed, translate.entries(parsed)


def test_a_launch_has_its_arguments_in_their_order():
  plan = """\
# scratch: tmp float16 (n, 2)
# launch: axpy grid=(1) block=(32) args=(n, tmp, alpha, x)"""
  problem, parsed, launches = _parsed("axpy", plan)
  case = problem.cases[1]
  (made,) = run_cases.make(
    launches,
    parsed,
    problem,
    [(case, problem.make_inputs(case, 0))],
    max_buffer_bytes=2**20,
    max_shared_bytes=2**10,
  )
  places = [64, 128, 256, 4096]  # x, y, out, tmp
  launch = cuda_executor.make_launch(made.launches[0], (0, "axpy"), places)
  n = case.dims["n"]
  (alpha,) = struct.unpack("<I", struct.pack("<f", case.scalars["alpha"]))
  got = [(a.is_address, a.value, a.num_bytes) for a in launch.arguments]
  assert got == [
    (False, n, 4),
    *((False, v, 8) for v in (0, 0, 2 * n, 2)),
    (True, 4096, 8),
    *((False, v, 8) for v in (n, 2, 4, 2)),
    (False, alpha, 4),
    *((False, v, 8) for v in (0, 0, n, 4)),
    (True, 64, 8),
    *((False, v, 8) for v in (n, 4)),
  ]


def _parameter_bits(parameters):
  sizes = []
  for _, ndim in parameters:
    if ndim is None:
      sizes.append(32)
    else:
      sizes += [64] * len(signature.array_words(0, (1,) * ndim, 4))
  return sizes


@pytest.mark.parametrize(
  "name", ("softmax", "axpy", "conv2d_3x3", "half_add", "exclusive_scan")
)
def test_ptx_takes_what_a_launch_gives(front_end, name):
  problem, parsed, launches, codes = _ptx(front_end, name)
  kernels = build.kernels_of(launches, parsed, problem)
  for kernel, code in zip(kernels, codes, strict=True):
    (text,) = code.texts
    entry = text[text.index(f".visible .entry {code.symbol}(") :]
    entry = entry[: entry.index(")\n")]
    sizes = [int(n) for n in re.findall(r"\.param \.[a-z](\d+) ", entry)]
    assert sizes == _parameter_bits(kernel.parameters)


@pytest.mark.parametrize("name", ("gelu", "half_gelu", "half_add", "matmul"))
def test_ptx_needs_no_other_module(front_end, name):
  for code in _ptx(front_end, name)[3]:
    assert ".extern .func" not in code.texts[0]
    assert ".target sm_90" in code.texts[0]


def test_an_assembler_accepts_the_ptx(front_end, tmp_path):
  if shutil.which("ptxas") is None:
    pytest.skip("no ptxas here")
  for name in ("histogram", "half_matmul", "causal_attention"):
    for code in _ptx(front_end, name)[3]:
      (tmp_path / "k.ptx").write_text(code.texts[0])
      subprocess.run(
        ["ptxas", "-arch=sm_90", str(tmp_path / "k.ptx"), "-o", "/dev/null"],
        check=True,
      )
