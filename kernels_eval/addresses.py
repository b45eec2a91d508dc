"""Content addresses: all that a verdict depends on, as one digest.

Text and language of the candidate; the definition of its problem; the judge's
executor, toolchain and protections; the limits, and on a GPU what is done there
beside judging; the seed of the inputs; the harness's version and its own code;
processor, NumPy and Numba. Whoever changes any of them gets another address, so
nothing has to be thrown away by hand.
"""

import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
import pathlib
import platform
import types
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from kernels_eval import problems
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.executors import CUDA
from kernels_eval.problems import (
  flops,
  inputs,
  reference,
  spec,
  timing_inputs,
  timing_sizes,
)
from kernels_eval.schema import HARNESS_VERSION, Request

_PACKAGE = pathlib.Path(__file__).parent
_CODE = (".py", ".cpp", ".h", ".map", ".cu", ".cuh")
# What the definitions of problems, and their timed cases, lean on.
_SHARED = (spec, inputs, reference, flops, timing_inputs, timing_sizes)
_PACKAGES = ("numpy", "numba", "numba-cuda", "llvmlite", "nvidia-nvvm")
_MAX_KNOWN = 4096  # digests of problems that are kept


@functools.cache
def _file_digest(path):
  return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


@functools.cache
def _code_digest():
  """Of all code that judges. Problems are not in it: each has its own."""
  digest = hashlib.sha256()
  for path in sorted(_PACKAGE.rglob("*")):
    place = path.relative_to(_PACKAGE)
    if path.suffix in _CODE and place.parts[0] != "problems":
      digest.update(f"{place}\0{_file_digest(path)}\0".encode())
  return digest.hexdigest()


def _versions():
  """Of the packages that compute references and compile kernels."""
  found = []
  for name in _PACKAGES:
    try:
      found.append((name, importlib.metadata.version(name)))
    except importlib.metadata.PackageNotFoundError:
      found.append((name, None))
  return found


def _code(code):
  constants = []
  for constant in code.co_consts:
    if isinstance(constant, types.CodeType):
      constants.append(_code(constant))
    elif isinstance(constant, frozenset):  # no order from process to process
      constants.append(sorted(repr(c) for c in constant))
    else:
      constants.append(repr(constant))
  return code.co_code, code.co_names, code.co_varnames, constants


def _function(function, within):
  """Its bytecode, what it closes over, and the text of its file, for what it
  calls there."""
  if function in within:
    return "itself"
  within = (*within, function)
  path = inspect.getsourcefile(function)
  is_readable = path is not None and pathlib.Path(path).is_file()
  return (
    _file_digest(path) if is_readable else function.__module__,
    _code(function.__code__),
    _plain(function.__defaults__, within),
    _plain(function.__kwdefaults__, within),
    [_plain(c.cell_contents, within) for c in function.__closure__ or ()],
  )


def _plain(value, within=()):
  """Nested sequences that have the same `repr` in every process."""
  if isinstance(value, types.FunctionType):
    return _function(value, within)
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    return [
      (field.name, _plain(getattr(value, field.name), within))
      for field in dataclasses.fields(value)
    ]
  if isinstance(value, Mapping):
    return [(_plain(k, within), _plain(v, within)) for k, v in value.items()]
  if isinstance(value, np.ndarray):  # whose repr leaves out the middle
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes())
    return value.dtype.str, value.shape, digest.hexdigest()
  if isinstance(value, tuple | list):
    return [_plain(v, within) for v in value]
  # Of an object that shows its place in memory here, no other process finds
  # the verdict: a lost hit, never a wrong one.
  return repr(value)


def problem_digest(problem: spec.Problem) -> str:
  """Changes with anything in the problem's definition: statement, signature,
  cases, reference, inputs, tolerance."""
  shared = tuple(_file_digest(module.__file__) for module in _SHARED)
  definition = repr((shared, problem.signature, _plain(problem)))
  return hashlib.sha256(definition.encode()).hexdigest()


def make_address(
  hello: msgspec.Struct, settings: Any, cuda_settings: CudaSettings, seed: int
) -> Callable[[Request], bytes]:
  """Addresses of verdicts by one kind of judge.

  Args:
    hello: what the judges say of themselves.
    settings: their limits, a dataclass.
    cuda_settings: what they do on a GPU; counts where they have one.
    seed: of all test inputs.

  Returns:
    request -> 32 bytes. The request's id does not count.
  """
  judges = msgspec.msgpack.encode(
    (
      HARNESS_VERSION,
      _code_digest(),
      type(hello).__name__,
      msgspec.to_builtins(hello),
      dataclasses.asdict(settings),
      cuda_settings.deciding() if hello.executor == CUDA else None,
      seed,
      platform.machine(),
      _versions(),
    )
  )
  known: dict[str, tuple[spec.Problem, str]] = {}

  def definition(name):
    try:
      problem = problems.get(name)
    except problems.UnknownProblem:
      return ""  # no verdict will come of it
    if name not in known or known[name][0] is not problem:
      if len(known) >= _MAX_KNOWN:
        known.clear()
      known[name] = problem, problem_digest(problem)
    return known[name][1]

  def address(request):
    # The text apart: half of a surrogate pair has no place in msgpack.
    rest = msgspec.structs.replace(request, id="", text="")
    parts = (
      judges,
      definition(request.problem).encode(),
      msgspec.msgpack.encode(rest),
      request.text.encode("utf-8", "surrogatepass"),
    )
    digest = hashlib.sha256()
    for part in parts:
      digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()

  return address
