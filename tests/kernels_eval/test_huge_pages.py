"""A compiler's code and heap in huge pages: there, and otherwise unchanged."""

import json
import pathlib
import subprocess
import sys

import pytest

from kernels_eval.cpu import toolchain

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
_ROOT = pathlib.Path(__file__).parents[2]
_GRANTED = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
_SHIM = """\
#include "host.h"
extern "C" void code(void* library) { ke::code_to_huge_pages(library); }
extern "C" void heap() { ke::heap_to_huge_pages(); }
"""
_SCRIPT = """\
import ctypes, json, re, sys
from kernels_eval.cuda import toolkit
from tests.kernels_eval import test_needs

UNIT = "__global__ void k(float* x) { *x = sinf(*x); }"

def huge():
  found = {"code": 0, "heap": 0}
  mapping = ""
  for line in open("/proc/self/smaps"):
    if re.match("[0-9a-f]+-", line):
      mapping = line
    if line.startswith("AnonHugePages:"):
      kind = "heap" if "[heap]" in mapping else "code"
      if kind == "heap" or " r-xp " in mapping:
        found[kind] += int(line.split()[1]) * 1024
  return found

library = ctypes.CDLL(str(toolkit.find().nvrtc))
ours = ctypes.CDLL(sys.argv[1])
answers = [test_needs.compiled(UNIT, [])]
before = huge()
ours.code(ctypes.c_void_p(library._handle))
ours.heap()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
memory = libc.malloc(ctypes.c_size_t(6 * 2**20))
ctypes.memset(memory, 1, 6 * 2**20)
answers.append(test_needs.compiled(UNIT, []))
print(json.dumps([answers, before, huge()]))
"""


def test_nvrtc_works_from_huge_pages(tmp_path):
  (tmp_path / "shim.cpp").write_text(_SHIM)
  built = tmp_path / "shim.so"
  native = toolchain.NATIVE
  subprocess.run(
    [
      *("g++", "-std=c++17", "-fPIC", "-shared", f"-I{native}"),
      *(str(tmp_path / "shim.cpp"), str(native / "huge_pages.cpp")),
      *("-ldl", "-o", str(built)),
    ],
    check=True,
  )
  done = subprocess.run(
    [sys.executable, "-c", _SCRIPT, str(built)],
    capture_output=True,
    text=True,
    cwd=_ROOT,
  )
  assert done.returncode == 0, done.stderr
  answers, before, after = json.loads(done.stdout)
  assert answers[0] == answers[1] and "_Z1kPf" in answers[0][0]
  assert before["code"] == 0
  if _GRANTED.exists() and "[never]" not in _GRANTED.read_text():
    assert after["code"] > 50 * 2**20 and after["heap"] >= 2**21
