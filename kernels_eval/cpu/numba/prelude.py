"""What Numba's IR calls, in terms of the runtime (native/runtime).

LLVM IR as text. Every function is inlined into its callers, so that the
runtime's return addresses lie in the candidate's own lines. Operation codes are
those of native/device_ops.h.
"""

_ADD, _EXCH, _MIN, _MAX, _AND, _OR, _XOR, _INC, _DEC, _CAS = range(10)
_I32, _U32, _I64, _U64, _F32, _F64 = range(6)
_SYNC, _SHUFFLE, _BALLOT, _MATCH_ANY, _MATCH_ALL = 0, 1, 5, 6, 7

_HEAD = """
@threadIdx = external global [3 x i32]
@blockIdx = external global [3 x i32]
@blockDim = external global [3 x i32]
@gridDim = external global [3 x i32]
declare i64 @ke_warp(i32, i32, i64, i32, i32)
declare i64 @ke_atomic(i32, i32, ptr, i64, i64)
declare i32 @ke_active_mask()
declare i32 @ke_lane()
declare void @ke_fence(i32)
declare i32 @ke_dynamic_shared_bytes()
declare i32 @ke_sync_block_reduce(i32, i32, i32, i32)
declare i32 @ke_vprintf(ptr, ptr)
!0 = !{}
"""

_BODIES = """
define i32 @nvvm.read.ptx.sreg.warpsize() alwaysinline {
  ret i32 32
}
define i32 @nvvm.read.ptx.sreg.laneid() alwaysinline {
  %r = call i32 @ke_lane()
  ret i32 %r
}
define i32 @ke.lanemask.lt() alwaysinline {
  %l = call i32 @ke_lane()
  %b = shl i32 1, %l
  %r = sub i32 %b, 1
  ret i32 %r
}
define void @ke.nothing(i32 %x) alwaysinline {
  ret void
}
define i32 @ke.sync.reduce(i32 %line, i32 %place, i32 %op,
                           i32 %p) alwaysinline {
  %b = icmp ne i32 %p, 0
  %z = zext i1 %b to i32
  %r = call i32 @ke_sync_block_reduce(i32 %line, i32 %place, i32 %op, i32 %z)
  ret i32 %r
}
define { i32, i1 } @nvvm.shfl.sync.i32(i32 %mask, i32 %mode, i32 %v, i32 %b,
                                       i32 %c) alwaysinline {
  %op = add i32 %mode, 1
  %w = zext i32 %v to i64
  %r = call i64 @ke_warp(i32 %op, i32 %mask, i64 %w, i32 %b, i32 32)
  %t = trunc i64 %r to i32
  %s = insertvalue { i32, i1 } { i32 0, i1 1 }, i32 %t, 0
  ret { i32, i1 } %s
}
define { i32, i1 } @nvvm.vote.sync(i32 %mask, i32 %mode, i1 %p) alwaysinline {
  switch i32 %mode, label %ballot [
    i32 0, label %all
    i32 1, label %any
    i32 2, label %equal
  ]
all:
  %not = xor i1 %p, true
  %a = zext i1 %not to i64
  %ar = call i64 @ke_warp(i32 5, i32 %mask, i64 %a, i32 0, i32 32)
  %ac = icmp eq i64 %ar, 0
  br label %predicate
any:
  %n = zext i1 %p to i64
  %nr = call i64 @ke_warp(i32 5, i32 %mask, i64 %n, i32 0, i32 32)
  %nc = icmp ne i64 %nr, 0
  br label %predicate
equal:
  %e = zext i1 %p to i64
  %er = call i64 @ke_warp(i32 7, i32 %mask, i64 %e, i32 0, i32 32)
  %ec = icmp ne i64 %er, 0
  br label %predicate
predicate:
  %c = phi i1 [ %ac, %all ], [ %nc, %any ], [ %ec, %equal ]
  %cs = insertvalue { i32, i1 } { i32 0, i1 0 }, i1 %c, 1
  ret { i32, i1 } %cs
ballot:
  %b = zext i1 %p to i64
  %br = call i64 @ke_warp(i32 5, i32 %mask, i64 %b, i32 0, i32 32)
  %bt = trunc i64 %br to i32
  %bs = insertvalue { i32, i1 } { i32 0, i1 0 }, i32 %bt, 0
  ret { i32, i1 } %bs
}
define void @nvvm.bar.warp.sync(i32 %mask) alwaysinline {
  %r = call i64 @ke_warp(i32 0, i32 %mask, i64 0, i32 0, i32 32)
  ret void
}
define i32 @vprintf(ptr %format, ptr %arguments) alwaysinline {
  %r = call i32 @ke_vprintf(ptr %format, ptr %arguments)
  ret i32 %r
}
"""


def _registers():
  for register, variable in (
    ("tid", "threadIdx"),
    ("ctaid", "blockIdx"),
    ("ntid", "blockDim"),
    ("nctaid", "gridDim"),
  ):
    for i, axis in enumerate("xyz"):
      yield (
        f"define i32 @nvvm.read.ptx.sreg.{register}.{axis}() alwaysinline {{\n"
        f"  %p = getelementptr [3 x i32], ptr @{variable}, i64 0, i64 {i}\n"
        "  %r = load i32, ptr %p, align 4, !nosanitize !0\n"
        "  ret i32 %r\n}\n"
      )


def _fences():
  for scope, name in enumerate(("cta", "gl", "sys")):
    yield (
      f"define void @nvvm.membar.{name}() alwaysinline {{\n"
      f"  call void @ke_fence(i32 {scope})\n  ret void\n}}\n"
    )


