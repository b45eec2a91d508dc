"""The untrusted side: runs a candidate's module and compiles its kernels.

Only ever called in a child of the compile server. Whatever this module returns
may have been made up by the candidate, since both share a process.
"""

import ast
import inspect
import linecache
import pathlib
import re
import traceback
import types

from cuda import pathfinder
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
_EXTERN = re.compile(r"^\.extern \.func .*?(\w+)\s*$", re.M)
_IN_DRIVER = ("vprintf", "malloc", "free", "__assertfail")
_WARM_UP = """
import math
from numba import cuda, float32
@cuda.jit(device=True)
def twice(v):
  return v + v
@cuda.jit
def k(x, y, n):
  s = cuda.shared.array((2, 32), float32)
  i, t = cuda.grid(1), cuda.threadIdx.x
  v = float32(0.0)
  for j in range(i, n, cuda.gridsize(1)):
    v = max(v, twice(math.exp(x[j, 0] / n)))
  half = 16
  while half > 0:
    v += cuda.shfl_down_sync(0xffffffff, v, half)
    half //= 2
  s[0, t] = v if t % 2 == 0 else float32(1.0)
  cuda.syncthreads()
  if i < n and x.shape[1] > 2:
    y[i] = s[0, t] * abs(x[i, 1]) - y[i]
"""
_PLACE = re.compile(r'File "' + re.escape(SOURCE_NAME) + r'", line (\d+)')
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOISE = re.compile(
  r"Failed in .* pipeline|There are \d+ candidate|- Of which|Overload|"
  r"With argument|No match|\* |During: |File |<source|\^$|raised from|"
  r"This error|Enable logging|Known signatures"
)
_FUNCTION = re.compile(
  r"Function\(<(?:[\w-]+ )*'?([\w.]+)'?(?: at 0x[0-9a-f]+)?>\)"
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


def _locations(error):
  """Lines that Numba's own frames speak of, the innermost first."""
  while error is not None:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
      if frame.f_code.co_filename == SOURCE_NAME:
        yield frame.f_lineno
      for value in frame.f_locals.values():
        loc = getattr(value, "loc", value)
        if getattr(loc, "filename", None) == SOURCE_NAME:
          yield getattr(loc, "line", None)
    error = error.__context__


def _line_of(error):
  """The candidate's line that an exception comes from, or None."""
  places = _PLACE.findall(_COLOUR.sub("", str(error)))
  if places:
    return int(places[-1])
  for line in _locations(error):
    if isinstance(line, int) and line > 0:
      return line
  return None


def _message_of(error):
  """One line out of Numba's many."""
  text = _COLOUR.sub("", str(error))
  lines = [x.strip() for x in text.splitlines()]
  lines = [x for x in lines if x and not _NOISE.match(x)]
  first = "; ".join(lines[:2]) or text.strip()[:200]
  return f"{type(error).__name__}: " + _FUNCTION.sub(r"`\1`", first)


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
  except BaseException as error:  # SystemExit is no end of ours
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


def _load_libdevice():
  """Once. numba-cuda would look for NVRTC too, which is not needed here."""
  if nvvm.LibDevice._cache_ is None:
    path = pathfinder.find_bitcode_lib("device")
    nvvm.LibDevice._cache_ = pathlib.Path(path).read_bytes()


def _to_ptx(function, arguments, capability, options):
  _load_libdevice()
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
  text = ptx.decode().strip("\x00").strip()
  for name in _EXTERN.findall(text):
    if name not in _IN_DRIVER:
      raise _Refused("unsupported", contract.not_available(name), None)
  return library._entry_name, (text,)


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
  except _Refused:
    raise
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


def warm_up(output: str) -> None:
  """Compiles a kernel, so that children find everything loaded."""
  parameters = (("float32", 2), ("float32", 1), ("int32", None))
  kernels = (Kernel("k", parameters),)
  result = run(CompileJob(_WARM_UP, kernels, (8, 0), output, None))
  if isinstance(result, Refusal):
    raise RuntimeError(f"numba-cuda compiles no {output}: {result.message}")
