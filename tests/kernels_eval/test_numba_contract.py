"""Which text is a Numba candidate, and what a module may hold."""

import os
import pathlib
import signal
import time

import pytest

from kernels_eval import __main__ as cli
from kernels_eval import candidate, judge_process, problems
from kernels_eval.numba import client, text
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings

ADD = problems.get("vector_add")
GOOD = ADD.numba_canonical
_CUDA = ADD.canonical


def _with(line, after="from numba import cuda\n"):
  return GOOD.replace(after, f"{after}{line}\n")


# ---- language and plan, by the text alone


@pytest.mark.parametrize(
  "answer, language",
  (
    (GOOD, "numba"),
    (_CUDA, "cuda"),
    (f"```python\n{GOOD}```", "numba"),
    (f"```\n{GOOD}```", "numba"),
    (f"```py\n{GOOD}```\nbetter:\n```cuda\n{_CUDA}```", "cuda"),
    (f"```cuda\n{_CUDA}```\nbetter:\n```python\n{GOOD}```", "numba"),
    (f"```cuda\n{_CUDA}```\ntry:\n```python\nprint(1)\n```", "cuda"),
    (f"```cpp\n// no @cuda.jit here\n{_CUDA}```", "cuda"),
    (GOOD.replace("@cuda.jit", "@numba.cuda.jit"), "numba"),
    (GOOD.replace("@cuda.jit", "@cuda.jit(fastmath=True)"), "numba"),
  ),
)
def test_the_language_is_read_from_the_text(answer, language):
  assert candidate.parse(answer, ADD).language == language


@pytest.mark.parametrize(
  "answer",
  (
    "import numba",
    "```cpp\n@cuda.jit\n```",
    "@cuda.jit(device=True)\ndef f(x):\n  return x\n",
    "'''\n@cuda.jit\ndef f(x): pass\n'''",
    "# @cuda.jit\n",
  ),
)
def test_no_kernel(answer):
  with pytest.raises(candidate.CandidateError) as caught:
    candidate.parse(answer, ADD)
  assert caught.value.status == Status.NO_KERNEL


def test_the_plan_stands_in_comments():
  plan = (
    "# scratch: tmp float32 (n, 2)\n"
    "x = '# launch: no grid=(1) block=(1)'\n"
    "  # launch: a grid=(n) block=(32) args=(x, tmp, n)\n"
    "#launch: b grid=(1) block=(1) smem=4*n args=()\n"
    "@cuda.jit\ndef a(p, q, r): pass\n@cuda.jit\ndef b(): pass\n"
  )
  parsed = candidate.parse(plan, ADD)
  assert [(k.kernel, k.line) for k in parsed.launches] == [("a", 3), ("b", 4)]
  assert parsed.scratch[0].shape == ("n", "2")


@pytest.mark.parametrize(
  "plan, message",
  (
    ("# launch: c grid=(1) block=(1)", "no kernel `c`"),
    ("# launch: a<2> grid=(1) block=(1)", "no template arguments"),
    ("# launch: a grid=(f(1)) block=(1)", "launch plan"),
    ("", "`# launch:` line"),
  ),
)
def test_bad_plans(plan, message):
  kernels = "@cuda.jit\ndef a(): pass\n@cuda.jit\ndef b(): pass\n"
  with pytest.raises(candidate.CandidateError, match=message) as caught:
    candidate.parse(f"{plan}\n{kernels}", ADD)
  assert caught.value.status == Status.CONTRACT_VIOLATION


@pytest.mark.parametrize(
  "program",
  ("'" * 200_000, "(" * 200_000, "#" * 200_000, "'''" + "\\" * 200_000, "a\0b"),
)
def test_tokens_of_any_text_end(program):
  joined = "".join(t.text for t in text.tokens(program))
  assert joined == program  # nothing is lost, nothing raises


# ---- the module


_VIOLATIONS = {  # line to add: text of the message
  "import os": "import of `os`",
  "from os import system": "import of `os`",
  "from numba import _private": "private names",
  "from numba.core import config": "import of `numba.core`",
  "print('x')": "only constants",
  "for i in range(3): pass": "only constants",
  "x = open('f')": "a call outside of a kernel",
  "x = __import__('os')": "a call outside of a kernel",
  "x = [i for i in range(3)]": "only constants",
  "def helper(v):\n  return v": "no decorator",
  "class A: pass": "only constants",
  "@cuda.jit('void(float32[:])')\ndef f(v):\n  v[0] = 1": "with a signature",
  "@cuda.jit(link=['a.cu'])\ndef f(v):\n  v[0] = 1": "option `link`",
  "@cuda.jit(cache=True)\ndef f(v):\n  v[0] = 1": "option `cache`",
  "@cuda.jit\ndef f(*v):\n  pass": "fixed list",
  "@cuda.jit\ndef f(v=print(1)):\n  pass": "a call outside of a kernel",
  "@cuda.jit\ndef f(v):\n  open('x')": "`open` is no device function",
  "@cuda.jit\ndef f(v):\n  import os": "import inside",
  "@cuda.jit\ndef f(v):\n  v.__class__": "private attribute",
  "x = cuda.jit.__globals__": "private attribute",
}


