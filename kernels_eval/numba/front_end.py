"""The untrusted side: runs a candidate's module and compiles its kernels.

Only ever called in a child of the compile server. Whatever this module returns
may have been made up by the candidate, since both share a process.
"""

import ast
import inspect
import linecache
import re
import traceback
import types

from numba.cuda import dispatcher as dispatcher_lib
from numba.cuda import types as cuda_types
from numba.cuda.compiler import _compile_pyfunc_with_fixup, compile_cuda
from numba.cuda.cudadrv import nvvm

from kernels_eval.numba import contract, half_ir
from kernels_eval.numba.messages import (
  SOURCE_NAME,
  Code,
  Compiled,
  CompileJob,
  Kernel,
  Refusal,
)

_MAX_MESSAGE = 600
_PLACE = re.compile(r'File "' + re.escape(SOURCE_NAME) + r'", line (\d+)')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = re.compile(
  r"Failed in .* pipeline|There are \d+ candidate|^\s*- of which|^\s*>>>|"
  r"^During: |^File |^\s*<source|^\s*\^|raised from|^\s*Overload|^This error|"
  r"^Enable logging|^Known signatures|^\s*\* |^Unknown attribute .* of type None"
)


class _Device:
  """Stands in for the current device, which numba-cuda asks for its compute
  capability when it compiles a device function. Here is none."""

  def __init__(self, compute_capability):
    self.compute_capability = compute_capability


class _Refused(Exception):
  def __init__(self, kind, message, line):
    super().__init__(message)
    self.refusal = Refusal(kind, message[:_MAX_MESSAGE], line)


def numba_type(dtype: str, ndim: int | None):
  """Numba's type of a parameter (`signature.py` says which)."""
  scalar = getattr(cuda_types, dtype)
  return scalar if ndim is None else cuda_types.Array(scalar, ndim, "C")


def _line_of(error):
  """The candidate's line that an exception comes from."""
  loc = getattr(error, "loc", None)
  if loc is not None and loc.filename == SOURCE_NAME:
    return loc.line
  places = _PLACE.findall(_COLOUR.sub("", str(error)))
  if places:
    return int(places[-1])
  for frame in reversed(traceback.extract_tb(error.__traceback__)):
    if frame.filename == SOURCE_NAME:
      return frame.lineno
  return None


def _message_of(error):
  """One line out of Numba's many."""
  text = _COLOUR.sub("", str(error))
  lines = [x.strip() for x in text.splitlines() if not _NOISE.search(x)]
  lines = [x for x in lines if x]
  name = type(error).__name__
  return f"{name}: {'; '.join(lines[:3]) or text.strip()[:200]}"


def _shared_names(tree):
  """(line, name) of assignments from cuda.shared.array, in the text's order."""
  found = []
  for node in ast.walk(tree):
    if (
      isinstance(node, ast.Assign)
      and isinstance(node.value, ast.Call)
      and isinstance(node.targets[0], ast.Name)
      and ast.unparse(node.value.func).endswith("shared.array")
    ):
      found.append((node.lineno, node.col_offset, node.targets[0].id))
  return tuple((line, name) for line, _, name in sorted(found))


def _parse(source):
  try:
    tree = ast.parse(source, SOURCE_NAME)
    contract.check(tree)
    return tree, compile(tree, SOURCE_NAME, "exec")
  except contract.Violation as error:
    raise _Refused("contract", error.message, error.line) from None
  except SyntaxError as error:
    message = f"{type(error).__name__}: {error.msg}"
    raise _Refused("compile", message, error.lineno) from None
  except (RecursionError, MemoryError, ValueError) as error:
    message = f"the module cannot be parsed: {type(error).__name__}"
    raise _Refused("compile", message, None) from None


def _load(source, code):
  """Runs the module; returns its names."""
  linecache.cache[SOURCE_NAME] = (
    len(source),
    None,
    source.splitlines(True),
    SOURCE_NAME,
  )
  module = types.ModuleType("kernel")
  module.__file__ = SOURCE_NAME
  try:
    exec(code, module.__dict__)
  except MemoryError:
    raise _Refused(
      "compile", "out of memory while the module was run", None
    ) from None
  except Exception as error:
    raise _Refused("compile", _message_of(error), _line_of(error)) from None
  return module.__dict__


