"""The corpus of hostile candidates (`tests/adversarial`), file by file.

Whatever a candidate does, it may not pass with a wrong output, not end as an
infrastructure error (which would be no outcome at all), and not take longer
than the limits. `test_audit.py` tests the command that does the same.
"""

import pathlib
import tempfile
import time

import pytest

from kernels_eval import audit, corpus, judge_process, problems
from kernels_eval.schema import Request, Status

_SPECIMENS = corpus.load(corpus.default_folder())
GOOD = problems.get("vector_add").canonical
GOOD_NUMBA = problems.get("vector_add").numba_canonical


@pytest.fixture(scope="module")
def judging():
  with tempfile.TemporaryDirectory() as root:
    judge, _, close = judge_process.make(pathlib.Path(root), 0, audit.SETTINGS)
    judge.evaluate(Request("", "vector_add", GOOD_NUMBA))  # starts its compiler
    yield judge
    close()


def _evaluate(judge, text, problem="vector_add"):
  started = time.monotonic()
  answer = judge.evaluate(Request("", problem, text))
  assert time.monotonic() - started < audit.SETTINGS.compile_wall_s
  return answer


@pytest.mark.parametrize("specimen", _SPECIMENS, ids=lambda s: s.name)
def test_candidate_of_the_corpus(judging, specimen):
  why_not = audit.not_applicable(specimen, "cpu")
  if why_not:
    pytest.skip(why_not)
  answer = _evaluate(judging, specimen.text, specimen.problem)
  assert answer.status in specimen.allowed["cpu"], answer
  assert "passwd" not in answer.log and "root:" not in str(answer)
  assert len(answer.message) < 1000 and "\n" not in answer.message


def test_the_judge_still_works(judging):
  """After all of the above."""
  assert _evaluate(judging, GOOD).status == Status.PASSED
  assert _evaluate(judging, GOOD_NUMBA).status == Status.PASSED


_LONG = {
  # name: (status, text)
  "nul_characters": (Status.CONTRACT_VIOLATION, GOOD + "\0"),
  "ten_megabytes": (Status.CONTRACT_VIOLATION, GOOD + "/" * 10_000_000),
  "empty_lines": (Status.PASSED, "\n" * 200_000 + GOOD),
  "comments": (Status.PASSED, "//\n" * 60_000 + GOOD),
  "one_long_line": (Status.PASSED, GOOD + "//" + "x" * 200_000),
  "one_long_name": (
    Status.PASSED,
    f"__device__ int {'x' * 200_000};\n" + GOOD,
  ),
  "spaces": (Status.PASSED, "// launch" + " " * 200_000 + "x\n" + GOOD),
  "long_plan": (
    Status.CONTRACT_VIOLATION,
    "// launch: k grid=" + "a" * 200_000 + "\n" + GOOD,
  ),
  "blank_plan": (
    Status.CONTRACT_VIOLATION,
    "// launch: k grid=" + " " * 200_000 + "b\n" + GOOD,
  ),
  "many_plans": (
    Status.CONTRACT_VIOLATION,
    "// launch: k grid=(1) block=(1)\n" * 5_000 + GOOD,
  ),
  "brackets": (Status.COMPILE_ERROR, GOOD + "(" * 200_000),
  "braces": (Status.COMPILE_ERROR, GOOD + "{" * 200_000),
  "closing_braces": (Status.COMPILE_ERROR, GOOD + "}" * 200_000),
  "initialisers": (Status.COMPILE_ERROR, GOOD + "int a = {}" + "{}" * 90_000),
  "nested_expression": (
    Status.PASSED,
    GOOD + f"__device__ int a = {'(' * 2_000}1{')' * 2_000};",
  ),
  "shared": (Status.COMPILE_ERROR, GOOD + "__shared__ " * 20_000 + "int x;"),
  "kernels": (Status.PASSED, "__global__ " * 20_000 + GOOD),
  "kernel_names": (
    Status.CONTRACT_VIOLATION,
    "".join(f"__global__ void k{i}() {{}}\n" for i in range(5_000)),
  ),
  "fences": (Status.NO_KERNEL, "```\n" * 60_000),
  "quotes": (Status.COMPILE_ERROR, GOOD + "\"'" * 100_000),
  "continued_lines": (Status.COMPILE_ERROR, GOOD + "\\\n" * 100_000 + "x"),
  "directives": (Status.COMPILE_ERROR, GOOD + "#if 1\n" * 40_000),
  "definitions": (
    Status.PASSED,
    "".join(f"#define A{i} {i}\n" for i in range(12_000)) + GOOD,
  ),
  "functions": (
    Status.PASSED,
    "".join(f"__device__ void f{i}();\n" for i in range(8_000)) + GOOD,
  ),
  "nested_lambdas": (  # g++ itself needs minutes
    Status.TIMEOUT,
    GOOD + "__device__ void f() {" + "[](auto a){" * 5_000,
  ),
  "lambdas_in_brackets": (
    Status.COMPILE_ERROR,
    GOOD + "__device__ void f() {" + "([](int a = " * 2_000,
  ),
  "lambdas_without_a_body": (
    Status.COMPILE_ERROR,
    GOOD + "__device__ void f() {" + ", []()" * 40_000 + "; }",
  ),
  "surrogates": (Status.PASSED, GOOD + "// \ud800\udfff\n"),
  "controls": (Status.PASSED, GOOD + "// \x01\x1b[31m\x7f\u2028\u202e\n"),
}


@pytest.mark.parametrize("name", _LONG)
def test_texts_of_extreme_shape(judging, name):
  status, text = _LONG[name]
  answer = _evaluate(judging, text)
  assert answer.status == status, answer.message[:300]
  assert len(answer.message) < 1000
  assert "\n" not in answer.message