@pytest.mark.parametrize("line", _VIOLATIONS)
def test_host_code_is_no_part_of_a_candidate(check, line):
  plan = "# launch: vector_add grid=(ceil_div(n, 256)) block=(256)\n"
  answer = check("vector_add", plan + _with(line))
  assert answer.status == Status.CONTRACT_VIOLATION, answer.message
  assert _VIOLATIONS[line] in answer.message
  # The text starts at line 3 of the module; what is wrong is in it.
  first = answer.diagnostics[0].line - 3
  assert 0 <= first <= line.count("\n")


def test_host_calls_of_kernels_are_refused(check):
  answer = check("vector_add", GOOD + "vector_add[1, 32](1, 2, 3, 4)\n")
  assert answer.status == Status.CONTRACT_VIOLATION
  assert answer.diagnostics[0].line == GOOD.count("\n") + 1


_ALLOWED = (
  '"""Doc."""',
  "import math\nimport numpy as np",
  "from numba import types, float32",
  "from numba.cuda import libdevice",
  "N = 4 * 8 - 1",
  "N: int = 4",
  "A, B = 1, 2.5",
  "import numpy as np\nT = np.array([1, 2], np.float32)",
  "from numba import float32\nHALF = float32(0.5)",
  "@cuda.jit(device=True, inline='always')\ndef f(v):\n  return v",
)


@pytest.mark.parametrize("line", _ALLOWED)
def test_what_a_module_may_hold(check, line):
  plan = "# launch: vector_add grid=(ceil_div(n, 256)) block=(256)\n"
  answer = check("vector_add", plan + _with(line))
  assert answer.status == Status.PASSED, answer.message


_COMPILE_ERRORS = {
  "  out[i] = x[i] +": ("SyntaxError", 8),
  "  out[i] = nothing(x[i])": ("name 'nothing' is not defined", 8),
  "  out[i] = x[i] + 'a'": ("No implementation of function `add`", 8),
  "  s = cuda.shared.array(n, 'f4')": ("shared.array", 8),
  "  return i": ("No conversion", 8),
  "  out.sort()": ("sort", 8),
  "  vector_add(x, y, out, n)": ("re-entrant", 3),
}


@pytest.mark.parametrize("line", _COMPILE_ERRORS)
def test_compile_errors_have_a_line(check, line):
  message, number = _COMPILE_ERRORS[line]
  answer = check("vector_add", GOOD + line + "\n")
  assert answer.status == Status.COMPILE_ERROR, answer.message
  assert message in answer.message
  assert answer.diagnostics[0].line == number + 1
  assert len(answer.message) < 700 and "\n" not in answer.message


def test_the_number_of_parameters_is_checked(check):
  answer = check("vector_add", GOOD.replace("y, out, n", "y, out"))
  assert answer.status == Status.CONTRACT_VIOLATION
  assert "takes 3 parameters; the launch passes 4" in answer.message


def test_records_name_the_executor(check):
  assert check("vector_add", GOOD).executor == "numba-ir"
  assert check("vector_add", _CUDA).executor == "cpu-fiber"


def test_a_compiler_that_dies_is_replaced(check, judge):
  assert check("vector_add", GOOD).status == Status.PASSED
  os.killpg(judge._executor._numba.pid, signal.SIGKILL)
  answer = check("vector_add", GOOD + "# again\n")
  assert answer.status == Status.INFRASTRUCTURE_ERROR
  assert "Numba compiler" in answer.message
  assert check("vector_add", GOOD).status == Status.PASSED


def _family(pid):
  """The process and all that descend from it."""
  found = [pid]
  for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
    for child in task.read_text().split():
      found += _family(int(child))
  return found


def test_closing_ends_the_compiler(tmp_path):
  judging, _, close = judge_process.make(tmp_path, 0, Settings())
  request = Request("", "vector_add", GOOD)
  assert judging.evaluate(request).status == Status.PASSED
  family = _family(judging._executor._numba.pid)
  assert len(family) > 1
  close()
  deadline = time.monotonic() + 3
  alive = family
  while alive and time.monotonic() < deadline:
    alive = [p for p in family if pathlib.Path(f"/proc/{p}").exists()]
  assert not alive


# ---- command line and machine


def test_show_prints_the_signature(capsys):
  assert cli.main(["show", "softmax", "--language=numba", "--solution"]) == 0
  shown = capsys.readouterr().out
  assert "def softmax(x, out, rows, cols):" in shown
  assert "# x: float32 array [rows, cols]" in shown
  assert "# launch: softmax grid=(rows) block=(256)" in shown
  assert "cuda.syncthreads()" in shown


def test_show_says_how_bfloat16_is_passed(capsys):
  assert cli.main(["show", "bfloat16_scale", "--language=numba"]) == 0
  assert "# x: uint16 array [n] (bits)" in capsys.readouterr().out


def test_check_judges_a_file(tmp_path, capsys):
  path = tmp_path / "add.py"
  path.write_text(GOOD)
  assert cli.main(["check", str(path), "--problem", "vector_add"]) == 0
  assert "numba-ir" in capsys.readouterr().out


@pytest.mark.parametrize(
  "versions, message",
  (
    ({"numpy": "2.5.0"}, "numpy<2.5"),
    ({"numba-cuda": None}, "need numba-cuda, which is not installed"),
  ),
)
def test_a_machine_that_cannot_compile_says_so(monkeypatch, versions, message):
  real = client._version
  monkeypatch.setattr(
    client, "_version", lambda n: versions[n] if n in versions else real(n)
  )
  with pytest.raises(client.UnavailableError, match=message):
    client.check_versions()
