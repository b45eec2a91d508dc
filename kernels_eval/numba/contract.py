"""Is a module what a candidate may be: kernels, device functions, constants?

Runs inside of the sandbox before the module does. A courtesy, no protection: it
says early and with a line what is not wanted. What protects is the sandbox.
"""

import ast
from typing import NoReturn

_MODULES = ("numba", "numba.cuda", "numba.cuda.libdevice", "numba.types")
_MODULES += ("math", "numpy")
_OPTIONS = ("device", "fastmath", "inline", "forceinline", "launch_bounds")
_OPTIONS += ("max_registers", "lineinfo", "opt")
_CALLABLE = ("array", "asarray", "full", "zeros", "ones", "arange", "linspace")
_FORBIDDEN = (
  "open",
  "exec",
  "eval",
  "compile",
  "input",
  "breakpoint",
  "getattr",
)
_FORBIDDEN += ("setattr", "delattr", "globals", "locals", "vars", "memoryview")


class Violation(Exception):
  """What is not allowed, and the line (1-based) where it stands."""

  def __init__(self, message: str, line: int):
    super().__init__(message)
    self.message = message
    self.line = line


def _refuse(node, message) -> NoReturn:
  raise Violation(message, node.lineno)


def _dotted(node):
  """`a.b.c` as text, or "" for anything else."""
  parts = []
  while isinstance(node, ast.Attribute):
    parts.append(node.attr)
    node = node.value
  if not isinstance(node, ast.Name):
    return ""
  return ".".join([node.id, *reversed(parts)])


def _check_import(node):
  if isinstance(node, ast.Import):
    names = [alias.name for alias in node.names]
  else:
    names = ["." * node.level + (node.module or "")]
    if any(
      alias.name.startswith("_") or alias.name == "*" for alias in node.names
    ):
      _refuse(node, f"import of private names from `{names[0]}`")
  for name in names:
    if name not in _MODULES:
      _refuse(
        node,
        f"import of `{name[:60]}`; a kernel may import {', '.join(_MODULES)}",
      )


def _check_constant(node):
  """Literals, names, arithmetic, NumPy arrays and number types."""
  for part in ast.walk(node):
    if isinstance(part, ast.Call):
      name = _dotted(part.func).rpartition(".")[2]
      is_type = name.rstrip("0123456789_") in ("float", "int", "uint", "bool")
      if name not in (*_CALLABLE, "min", "max", "len", "range") and not is_type:
        _refuse(part, "host code: a call outside of a kernel")
    elif isinstance(
      part,
      ast.Lambda
      | ast.Await
      | ast.Yield
      | ast.YieldFrom
      | ast.NamedExpr
      | ast.ListComp
      | ast.SetComp
      | ast.DictComp
      | ast.GeneratorExp,
    ):
      _refuse(part, "host code: only constants stand outside of kernels")


def _check_decorator(function):
  if len(function.decorator_list) != 1:
    what = "several decorators" if function.decorator_list else "no decorator"
    _refuse(
      function,
      f"`{function.name[:60]}` has {what}: a function is a kernel (@cuda.jit) "
      "or a device function (@cuda.jit(device=True))",
    )
  decorator = function.decorator_list[0]
  called = isinstance(decorator, ast.Call)
  name = _dotted(decorator.func if called else decorator)
  if name not in ("cuda.jit", "numba.cuda.jit"):
    _refuse(
      function, f"decorator `{name[:60] or '?'}`; only @cuda.jit is allowed"
    )
  if not called:
    return
  if decorator.args:
    _refuse(
      function,
      "@cuda.jit with a signature: leave it out, the problem fixes the types",
    )
  for keyword in decorator.keywords:
    if keyword.arg not in _OPTIONS:
      _refuse(
        function,
        f"option `{str(keyword.arg)[:40]}` of @cuda.jit; allowed are "
        f"{', '.join(_OPTIONS)}",
      )
    _check_constant(keyword.value)


def _check_function(function):
  _check_decorator(function)
  arguments = function.args
  if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
    _refuse(function, "a kernel takes a fixed list of parameters")
  defaults = [*arguments.defaults, function.returns]
  every = [*arguments.posonlyargs, *arguments.args]
  defaults += [a.annotation for a in every]
  for value in defaults:
    if value is not None:
      _check_constant(value)
  for part in ast.walk(function):
    if isinstance(part, ast.Import | ast.ImportFrom):
      _refuse(part, "an import inside of a kernel")
    if isinstance(part, ast.Name) and (
      part.id in _FORBIDDEN or part.id.startswith("__")
    ):
      _refuse(part, f"host code: `{part.id[:60]}` is no device function")
    if isinstance(part, ast.Attribute) and part.attr.startswith("_"):
      _refuse(part, f"private attribute `{part.attr[:60]}`")


def check(tree: ast.Module) -> None:
  """Walks the module.

  Raises:
    Violation: at the first thing that is not allowed.
  """
  for node in tree.body:
    if isinstance(node, ast.Import | ast.ImportFrom):
      _check_import(node)
    elif isinstance(node, ast.FunctionDef):
      _check_function(node)
    elif isinstance(node, ast.Assign):
      for target in node.targets:
        if not isinstance(target, ast.Name | ast.Tuple):
          _refuse(node, "host code: only constants stand outside of kernels")
      _check_constant(node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
      _check_constant(node.annotation)
      _check_constant(node.value)
    elif not (
      isinstance(node, ast.Pass)
      or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ):
      _refuse(node, "host code: only constants stand outside of kernels")
    for part in ast.walk(node):
      if isinstance(part, ast.Attribute) and part.attr.startswith("__"):
        _refuse(part, f"private attribute `{part.attr[:60]}`")
