"""From NVVM's dialect to the runtime's calls, on LLVM's printed text.

The text is what LLVM prints (one instruction a line, opaque pointers), of a
module that LLVM has parsed and verified; what comes out is parsed and verified
again. What is not understood is refused, never passed on.
"""

import dataclasses
import re
from collections.abc import Sequence

from kernels_eval.numba import half_ir

_LOCATION = re.compile(
  r"^(!\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.M
)
_DBG = re.compile(r", !dbg (!\d+)")
_SHARED = re.compile(
  r"^@(_cudapy_smem_\d+) = (external )?(?:\w+ )*?global (.+?)"
  r"(?: undef| poison| zeroinitializer)?, align (\d+)$"
)
_SHARED_USE = re.compile(
  r"^(\s+%\S+ = )bitcast ptr @(_cudapy_smem_\d+) to ptr(.*)$"
)
_BARRIER = re.compile(
  r"^(\s+(?:%\S+ = )?)call (void|i32) @nvvm\.barrier0(\.popc|\.and|\.or)?"
  r"\((?:i32 ([^)]*))?\)(.*)$"
)
_REDUCTIONS = {".popc": 0, ".and": 1, ".or": 2}
_RMW = re.compile(
  r"^(\s+%\S+ = )atomicrmw (?:volatile )?(\w+) ptr (\S+), (i32|i64) (\S+) "
  r"\w+, align \d+(.*)$"
)
_CAS = re.compile(
  r"^(\s+%\S+ = )cmpxchg (?:volatile )?ptr (\S+), (i32|i64) (\S+), \S+ (\S+) "
  r"\w+ \w+, align \d+(.*)$"
)
# Numba clears a local array with one store, which would become one instruction
# for each word.
_CLEAR = re.compile(
  r"^  store (\[\d+ x .+\]) zeroinitializer, ptr (%\S+), align \d+(.*)$"
)
_ASSEMBLY = {
  'asm sideeffect "mov.u32 $0, %dynamic_smem_size;", "=r"':
    "@ke_dynamic_shared_bytes",
  'asm sideeffect "activemask.b32 $0;", "=r"': "@ke_active_mask",
  'asm sideeffect "mov.u32 $0, %lanemask_lt;", "=r"': "@ke.lanemask.lt",
  'asm sideeffect "nanosleep.u32 $0;", "r"': "@ke.nothing",
}  # fmt: skip
_DECLARATIONS = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @ke_sync_block(i32, i32)
declare i32 @ke.sync.reduce(i32, i32, i32, i32)
declare void @ke_enter_shared(ptr)
declare i32 @ke_dynamic_shared_bytes()
declare i32 @ke_active_mask()
declare i32 @ke.lanemask.lt()
declare void @ke.nothing(i32)
declare float @ke.cvt.f32.f16(i16)
declare double @ke.cvt.f64.f16(i16)
declare i16 @ke.cvt.f16.f32(float)
declare i16 @ke.cvt.f16.f64(double)
@ke_dynamic_arena = external global [131072 x i8], align 1024
"""
_RMW_OPS = "add sub xchg and or xor max min umax umin".split()
_GUARD = "[64 x i8]"  # kSharedGap of runtime/regions.h


class Unsupported(Exception):
  """The CPU executor has no answer to this; `line` is the candidate's."""

  def __init__(self, message: str, line: int | None = None):
    super().__init__(message)
    self.message = message
    self.line = line


def from_nvvm(text: str) -> str:
  """Numba's own text, before any parsing, without address spaces, and with
  names in place of NVVM's intrinsics, which LLVM would upgrade or reject."""
  text = re.sub(r"^target (?:triple|datalayout) = .*$", "", text, flags=re.M)
  # Lines are wanted, variables are not.
  text = re.sub(r'^  call void @"llvm\.dbg\..*$', "", text, flags=re.M)
  text = text.replace("llvm.nvvm.", "nvvm.")
  text = re.sub(r" ?addrspace\(\d+\)", "", text)
  text = text.replace("addrspacecast", "bitcast")
  text = text.replace("DebugDirectivesOnly", "LineTablesOnly")
  return text.replace("!nosanitize", "!no_mark_of_ours")


@dataclasses.dataclass(frozen=True)
class _Array:
  """A static shared array."""

  symbol: str
  type_name: str

  @property
  def element(self):
    return re.sub(r"^\[\d+ x (.*)\]$", r"\1", self.type_name)


def _size(type_name):
  return f"ptrtoint (ptr getelementptr ({type_name}, ptr null, i32 1) to i64)"


def _home(array):
  return f"{{ {_GUARD}, {array.type_name}, {_GUARD} }}"


def _record(array, name, line):
  """The variable, its guard zones and what the runtime knows of it."""
  label = array.symbol.removeprefix("_cudapy_smem_")
  home, text = _home(array), name.encode()[:60]
  start = f"getelementptr ({home}, ptr @shared.home.{label}, i64 0, i32 1)"
  hexed = "".join(f"\\{b:02X}" for b in text)
  return (
    f"@shared.home.{label} = internal global {home} zeroinitializer, "
    "align 1024\n"
    f"@shared.name.{label} = internal constant [{len(text) + 1} x i8] "
    f'c"{hexed}\\00"\n'
    f"@shared.record.{label} = internal global "
    "{ ptr, i64, i64, i32, ptr, i64, ptr } "
    f"{{ ptr @shared.name.{label}, i64 {_size(array.type_name)}, "
    f"i64 {_size(array.element)}, i32 {line or -1}, ptr {start}, i64 0, "
    "ptr null }\n"
  )


