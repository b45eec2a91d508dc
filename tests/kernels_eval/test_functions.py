"""The second domain: Python functions, judged by hidden tests."""

import os
import warnings

import numpy as np
import pytest

from kernels_eval import __main__ as cli
from kernels_eval import client, problem_cards, problems
from kernels_eval.functions import answer, pipelines
from kernels_eval.outcome import Stop
from kernels_eval.schema import Request, Status
from tests.kernels_eval import function_lab
from tests.kernels_eval.function_lab import NAME, RIGHT, verdict_on

judge = function_lab.judge

XS = [3, -4, -4, 12, 6, 6, -15]

# What each step makes of XS, by hand.
STEPS = {
  "even": [-4, -4, 12, 6, 6],
  "odd": [3, -15],
  "positive": [3, 12, 6, 6],
  "threes": [3, 12, 6, 6, -15],
  "large": [12, -15],
  "square": [9, 16, 16, 144, 36, 36, 225],
  "double": [6, -8, -8, 24, 12, 12, -30],
  "negate": [-3, 4, 4, -12, -6, -6, 15],
  "abs": [3, 4, 4, 12, 6, 6, 15],
  "mod7": [3, 3, 3, 5, 6, 6, 6],
  "half": [1, -2, -2, 6, 3, 3, -8],
  "index": [3, -3, -2, 15, 10, 11, -9],
  "reverse": [-15, 6, 6, 12, -4, -4, 3],
  "sort": [-15, -4, -4, 3, 6, 6, 12],
  "distinct": [3, -4, 12, 6, -15],
  "runs": [3, -4, 12, 6, -15],
  "cumsum": [3, -1, -5, 7, 13, 19, 4],
  "pairs": [-1, -8, 8, 18, 12, -9],
  "diffs": [-7, 0, 16, -6, 0, -21],
  "peaks": [12],
  "others": [3, -4, 6, -15],
  "tail": [-4, -4, 12, 6, 6, -15],
}
# Of XS and of nothing.
RESULTS = {
  "sum": (4, 0),
  "count": (7, 0),
  "max": (12, 0),
  "min": (-15, 0),
  "range": (27, 0),
  "rise": (2, 0),
  "mode": (-4, 0),
}


def test_every_step_and_result_by_hand():
  assert set(STEPS) == set(pipelines.STEPS)
  for name, expected in STEPS.items():
    got = pipelines.get(f"fn-{name}").expected(list(XS))
    assert got == expected, name
  assert set(RESULTS) == set(pipelines.RESULTS)
  for name, (of_list, of_nothing) in RESULTS.items():
    apply = pipelines.RESULTS[name].apply
    assert (apply(list(XS)), apply([])) == (of_list, of_nothing), name


def test_a_problem_says_what_it_wants():
  card = problem_cards.card("fn-even-square-sum")
  assert card.statement == (
    "Given a list xs of whole numbers: keep the even numbers; then square each "
    "number. Return the sum (0 for none)."
  )
  assert card.signature == "def solve(xs: list[int]) -> int:"
  assert (card.language, card.level) == ("python", 3)
  assert problem_cards.card("fn-even").signature.endswith("-> list[int]:")
  for name in (
    "fn-",
    "fn-evn",
    "fn-sum",
    "fn-even-sum-even",
    "fn" + "-even" * 7,
  ):
    with pytest.raises(problems.UnknownProblem, match="is no step"):
      problem_cards.card(name)


def test_a_draw_holds_each_function_once_and_no_idle_step():
  names = problem_cards.functions(0, 200, (1, 4), 0.5)
  assert names == problem_cards.functions(0, 200, (1, 4), 0.5)
  assert names[:50] == problem_cards.functions(0, 50, (1, 4), 0.5)
  keys = {problem_cards.function_key(name) for name in names}
  assert len(keys) == len(names)
  assert not pipelines.is_sound("fn-reverse-sum")  # the order does not matter
  assert not pipelines.is_sound("fn-odd-even-sum")  # always 0
  assert pipelines.function_key("fn-sort-reverse-reverse") == (
    pipelines.function_key("fn-sort")
  )


def test_lazy_answers_are_wrong_somewhere():
  lazy = [lambda xs: xs, lambda xs: [], lambda xs: 0, sum, len, lambda xs: 1]
  for name in problem_cards.functions(3, 100, (1, 4), 0.5):
    tests = pipelines.tests(name, 11)
    assert len(tests) == pipelines.NUM_TESTS
    assert not any(all(f(list(xs)) == y for xs, y in tests) for f in lazy), name


def test_tests_are_the_judges_secret():
  name = "fn-square"
  assert pipelines.tests(name, 1) == pipelines.tests(name, 1)
  assert pipelines.tests(name, 1) != pipelines.tests(name, 2)
  assert pipelines.tests(name, 1)[0] == ([], [])


# ------------------------------------------------------------------- answers


