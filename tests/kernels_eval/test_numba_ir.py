"""What the CPU executor makes of IR that a candidate has written itself."""

import pathlib
import tempfile

import pytest

from kernels_eval import outcome, sandbox
from kernels_eval.numba import build, client
from kernels_eval.numba.messages import LowerJob, Object
from kernels_eval.schema import Status
from kernels_eval.settings import Settings

_SETTINGS = Settings(compile_cpu_s=2.0)


@pytest.fixture(scope="module")
def front_end():
  with tempfile.TemporaryDirectory() as root:
    made = client.FrontEnd(sandbox.probe(), pathlib.Path(root))
    yield made
    made.close()


def _lower(front_end, body, before=""):
  text = (
    f"{before}\ndefine i32 @k(i8** %r, float %x) {{\n{body}\n  ret i32 0\n}}\n"
  )
  job = LowerJob((text,), ("k",), (("float",),), (), build.limits_of(_SETTINGS))
  return build.result_of(front_end.ask(job), Object, _SETTINGS).contents


def test_plain_ir_becomes_an_object_file(front_end):
  assert _lower(front_end, "  %y = fadd float %x, %x")[:4] == b"\x7fELF"


_HOSTILE = {
  "assembly": ('  call void asm sideeffect "syscall", ""()', ""),
  "module_assembly": ("", 'module asm "syscall"'),
  "unknown_function": ("  call void @system()", "declare void @system()"),
  "runtime_function": (
    "  call void @ke_execute()",
    "declare void @ke_execute()",
  ),
  "own_barrier": ("", "define void @ke_sync_block(i32 %a) {\n  ret void\n}"),
  "own_check": ("", "define void @__tsan_write4(i8* %a) {\n  ret void\n}"),
  "own_index": ("", "@threadIdx = global [3 x i32] zeroinitializer"),
  "own_warp": (
    "",
    'define void @"llvm.nvvm.bar.warp.sync"(i32 %m) {\n  ret void\n}',
  ),
  "pointer_call": (
    "  %f = inttoptr i64 4096 to void ()*\n  call void %f()",
    "",
  ),
  "constant_call": ("  call void inttoptr (i64 4096 to void ()*)()", ""),
  "middle_of_a_function": (
    "  call void getelementptr (i8, i8* bitcast (i32 (i8**, float)* @k to "
    "i8*), i64 5)()",
    "",
  ),
  "return_address": (
    "  %a = call i8* @llvm.returnaddress(i32 0)",
    "declare i8* @llvm.returnaddress(i32)",
  ),
  "constructor": (
    "",
    "define void @c() {\n  ret void\n}\n@llvm.global_ctors = appending global "
    "[1 x { i32, void ()*, i8* }] [{ i32, void ()*, i8* } { i32 1, void ()* "
    "@c, i8* null }]",
  ),
  "alias": ("", "@a = alias i32 (i8**, float), i32 (i8**, float)* @k"),
  "indirect_branch": (
    "  br label %b\nb:\n  indirectbr i8* blockaddress(@k, %b), [label %b]\nc:",
    "",
  ),
  "other_parameters": (None, "define i32 @k(i8** %r) {\n  ret i32 0\n}"),
  "no_kernel": (None, "define i32 @other() {\n  ret i32 0\n}"),
  "no_ir": (None, "this is no IR"),
  "nothing": (None, ""),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_hostile_ir_is_refused(front_end, name):
  body, before = _HOSTILE[name]
  with pytest.raises(outcome.Stop) as caught:
    if body is None:
      limits = build.limits_of(_SETTINGS)
      job = LowerJob((before,), ("k",), (("float",),), (), limits)
      build.result_of(front_end.ask(job), Object, _SETTINGS)
    else:
      _lower(front_end, body, before)
  assert caught.value.status in (
    Status.COMPILE_ERROR,
    Status.INTEGRITY_VIOLATION,
  )


def test_checks_cannot_be_switched_off(front_end):
  """`!nosanitize` is the mark of our own loads."""
  body = (
    "  %p = inttoptr i64 4096 to i32*\n"
    "  %v = load i32, i32* %p, align 4, !nosanitize !0\n"
    "  store i32 %v, i32* %p, align 4, !nosanitize !0"
  )
  contents = _lower(front_end, body, "!0 = !{}")
  assert b"__tsan_read4" in contents and b"__tsan_write4" in contents


def test_endless_inlining_is_stopped(front_end):
  chain = "define float @f0(float %x) {\n  ret float %x\n}\n" + "".join(
    f"define float @f{i}(float %x) {{\n"
    f"  %a = call float @f{i - 1}(float %x)\n"
    f"  %b = call float @f{i - 1}(float %a)\n"
    "  %c = fadd float %a, %b\n  ret float %c\n}\n"
    for i in range(1, 40)
  )
  with pytest.raises(outcome.Stop) as caught:
    _lower(front_end, "  %y = call float @f39(float %x)", chain)
  assert caught.value.status in (Status.TIMEOUT, Status.COMPILE_ERROR)