def _function(names, kernel):
  dispatcher = names.get(kernel.function)
  if not isinstance(dispatcher, dispatcher_lib.CUDADispatcher):
    raise _Refused(
      "contract", f"`{kernel.function}` is no @cuda.jit function", None
    )
  function = dispatcher.py_func
  count = len(inspect.signature(function).parameters)
  if count != len(kernel.parameters):
    raise _Refused(
      "contract",
      f"`{kernel.function}` takes {count} parameters; the launch passes "
      f"{len(kernel.parameters)}",
      function.__code__.co_firstlineno,
    )
  return function, dispatcher.targetoptions


def _to_ir(function, arguments, capability, options):
  result = compile_cuda(
    function,
    cuda_types.void,
    arguments,
    lineinfo=True,
    fastmath=bool(options.get("fastmath")),
    cc=capability,
  )
  return result.fndesc.llvm_func_name, tuple(
    dict.fromkeys(result.library.llvm_strs)
  )


def _to_ptx(function, arguments, capability, options):
  library, _ = _compile_pyfunc_with_fixup(
    function,
    cuda_types.void(*arguments),
    lineinfo=True,
    device=False,
    fastmath=bool(options.get("fastmath")),
    cc=capability,
    abi="numba",
    launch_bounds=options.get("launch_bounds"),
  )
  texts = list(library.llvm_strs)
  if half_ir.is_used(texts):
    texts.append(half_ir.for_nvvm(texts))
  ptx = nvvm.compile_ir(
    texts,
    arch=f"compute_{capability[0]}{capability[1]}",
    opt=3,
    fastmath=bool(options.get("fastmath")),
  )
  return library._entry_name, (ptx.decode().strip("\x00").strip(),)


_OUTPUTS = {"ir": _to_ir, "ptx": _to_ptx}


def _compile(names, kernel: Kernel, job: CompileJob) -> Code:
  function, options = _function(names, kernel)
  arguments = tuple(numba_type(d, n) for d, n in kernel.parameters)
  try:
    symbol, texts = _OUTPUTS[job.output](
      function, arguments, job.compute_capability, options
    )
  except MemoryError:
    raise _Refused("compile", "out of memory while compiling", None) from None
  except Exception as error:
    raise _Refused("compile", _message_of(error), _line_of(error)) from None
  return Code(symbol, texts)


def run(job: CompileJob) -> Compiled | Refusal:
  """Runs the module and compiles the job's kernels."""
  device = _Device(tuple(job.compute_capability))
  dispatcher_lib.get_current_device = lambda: device
  try:
    tree, code = _parse(job.source)
    names = _load(job.source, code)
    for value in names.values():
      if isinstance(value, dispatcher_lib.CUDADispatcher):
        value.targetoptions["lineinfo"] = True
    kernels = tuple(_compile(names, k, job) for k in job.kernels)
    return Compiled(kernels, _shared_names(tree))
  except _Refused as refused:
    return refused.refusal


def warm_up() -> None:
  """Compiles a kernel, so that children find everything loaded."""
  source = (
    "import math\nfrom numba import cuda, float32\n"
    "@cuda.jit(device=True)\ndef twice(v):\n  return v + v\n"
    "@cuda.jit\ndef k(x, y, n):\n"
    "  s = cuda.shared.array(32, float32)\n"
    "  i = cuda.grid(1)\n"
    "  v = float32(0.0)\n"
    "  for j in range(i, n, cuda.gridsize(1)):\n"
    "    v = max(v, twice(math.exp(x[j, 0] / n)))\n"
    "  v += cuda.shfl_down_sync(0xffffffff, v, 1)\n"
    "  s[cuda.threadIdx.x] = v\n"
    "  cuda.syncthreads()\n"
    "  if i < n:\n    y[i] = s[0]\n"
  )
  parameters = (("float32", 2), ("float32", 1), ("int32", None))
  for output in ("ir",):
    result = run(
      CompileJob(source, (Kernel("k", parameters),), (8, 0), output, None)
    )
    if isinstance(result, Refusal):
      raise RuntimeError(f"numba-cuda compiles no {output}: {result.message}")