class _Rewriter:
  """State of one pass over the lines."""

  def __init__(self, text, shared_names):
    self.lines_of = {m[1]: int(m[2]) for m in _LOCATION.finditer(text)}
    self.shared_names = list(shared_names)
    self.static: dict[str, _Array] = {}
    self.dynamic: set[str] = set()
    self.records: dict[str, str] = {}
    self.num_barriers = 0

  def line_of(self, instruction):
    match = _DBG.search(instruction)
    return self.lines_of.get(match[1]) if match else None

  def name_at(self, line):
    for i, (where, name) in enumerate(self.shared_names):
      if where == line:
        del self.shared_names[i]
        return name
    return "array"

  def global_variable(self, text):
    """The definition, or "" for one that is replaced."""
    match = _SHARED.match(text)
    if match is None:
      return text
    if match[2] or match[3].startswith("[0 x"):
      self.dynamic.add(match[1])
    else:
      self.static[match[1]] = _Array(match[1], match[3])
    return ""

  def shared_use(self, match, line):
    result, symbol, rest = match.groups()
    if symbol in self.dynamic:
      return f"{result}bitcast ptr @ke_dynamic_arena to ptr{rest}"
    array = self.static[symbol]
    if symbol not in self.records:
      self.records[symbol] = _record(array, self.name_at(line), line)
    label = symbol.removeprefix("_cudapy_smem_")
    return (
      f"  call void @ke_enter_shared(ptr @shared.record.{label}){rest}\n"
      f"{result}getelementptr {_home(array)}, ptr @shared.home.{label}, i64 0, "
      f"i32 1{rest}"
    )

  def barrier(self, match, line):
    self.num_barriers += 1
    result, _, kind, predicate, rest = match.groups()
    place = f"i32 {line or 0}, i32 {self.num_barriers}"
    if kind is None:
      return f"{result}call void @ke_sync_block({place}){rest}"
    return (
      f"{result}call i32 @ke.sync.reduce({place}, i32 {_REDUCTIONS[kind]}, "
      f"i32 {predicate}){rest}"
    )

  def instruction(self, text):
    line = self.line_of(text)
    match = _SHARED_USE.match(text)
    if match:
      return self.shared_use(match, line)
    if "@nvvm.barrier0" in text and (match := _BARRIER.match(text)):
      return self.barrier(match, line)
    if " atomicrmw " in text:
      match = _RMW.match(text)
      if not match or match[2] not in _RMW_OPS:
        raise Unsupported("this atomic operation on this type", line)
      result, op, pointer, kind, value, rest = match.groups()
      name = f"@ke.rmw.{op}.{kind}"
      return f"{result}call {kind} {name}(ptr {pointer}, {kind} {value}){rest}"
    if " cmpxchg " in text:
      match = _CAS.match(text)
      if not match:
        raise Unsupported("compare-and-swap on this type", line)
      result, pointer, kind, old, new, rest = match.groups()
      return (
        f"{result}call {{ {kind}, i1 }} @ke.cas.{kind}(ptr {pointer}, {kind} "
        f"{old}, {kind} {new}){rest}"
      )
    if " asm " in text:
      for assembly, function in _ASSEMBLY.items():
        text = text.replace(assembly, function)
      text = half_ir.CONVERSION.sub(r"@ke.cvt.\1.\2", text)
      if " asm " in text:
        raise Unsupported("inline assembly", line)
    match = _CLEAR.match(text)
    if match:
      kind, pointer, rest = match.groups()
      return (
        f"  call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 "
        f"{_size(kind)}, i1 false){rest}"
      )
    if "@_cudapy_smem_" in text:
      raise Unsupported("this use of a shared array", line)
    return text


def to_runtime(text: str, shared_names: Sequence[tuple[int, str]]) -> str:
  """Shared arrays, barriers, atomics and registers become the runtime's.

  Args:
    text: a module as LLVM prints it.
    shared_names: (line, name) of shared arrays, in the candidate's order.

  Raises:
    Unsupported: with the candidate's line.
  """
  rewriter = _Rewriter(text, shared_names)
  out = []
  for line in text.split("\n"):
    if line.startswith("  "):
      out.append(rewriter.instruction(line))
    elif line.startswith("@"):
      out.append(rewriter.global_variable(line))
    elif line.startswith("attributes "):
      out.append(re.sub(r"\b(noinline|optnone|alwaysinline)\b ?", "", line))
    elif line.startswith("define "):
      out.append(re.sub(r" (noinline|optnone|alwaysinline)\b", "", line))
    else:
      out.append(line)
  helpers = (
    "".join(
      f"declare {t} @ke.rmw.{op}.{t}(ptr, {t})\n"
      for op in _RMW_OPS
      for t in ("i32", "i64")
    )
    + "".join(
      f"declare {{ {t}, i1 }} @ke.cas.{t}(ptr, {t}, {t})\n"
      for t in ("i32", "i64")
    )
    + "".join(
      f"declare i16 @ke.cvt.f16.{s}{n}(i{n})\n"
      f"declare i{n} @ke.cvt.{s}{n}.f16(i16)\n"
      for s in "su"
      for n in (8, 16, 32, 64)
    )
  )
  return "\n".join(
    [*out, _DECLARATIONS, helpers, *rewriter.records.values(), ""]
  )
