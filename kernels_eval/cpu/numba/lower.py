"""From Numba's LLVM IR to an object file for this machine.

Trusted code on untrusted data: it runs in a child of the compile server, where
no candidate's module has been run, under the same limits. The IR may have been
written by the candidate itself, so every function and variable of it has to
have a name that is known or its own, and every instruction a kind that device
code needs. The result calls nothing but the runtime and is linked, loaded and
confined as g++'s objects are.
"""

import functools
import re

import llvmlite.binding as llvm

from kernels_eval.cpu.numba import hooks, prelude, rewrite
from kernels_eval.numba import contract, half_ir
from kernels_eval.numba.messages import Limits, LowerJob, Object, Refusal

# What stands between the first two points of an intrinsic's name.
_INTRINSICS = frozenset(
  "abs assume bitreverse bswap ceil copysign cos ctlz ctpop cttz dbg exp fabs"
  " floor fma fmuladd fptosi fptoui fshl fshr ldexp lifetime log log10 log2"
  " maximum maxnum memcpy memmove memset minimum minnum nearbyint pow powi rint"
  " round sadd sin smax smin smul sqrt ssub trap trunc uadd umax umin umul"
  " usub".split()
)
_OPCODES = frozenset(
  "ret br switch unreachable fneg add fadd sub fsub mul fmul udiv sdiv fdiv"
  " urem srem frem shl lshr ashr and or xor extractelement insertelement"
  " shufflevector extractvalue insertvalue alloca load store fence cmpxchg"
  " atomicrmw getelementptr trunc zext sext fptrunc fpext fptoui fptosi uitofp"
  " sitofp ptrtoint inttoptr bitcast icmp fcmp phi select freeze call"
  " tail".split()
)
_INSTRUCTION = re.compile(r"^  (?:%\S+ = )?(\w+)(?: |$)")
_CALLEE = re.compile(r"\bcall ([^%@]*)(?:@|\basm )")
_EXPRESSION = re.compile(
  r"\b(?:inttoptr|getelementptr|bitcast|select|sub|add)\b"
)
_OWN_NAME = re.compile(r"[\w.$<>:~*&,+\-=!|^/\\()\[\]{}?@#% ]+")
_RESERVED = (
  "ke_",
  "ke.",
  "shared.",
  "__tsan_",
  "__ubsan_",
  "__wrap_",
  "__nv_",
  "nvvm.",
)
_VARIABLES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_FUNCTION = re.compile(r"^define .*?@([\w.]+)\(.*?^}\n", re.M | re.S)
_CALLED = re.compile(r"call [^@\n]*@([\w.]+)\(")
_MAX_FUNCTIONS = 4000
_WARM_UP = """
declare i32 @"llvm.nvvm.read.ptx.sreg.tid.x"()
declare void @"llvm.nvvm.barrier0"()
declare float @__nv_expf(float)
define i32 @k(i8** %r, float* %x, i32 %n) {
  %i = call i32 @"llvm.nvvm.read.ptx.sreg.tid.x"()
  %c = icmp slt i32 %i, %n
  br i1 %c, label %inside, label %end
inside:
  %p = getelementptr float, float* %x, i32 %i
  %v = load float, float* %p
  %e = call float @__nv_expf(float %v)
  %w = fadd float %e, %v
  store float %w, float* %p
  call void @"llvm.nvvm.barrier0"()
  br label %end
end:
  ret i32 0
}
"""


class _Refused(Exception):
  def __init__(self, kind, message, line=None):
    super().__init__(message)
    self.refusal = Refusal(kind, message[:600], line)


@functools.cache
def _target():
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  return llvm.Target.from_default_triple().create_target_machine(
    opt=1, reloc="pic", codemodel="small"
  )


@functools.cache
def _prelude():
  """(functions by name, everything else) of what Numba's IR may call."""
  text = prelude.text() + half_ir.for_host()
  functions = {m[1]: m[0] for m in _FUNCTION.finditer(text)}
  return functions, _FUNCTION.sub("", text)


def _prelude_for(module):
  """A module that defines what this one declares of the prelude."""
  functions, head = _prelude()
  wanted = [f.name for f in module.functions if f.is_declaration]
  bodies = {}
  while wanted:
    name = wanted.pop()
    if name in functions and name not in bodies:
      bodies[name] = functions[name]
      wanted += _CALLED.findall(functions[name])
  return _parse(head + "".join(bodies.values()))


def _parse(text):
  try:
    module = llvm.parse_assembly(text)
    module.verify()
  except RuntimeError as error:
    first = str(error).strip().splitlines()[:2]
    raise _Refused(
      "unsupported", f"the CPU executor cannot read this IR: {' '.join(first)}"
    ) from None
  return module


def _check_names(module):
  """Refuses declarations of anything but what device code may call."""
  known = _prelude()[0]
  functions = list(module.functions)
  if len(functions) > _MAX_FUNCTIONS:
    raise _Refused("unsupported", f"{len(functions)} functions")
  for function in functions:
    name = function.name
    if function.is_declaration:
      allowed = (
        name in known
        or name.startswith("__nv_")
        or name.startswith("nvvm.barrier0")
        or (name.startswith("llvm.") and name.split(".")[1] in _INTRINSICS)
      )
      if not allowed:
        raise _Refused("unsupported", contract.not_available(name))
    elif name.startswith((*_RESERVED, "llvm.")) or name in known:
      raise _Refused("integrity", f"the module defines `{name[:80]}`")
  for variable in module.global_variables:
    name = variable.name
    if name.startswith((*_RESERVED, "llvm.")) or name in _VARIABLES:
      raise _Refused("integrity", f"the module defines `{name[:80]}`")


