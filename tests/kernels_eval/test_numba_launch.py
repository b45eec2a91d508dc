"""PTX and the parameters that a driver launch of it takes."""

import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

import pytest

from kernels_eval import candidate, problems, sandbox
from kernels_eval.cpu import executor, translate
from kernels_eval.numba import build, client, signature
from kernels_eval.problems import spec

_SETTINGS = executor.Settings()


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


def test_parameters_are_bytes_in_the_device_s_order():
  packed = signature.pack_array(1 << 40, (2, 3), 4)
  assert struct.unpack("<9q", b"".join(packed))[4] == 1 << 40
  assert {len(p) for p in packed} == {8}
  assert signature.pack_scalar(-2, "int32") == b"\xfe\xff\xff\xff"
  assert signature.pack_scalar(1.0, "float32") == b"\x00\x00\x80\x3f"


def test_a_launch_is_packed_in_the_order_of_its_arguments():
  problem = problems.get("axpy")
  case = problem.cases[1]
  scratch = (spec.Tensor("tmp", ("n", "2"), "float16"),)
  packed = signature.pack(
    ("n", "tmp", "alpha", "x"), problem, scratch, case, {"x": 64, "tmp": 4096}
  )
  n = case.dims["n"]
  want = struct.pack("<i", n)
  want += struct.pack("<9q", 0, 0, 2 * n, 2, 4096, n, 2, 4, 2)
  want += struct.pack("<f", case.scalars["alpha"])
  want += struct.pack("<7q", 0, 0, n, 4, 64, n, 4)
  assert b"".join(packed) == want


def _packed_sizes(parameters):
  sizes = []
  for dtype, ndim in parameters:
    if ndim is None:
      sizes.append(8 * len(signature.pack_scalar(1, dtype)))
    else:
      sizes += [8 * len(p) for p in signature.pack_array(0, (1,) * ndim, 4)]
  return sizes


@pytest.mark.parametrize(
  "name", ("softmax", "axpy", "conv2d_3x3", "half_add", "exclusive_scan")
)
def test_ptx_takes_what_is_packed(front_end, name):
  problem, parsed, launches, codes = _ptx(front_end, name)
  kernels = build.kernels_of(launches, parsed, problem)
  for kernel, code in zip(kernels, codes, strict=True):
    (text,) = code.texts
    entry = text[text.index(f".visible .entry {code.symbol}(") :]
    entry = entry[: entry.index(")\n")]
    sizes = [int(n) for n in re.findall(r"\.param \.[a-z](\d+) ", entry)]
    assert sizes == _packed_sizes(kernel.parameters)


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