def test_the_function_is_found_in_an_answer():
  body = "def solve(xs):\n  return 0\n"
  assert answer.source_of(body) == body
  fenced = f"Well:\n```python\nx = 1\n```\nor\n```python\n{body}```\nthat is."
  assert answer.source_of(fenced) == body
  for text in (
    "",
    "x = 1",
    "```python\ndef solv(xs): pass\n```",
    "```py\n" + body,
  ):
    with pytest.raises(Stop, match="no code block defines"):
      answer.source_of(text)


def test_only_some_modules_may_be_imported():
  answer.check("import math, itertools as i\nfrom collections import deque")
  answer.check("not python at all (")
  for line in ("import os", "from os.path import join", "import math, socket"):
    with pytest.raises(Stop, match="may not be imported"):
      answer.check(f"def solve(xs):\n  {line}\n")


def test_what_the_compiler_warns_of_is_no_line_of_the_judge(capfd):
  # A candidate's odd spelling is not to show on the user's terminal.
  odd = "x = 1if 2 is 3else 4"
  with warnings.catch_warnings(action="always", category=SyntaxWarning):
    answer.check(odd)
  assert capfd.readouterr().err == ""
  with pytest.raises(Stop, match="may not be imported"):
    answer.check(f"{odd}\nimport os")


# ------------------------------------------------------------------- judging


def test_a_right_function_passes_every_test(judge):
  found = verdict_on(judge, RIGHT)
  assert found.status == Status.PASSED and found.executor == "python"
  assert found.num_cases_passed == found.num_cases == pipelines.NUM_TESTS
  # What it prints, imports and does to its input is its own affair.
  body = f"import math; print(xs); ys = list(xs); xs.clear(); xs = ys; {RIGHT}"
  assert verdict_on(judge, body).passed


_BIG = "return xs if not xs else [10 ** 30]"
VERDICTS = [
  ("return 0", Status.WRONG_ANSWER, "is 0, expected"),
  (f"return float({RIGHT[7:]})", Status.WRONG_ANSWER, "is 0.0, expected 0"),
  ("return False", Status.WRONG_ANSWER, "is false, expected 0"),
  ("return {1}", Status.WRONG_ANSWER, "set"),
  (_BIG, Status.WRONG_ANSWER, "is [], expected 0"),
  ("return xs[99]", Status.RUNTIME_ERROR, "IndexError: list index out of"),
  ("return solve(xs)", Status.RUNTIME_ERROR, "RecursionError"),
  ("return [0] * 10 ** 11", Status.RUNTIME_ERROR, "MemoryError"),
  ("retrn 1", Status.COMPILE_ERROR, "SyntaxError: invalid syntax (line 2)"),
  ("while True: pass", Status.TIMEOUT, "no end within 1 s"),
  ("raise SystemExit(0)", Status.RUNTIME_ERROR, "SystemExit"),
  ("import os", Status.CONTRACT_VIOLATION, "module `os` may not be imported"),
]  # fmt: skip


@pytest.mark.parametrize(
  "body,status,words", VERDICTS, ids=lambda x: str(x)[:20]
)
def test_verdicts(judge, body, status, words):
  found = verdict_on(judge, body)
  assert found.status == status, found.message
  assert words in found.message


def test_the_judge_goes_on_after_all_that(judge):
  assert verdict_on(judge, RIGHT).passed
  unknown = judge.evaluate(Request("1", "fn-evn", "def solve(xs): pass"))
  assert unknown.status == Status.INFRASTRUCTURE_ERROR
  assert "is no step" in unknown.message
  assert verdict_on(judge, RIGHT).passed
  assert not os.listdir(judge._root)


def test_a_pool_judges_both_domains():
  kernel = problems.get("relu").canonical
  function = f"def solve(xs):\n  {RIGHT}\n"
  with client.Pool(num_workers=1, executor="cpu") as pool:
    found = pool.evaluate(
      [Request("1", NAME, function), Request("2", "relu", kernel)]
    )
  assert [e.status for e in found] == [Status.PASSED] * 2
  assert [e.executor for e in found] == ["python", "cpu-fiber"]


def test_the_command_line_knows_them(tmp_path, capsys):
  assert cli.main(["show", NAME]) == 0
  assert "keep the even numbers" in capsys.readouterr().out
  assert cli.main(["show", NAME, "--solution"]) == 2
  assert "no stored solution" in capsys.readouterr().err
  path = tmp_path / "answer.py"
  path.write_text(f"def solve(xs):\n  {RIGHT}\n")
  arguments = ["check", str(path), f"--problem={NAME}", "--executor=cpu"]
  assert cli.main([*arguments, "--no-cache"]) == 0
  assert "right on all 24 tests" in capsys.readouterr().out


def test_inputs_are_of_all_kinds():
  lists = [xs for xs, _ in pipelines.tests("fn-square", 0)]
  assert [] in lists and any(len(xs) != len(set(xs)) for xs in lists)
  assert any(len(xs) == 1 for xs in lists) or len(lists) > 20
  values = np.concatenate([xs for xs in lists if xs])
  assert values.min() < -10 and values.max() > 10
