"""A judge of Python functions, and one problem for it."""

import pytest

from kernels_eval.functions import judging
from kernels_eval.schema import Request
from kernels_eval.settings import Settings

NAME = "fn-even-square-sum"
RIGHT = "return sum(x * x for x in xs if x % 2 == 0)"


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
  made = judging.FunctionJudge(
    tmp_path_factory.mktemp("functions"), Settings(run_cpu_s=1.0), seed=5
  )
  yield made
  made.close()


def verdict_on(judge, body, name=NAME):
  text = f"```python\ndef solve(xs):\n  {body}\n```"
  return judge.evaluate(Request("1", name, text))
