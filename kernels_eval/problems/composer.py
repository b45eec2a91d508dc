"""An endless supply of problems: chains of operators, with or without a
reduction at the end.

A name is the problem: `chain-relu-mul_y-add_1` takes x, applies relu,
multiplies by y and adds 1, element by element; `chain-square-sum` adds up the
squares of each row. Difficulty has a dial (the number of operators), and a
split holds out whole compositions. Shapes follow from the name, so that a
held-out composition has shapes of its own.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable

import numpy as np

from kernels_eval.problems import composer_numba, inputs, reference
from kernels_eval.problems.spec import Problem, Tensor

PREFIX = "chain-"
MAX_OPERATORS = 8
_BLOCK = 128
_MAX_VALUE = 1e30  # of a step: other inputs and a sum stay within float32


@dataclasses.dataclass(frozen=True)
class Operator:
  """One step v -> v. `code` is its C++ right-hand side."""

  text: str  # how the statement puts it
  code: str
  apply: Callable[..., np.ndarray]  # (xp, v, y); xp as in `reference.py`


OPERATORS = {
  "relu": Operator(
    "max(v, 0)", "fmaxf(v, 0.0f)", lambda xp, v, y: xp.maximum(v, 0)
  ),
  "neg": Operator("-v", "-v", lambda xp, v, y: -v),
  "abs": Operator("|v|", "fabsf(v)", lambda xp, v, y: xp.abs(v)),
  "square": Operator("v * v", "v * v", lambda xp, v, y: v * v),
  "sigmoid": Operator(
    "1 / (1 + exp(-v))",
    "1.0f / (1.0f + expf(-v))",
    lambda xp, v, y: reference.sigmoid(v, xp),
  ),
  "tanh": Operator("tanh(v)", "tanhf(v)", lambda xp, v, y: xp.tanh(v)),
  "silu": Operator(
    "v / (1 + exp(-v))",
    "v / (1.0f + expf(-v))",
    lambda xp, v, y: v * reference.sigmoid(v, xp),
  ),
  "softsign": Operator(
    "v / (1 + |v|)",
    "v / (1.0f + fabsf(v))",
    lambda xp, v, y: v / (1 + xp.abs(v)),
  ),
  "root": Operator(
    "sqrt(|v|)", "sqrtf(fabsf(v))", lambda xp, v, y: xp.sqrt(xp.abs(v))
  ),
  "log": Operator(
    "log(1 + |v|)", "log1pf(fabsf(v))", lambda xp, v, y: xp.log1p(xp.abs(v))
  ),
  "leaky": Operator(
    "v if v > 0, else 0.1 * v",
    "v > 0.0f ? v : 0.1f * v",
    lambda xp, v, y: xp.where(v > 0, v, v * v.dtype.type(0.1)),
  ),
  "clip": Operator(
    "min(max(v, -1), 1)",
    "fminf(fmaxf(v, -1.0f), 1.0f)",
    lambda xp, v, y: xp.clip(v, -1, 1),
  ),
  "half": Operator(
    "v * 0.5", "v * 0.5f", lambda xp, v, y: v * v.dtype.type(0.5)
  ),
  "double": Operator("v * 2", "v * 2.0f", lambda xp, v, y: v * 2),
  "add_1": Operator("v + 1", "v + 1.0f", lambda xp, v, y: v + 1),
  "sub_1": Operator("v - 1", "v - 1.0f", lambda xp, v, y: v - 1),
  "add_y": Operator("v + y", "v + {y}", lambda xp, v, y: v + y),
  "sub_y": Operator("v - y", "v - {y}", lambda xp, v, y: v - y),
  "mul_y": Operator("v * y", "v * {y}", lambda xp, v, y: v * y),
  "max_y": Operator(
    "max(v, y)", "fmaxf(v, {y})", lambda xp, v, y: xp.maximum(v, y)
  ),
  "min_y": Operator(
    "min(v, y)", "fminf(v, {y})", lambda xp, v, y: xp.minimum(v, y)
  ),
}


@dataclasses.dataclass(frozen=True)
class Reduction:
  """How a row of values becomes one. `join` is C++ over a and b."""

  text: str
  start: str
  join: str
  finish: str  # C++ over the joined value `s[0]`
  apply: Callable[[np.ndarray], np.ndarray]


REDUCTIONS = {
  "sum": Reduction(
    "the sum", "0.0f", "{a} + {b}", "{a}", lambda v: v.sum(axis=-1)
  ),
  "mean": Reduction(
    "the mean", "0.0f", "{a} + {b}", "{a} / cols", lambda v: v.mean(axis=-1)
  ),
  "max": Reduction(
    "the maximum",
    "-INFINITY",
    "fmaxf({a}, {b})",
    "{a}",
    lambda v: v.max(axis=-1),
  ),
  "min": Reduction(
    "the minimum",
    "INFINITY",
    "fminf({a}, {b})",
    "{a}",
    lambda v: v.min(axis=-1),
  ),
}


class CompositionError(ValueError):
  """The name is no composition."""


def split_name(name: str) -> tuple[list[str], str | None]:
  """Operators and reduction (or None) of a name.

  Raises:
    CompositionError: with one line that says what is allowed.
  """
  parts = name.removeprefix(PREFIX).split("-")
  reduction = parts.pop() if parts[-1] in REDUCTIONS else None
  unknown = [p for p in parts if p not in OPERATORS]
  if not name.startswith(PREFIX) or unknown:
    raise CompositionError(
      f"`{(unknown or [name])[0]}` is no operator; a composition is "
      f"{PREFIX}OPERATOR-...[-REDUCTION] with operators "
      f"{', '.join(OPERATORS)} and reductions {', '.join(REDUCTIONS)}"
    )
  if not 1 <= len(parts) <= MAX_OPERATORS:
    raise CompositionError(
      f"{len(parts)} operators; a composition has 1 to {MAX_OPERATORS}"
    )
  return parts, reduction


def join_name(operators: list[str], reduction: str | None) -> str:
  """The name of a composition."""
  return PREFIX + "-".join(operators + ([reduction] if reduction else []))


def sample(rng: np.random.Generator, num_operators: int, reduce: float) -> str:
  """A random composition.

  Args:
    rng: NumPy generator.
    num_operators: length of the chain.
    reduce: probability of a reduction at the end.
  """
  names = list(OPERATORS)
  operators = [str(o) for o in rng.choice(names, num_operators)]
  reduction = None
  if rng.random() < reduce:
    reduction = str(rng.choice(list(REDUCTIONS)))
  return join_name(operators, reduction)


@functools.cache
def _inputs():
  """(x, y) of each kind. Long rows: the minimum of `max_y-relu` is 0 only
  there."""
  rng = np.random.default_rng(0)
  kinds = (inputs.DISTRIBUTIONS[name] for name in inputs.MODERATE)
  return [tuple(make(rng, (16, 256)) for _ in "xy") for make in kinds]


@functools.cache
def _least_moves():
  """For each kind by how much a result must differ from x, and from y."""
  return [tuple(1e-2 * float(np.std(z)) for z in kind) for kind in _inputs()]


@functools.lru_cache(maxsize=64)
def _examples(name):
  """(v, result, largest) for inputs of each kind; v is before the reduction,
  `largest` the largest number on the way there."""
  operators, reduction = split_name(name)
  examples = []
  for x, y in _inputs():
    v, largest = x, 0.0
    for operator in operators:
      v = OPERATORS[operator].apply(np, v, y)
      largest = max(largest, float(np.max(np.abs(v))))
    result = v if reduction is None else REDUCTIONS[reduction].apply(v)
    examples.append((v, result, largest))
  return examples


def is_sound(name: str) -> bool:
  """Whether the composition makes a fair problem.

  False where the result hardly depends on x (`square-neg-relu` and `relu-min`
  are always 0) or is one of the inputs (`add_1-sub_1`): a kernel that writes a
  constant or copies would be right. False too where it comes near the end of
  float32's range (six times `square`).
  """
  varied = moved = False
  within_range = True
  for example, kind, least in zip(
    _examples(name), _inputs(), _least_moves(), strict=True
  ):
    v, result, largest = example
    within_range &= largest < _MAX_VALUE
    moved = moved or all(
      float(np.max(np.abs(v - z))) > gap
      for z, gap in zip(kind, least, strict=True)
    )
    spread = float(np.std(result))
    varied |= spread > 1e-3 * float(np.sqrt(np.mean(result * result))) and (
      len(np.unique(np.round(result / max(spread, 1e-30), 9)))
      > result.size // 8
    )
  return varied and moved and within_range


@functools.cache
def function_key(name: str) -> str:
  """The same for names of the same function, such as `relu`, `relu-relu` and
  `double-relu-half`, found by its values on fixed inputs."""
  digest = hashlib.sha256()
  for _, result, _ in _examples(name):
    scale = max(float(np.std(result)), 1e-30)
    # Six places: far above the noise of another order of operations.
    rounded = np.round(result / scale, 6) + 0.0  # no -0.0
    digest.update(repr((result.shape, float(f"{scale:.6g}"))).encode())
    digest.update(rounded.tobytes())
  return digest.hexdigest()[:16]


def _lines(operators, y, indent):
  pad = " " * indent
  return "".join(
    f"{pad}v = {OPERATORS[o].code.format(y=y)};\n" for o in operators
  )


def _elementwise_source(operators, has_y):
  parameters = "const float* x, " + ("const float* y, " if has_y else "")
  return (
    f"__global__ void kernel({parameters}float* out, int n) {{\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) {\n"
    "    float v = x[i];\n"
    f"{_lines(operators, 'y[i]', 4)}"
    "    out[i] = v;\n"
    "  }\n"
    "}\n"
  )


def _reduction_source(operators, has_y, reduction):
  parameters = "const float* x, " + ("const float* y, " if has_y else "")
  r = REDUCTIONS[reduction]
  return (
    f"__global__ void kernel({parameters}float* out, int rows, int cols) {{\n"
    f"  __shared__ float s[{_BLOCK}];\n"
    "  int row = blockIdx.x;\n"
    "  int t = threadIdx.x;\n"
    f"  float a = {r.start};\n"
    f"  for (int j = t; j < cols; j += {_BLOCK}) {{\n"
    "    float v = x[row * cols + j];\n"
    f"{_lines(operators, 'y[row * cols + j]', 4)}"
    f"    a = {r.join.format(a='a', b='v')};\n"
    "  }\n"
    "  s[t] = a;\n"
    "  __syncthreads();\n"
    f"  for (int k = {_BLOCK // 2}; k > 0; k /= 2) {{\n"
    "    if (t < k) {\n"
    f"      s[t] = {r.join.format(a='s[t]', b='s[t + k]')};\n"
    "    }\n"
    "    __syncthreads();\n"
    "  }\n"
    "  if (t == 0) {\n"
    f"    out[row] = {r.finish.format(a='s[0]')};\n"
    "  }\n"
    "}\n"
  )


def _shapes(name, reduction):
  """Shapes that belong to this name alone: small, odd and larger ones."""
  digest = hashlib.sha256(name.encode()).digest()
  rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8])))
  if reduction is None:
    sizes = (1, rng.integers(2, 64), 256, rng.integers(257, 1000), 1500)
    return tuple(
      {"n": int(n) + (int(rng.integers(0, 500)) if n == 1500 else 0)}
      for n in sizes
    )
  return (
    {"rows": 1, "cols": int(rng.integers(1, 8))},
    {"rows": int(rng.integers(2, 6)), "cols": int(rng.integers(9, 100))},
    {"rows": 4, "cols": _BLOCK},
    {"rows": int(rng.integers(2, 6)), "cols": int(rng.integers(129, 400))},
    {"rows": 3, "cols": int(rng.integers(257, 700))},
  )


@functools.cache
def compose(name: str) -> Problem:
  """The problem that a name stands for.

  Raises:
    CompositionError: the name is no composition.
  """
  operators, reduction = split_name(name)
  has_y = any(o.endswith("_y") for o in operators)
  shape = ("n",) if reduction is None else ("rows", "cols")
  tensors = tuple(Tensor(t, shape) for t in ("x", "y") if t == "x" or has_y)

  def chain(x, y, xp):
    v = x
    for operator in operators:
      v = OPERATORS[operator].apply(xp, v, y)
    return v if reduction is None else REDUCTIONS[reduction].apply(v)

  steps = "; ".join(f"{o}: v = {OPERATORS[o].text}" for o in operators)
  if reduction is None:
    statement = f"For each i < n: v = x[i]; {steps}; out[i] = v."
    if has_y:
      statement = f"For each i < n: v = x[i], y = y[i]; {steps}; out[i] = v."
    source = _elementwise_source(operators, has_y)
    numba_source = composer_numba.elementwise(operators, has_y)
    launch = "grid=(ceil_div(n, 256)) block=(256)"
    output = Tensor("out", ("n",))
    level = 1 if len(operators) <= 2 else 2
  else:
    with_y = ", y = y[row, j]" if has_y else ""
    statement = (
      f"For each row and j < cols: v = x[row, j]{with_y}; {steps}. "
      f"out[row] = {REDUCTIONS[reduction].text} of v over the row."
    )
    source = _reduction_source(operators, has_y, reduction)
    numba_source = composer_numba.reduction(operators, has_y, reduction, _BLOCK)
    launch = f"grid=(rows) block=({_BLOCK})"
    output = Tensor("out", ("rows",))
    level = 2 if len(operators) <= 2 else 3
  return Problem(
    name=name,
    level=level,
    statement=statement,
    dims=shape,
    inputs=tensors,
    outputs=(output,),
    reference=chain if has_y else lambda x, xp: chain(x, None, xp),
    launch=launch,
    shapes=_shapes(name, reduction),
    distributions=inputs.MODERATE,
    canonical_source=source,
    numba_source=numba_source,
    kernel_name="kernel",
  )