def _is_plain_call(line):
  """Whether a call names its function. Between are types and attributes, none
  of which has a `%` or is an expression."""
  match = _CALLEE.search(line)
  return match is not None and not _EXPRESSION.search(match[1])


def _check_instructions(text):
  if "\nmodule asm" in text or "\n@llvm.global_ctors" in text:
    raise _Refused("integrity", "assembly or constructors in the module")
  if re.search(r"^@\S+ = .*\b(?:ifunc|alias)\b", text, re.M):
    raise _Refused("integrity", "an alias in the module")
  for line in text.split("\n"):
    match = _INSTRUCTION.match(line)
    if not match or line.startswith("   "):
      continue  # cases of a switch lie deeper
    if match[1] not in _OPCODES:
      raise _Refused(
        "integrity", f"instruction `{match[1][:40]}` in the module"
      )
    if "blockaddress(" in line:
      raise _Refused("integrity", "an address of code in the module")
    if match[1] in ("call", "tail") and not _is_plain_call(line):
      raise _Refused("unsupported", "a call through a pointer")


def _entry(index, symbol, words):
  """`void ke_launch_<index>(ptr)`, which unpacks the runtime's arguments."""
  lines = [f"define void @ke_launch_{index}(ptr %a) {{"]
  values = []
  for i, word in enumerate(words):
    lines += [
      f"  %p{i} = getelementptr ptr, ptr %a, i64 {i}",
      f"  %q{i} = load ptr, ptr %p{i}, align 8, !nosanitize !0",
      f"  %v{i} = load {word}, ptr %q{i}, align 1, !nosanitize !0",
    ]
    values.append(f"{word} %v{i}")
  quoted = '"' + symbol + '"'
  types = ", ".join(["ptr", *words])
  return "\n".join(
    [
      *lines,
      "  %ret = alloca ptr, align 8",
      f"  %r = call i32 @{quoted}({', '.join(['ptr %ret', *values])})",
      "  ret void",
      "}",
    ]
  ), f"declare i32 @{quoted}({types})"


def _entries(job):
  bodies, declarations = [], {}
  for index, symbol in enumerate(job.symbols):
    if not _OWN_NAME.fullmatch(symbol) or '"' in symbol:
      raise _Refused("integrity", "a kernel's symbol is no name")
    body, declaration = _entry(index, symbol, job.words[index])
    bodies.append(body)
    declarations[symbol] = declaration
  return _parse("\n".join([*declarations.values(), *bodies, "!0 = !{}"]))


def _check_signature(module, symbol, words):
  try:
    function = module.get_function(symbol)
  except NameError:
    raise _Refused("integrity", "a kernel is not in its module") from None
  found = [str(a.type) for a in function.arguments]
  if found != ["ptr", *words]:
    raise _Refused(
      "integrity", f"a kernel takes ({', '.join(found)}), not what it is given"
    )


def _inline(module, symbols):
  """Everything into the kernels, structs and copies into registers. Nothing
  that would remove an access to memory that others can see.

  Kernels stay functions: the entries have no lines that theirs could be.
  """
  for function in module.functions:
    if function.is_declaration:
      continue
    if function.name.startswith("ke_launch_"):
      function.linkage = "external"
    else:
      function.linkage = "internal"
      is_kernel = function.name in symbols
      function.add_function_attribute(
        "noinline" if is_kernel else "alwaysinline"
      )
  manager = llvm.create_new_module_pass_manager()
  manager.add_always_inliner_pass()
  manager.add_global_dead_code_eliminate_pass()
  passes = llvm.create_new_function_pass_manager()
  passes.add_sroa_pass()
  passes.add_sccp_pass()
  passes.add_simplify_cfg_pass()
  builder = llvm.create_pass_builder(_target(), llvm.PipelineTuningOptions())
  manager.run(module, builder)
  for function in module.functions:
    if not function.is_declaration:
      passes.run(function, builder)


def _object(job: LowerJob) -> bytes:
  merged = None
  for text in dict.fromkeys(job.modules):
    module = _parse(rewrite.from_nvvm(text))
    if merged is None:
      merged = module
    else:
      merged.link_in(module)
  if merged is None:
    raise _Refused("integrity", "no module")
  _check_names(merged)
  for symbol, words in zip(job.symbols, job.words, strict=True):
    _check_signature(merged, symbol, words)
  text = str(merged)
  _check_instructions(text)
  module = _parse(rewrite.to_runtime(text, job.shared_names))
  module.triple = llvm.get_default_triple()
  module.data_layout = str(_target().target_data)
  module.link_in(_prelude_for(module))
  module.link_in(_entries(job))
  _inline(module, job.symbols)
  checked = _parse(hooks.add(str(module)))
  return _target().emit_object(checked)


def run(job: LowerJob) -> Object | Refusal:
  """Lowers the modules of one candidate."""
  try:
    return Object(_object(job))
  except _Refused as refused:
    return refused.refusal
  except rewrite.Unsupported as error:
    message = f"the CPU executor does not support {error.message}"
    return Refusal("unsupported", message, error.line)
  except RuntimeError as error:  # LLVM's linker
    message = " ".join(str(error).split())[:300]
    return Refusal("unsupported", f"the CPU executor: {message}", None)


def warm_up() -> None:
  """Lowers a kernel, so that children find LLVM's passes and tables made."""
  limits = Limits(1.0, 1.0, 0, 0)
  result = run(LowerJob((_WARM_UP,), ("k",), (("ptr", "i32"),), (), limits))
  if isinstance(result, Refusal):
    raise RuntimeError(f"the CPU executor lowers no IR: {result.message}")
