"""The composer's canonical solutions in Numba-CUDA (composer.py has C++)."""

_OPERATORS = {
  "relu": "max(v, float32(0.0))",
  "neg": "-v",
  "abs": "abs(v)",
  "square": "v * v",
  "sigmoid": "float32(1.0) / (float32(1.0) + math.exp(-v))",
  "tanh": "math.tanh(v)",
  "silu": "v / (float32(1.0) + math.exp(-v))",
  "softsign": "v / (float32(1.0) + abs(v))",
  "root": "math.sqrt(abs(v))",
  "log": "math.log1p(abs(v))",
  "leaky": "v if v > float32(0.0) else float32(0.1) * v",
  "clip": "min(max(v, float32(-1.0)), float32(1.0))",
  "half": "v * float32(0.5)",
  "double": "v * float32(2.0)",
  "add_1": "v + float32(1.0)",
  "sub_1": "v - float32(1.0)",
  "add_y": "v + {y}",
  "sub_y": "v - {y}",
  "mul_y": "v * {y}",
  "max_y": "max(v, {y})",
  "min_y": "min(v, {y})",
}
# start, join, finish over the joined value
_REDUCTIONS = {
  "sum": ("float32(0.0)", "{a} + {b}", "{a}"),
  "mean": ("float32(0.0)", "{a} + {b}", "{a} / float32(cols)"),
  "max": ("float32(-math.inf)", "max({a}, {b})", "{a}"),
  "min": ("float32(math.inf)", "min({a}, {b})", "{a}"),
}


def _steps(operators, y, indent):
  pad = " " * indent
  return "".join(f"{pad}v = {_OPERATORS[o].format(y=y)}\n" for o in operators)


def _imports(body):
  names = "cuda, float32" if "float32" in body else "cuda"
  text = "import math\n\n" if "math." in body else ""
  return f"{text}from numba import {names}\n\n"


def elementwise(operators: list[str], has_y: bool) -> str:
  """A kernel over x[n] (and y[n])."""
  y = "y, " if has_y else ""
  body = (
    "\n@cuda.jit\n"
    f"def kernel(x, {y}out, n):\n"
    "  i = cuda.grid(1)\n"
    "  if i < n:\n"
    "    v = x[i]\n"
    f"{_steps(operators, 'y[i]', 4)}"
    "    out[i] = v\n"
  )
  return _imports(body) + body


def reduction(
  operators: list[str], has_y: bool, name: str, threads: int
) -> str:
  """A kernel with one block for each row of x[rows][cols]."""
  start, join, finish = _REDUCTIONS[name]
  y = "y, " if has_y else ""
  body = (
    f"THREADS = {threads}\n\n\n"
    "@cuda.jit\n"
    f"def kernel(x, {y}out, rows, cols):\n"
    "  s = cuda.shared.array(THREADS, float32)\n"
    "  row = cuda.blockIdx.x\n"
    "  t = cuda.threadIdx.x\n"
    f"  a = {start}\n"
    "  for j in range(t, cols, THREADS):\n"
    "    v = x[row, j]\n"
    f"{_steps(operators, 'y[row, j]', 4)}"
    f"    a = {join.format(a='a', b='v')}\n"
    "  s[t] = a\n"
    "  cuda.syncthreads()\n"
    "  k = THREADS // 2\n"
    "  while k > 0:\n"
    "    if t < k:\n"
    f"      s[t] = {join.format(a='s[t]', b='s[t + k]')}\n"
    "    cuda.syncthreads()\n"
    "    k //= 2\n"
    "  if t == 0:\n"
    f"    out[row] = {finish.format(a='s[0]')}\n"
  )
  return _imports(body) + body