def _matches():
  for bits in (32, 64):
    widen = (
      f"  %w = zext i{bits} %v to i64\n"
      if bits < 64
      else "  %w = or i64 %v, 0\n"
    )
    head = f"(i32 %mask, i{bits} %v) alwaysinline {{\n{widen}"
    call = (
      "  %r = call i64 @ke_warp(i32 {op}, i32 %mask, i64 %w, i32 0, i32 32)\n"
      "  %t = trunc i64 %r to i32\n"
    )
    yield (
      f"define i32 @nvvm.match.any.sync.i{bits}{head}"
      f"{call.format(op=_MATCH_ANY)}  ret i32 %t\n}}\n"
    )
    yield (
      f"define {{ i32, i1 }} @nvvm.match.all.sync.i{bits}{head}"
      f"{call.format(op=_MATCH_ALL)}  %c = icmp ne i32 %t, 0\n"
      "  %s = insertvalue { i32, i1 } undef, i32 %t, 0\n"
      "  %q = insertvalue { i32, i1 } %s, i1 %c, 1\n"
      "  ret { i32, i1 } %q\n}\n"
    )


_INTEGER_OF = {"float": "i32", "double": "i64", "i32": "i32", "i64": "i64"}


def _to_bits(value, type_name):
  """IR that puts a value into %<value>.w (i64)."""
  integer = _INTEGER_OF[type_name]
  cast = "bitcast" if integer != type_name else "freeze"
  to = f" to {integer}" if cast == "bitcast" else ""
  text = f"  %{value}.b = {cast} {type_name} %{value}{to}\n"
  if integer == "i32":
    return text + f"  %{value}.w = zext i32 %{value}.b to i64\n"
  return text + f"  %{value}.w = or i64 %{value}.b, 0\n"


def _from_bits(type_name):
  """IR that turns %r (i64) into the returned value."""
  integer, text, name = _INTEGER_OF[type_name], "", "%r"
  if integer == "i32":
    text, name = "  %t = trunc i64 %r to i32\n", "%t"
  if integer != type_name:
    text += f"  %f = bitcast {integer} {name} to {type_name}\n"
    name = "%f"
  return text + f"  ret {type_name} {name}\n"


def _atomic(name, type_name, op, code, negate=False):
  text = f"define {type_name} @{name}(ptr %p, {type_name} %v) alwaysinline {{\n"
  value = "v"
  if negate:
    value = "n"
    text += (
      f"  %n = sub {type_name} 0, %v\n"
      if type_name.startswith("i")
      else f"  %n = fneg {type_name} %v\n"
    )
  return (
    f"{text}{_to_bits(value, type_name)}  %r = call i64 @ke_atomic(i32 {op}, "
    f"i32 {code}, ptr %p, i64 %{value}.w, i64 0)\n{_from_bits(type_name)}}}\n"
  )


def _swap(type_name, code):
  return (
    f"define {{ {type_name}, i1 }} @ke.cas.{type_name}(ptr %p, {type_name} %c, "
    f"{type_name} %v) alwaysinline {{\n{_to_bits('c', type_name)}"
    f"{_to_bits('v', type_name)}  %r = call i64 @ke_atomic(i32 {_CAS}, i32 "
    f"{code}, ptr %p, i64 %v.w, i64 %c.w)\n"
    + (
      "  %t = trunc i64 %r to i32\n"
      if type_name == "i32"
      else "  %t = or i64 %r, 0\n"
    )
    + f"  %q = icmp eq {type_name} %t, %c\n"
    f"  %s = insertvalue {{ {type_name}, i1 }} undef, {type_name} %t, 0\n"
    f"  %u = insertvalue {{ {type_name}, i1 }} %s, i1 %q, 1\n"
    f"  ret {{ {type_name}, i1 }} %u\n}}\n"
  )


def _atomics():
  for float_type, word, code in (
    ("float", "f32", _F32),
    ("double", "f64", _F64),
  ):
    prefix = f"___numba_atomic_{float_type}_"
    yield _atomic(
      f"nvvm.atomic.load.add.{word}.p0{word}", float_type, _ADD, code
    )
    yield _atomic(prefix + "add", float_type, _ADD, code)
    yield _atomic(prefix + "sub", float_type, _ADD, code, negate=True)
    for name, op in (("max", _MAX), ("min", _MIN)):
      yield _atomic(prefix + name, float_type, op, code)
      yield _atomic(prefix + "nan" + name, float_type, op, code)
  for bits, signed, unsigned in ((32, _I32, _U32), (64, _I64, _U64)):
    type_name = f"i{bits}"
    for word, op, code in (
      ("add", _ADD, signed),
      ("xchg", _EXCH, signed),
      ("and", _AND, signed),
      ("or", _OR, signed),
      ("xor", _XOR, signed),
      ("max", _MAX, signed),
      ("min", _MIN, signed),
      ("umax", _MAX, unsigned),
      ("umin", _MIN, unsigned),
    ):
      yield _atomic(f"ke.rmw.{word}.{type_name}", type_name, op, code)
    yield _atomic(
      f"ke.rmw.sub.{type_name}", type_name, _ADD, signed, negate=True
    )
    yield _swap(type_name, signed)
  for word, op in (("inc", _INC), ("dec", _DEC)):
    yield _atomic(f"nvvm.atomic.load.{word}.32.p0i32", "i32", op, _U32)
    yield _atomic(f"___numba_atomic_u64_{word}", "i64", op, _U64)


def text() -> str:
  """The whole module."""
  return "".join(
    [_HEAD, *_registers(), *_fences(), *_matches(), *_atomics(), _BODIES]
  )
