"""Canonical Python functions and mistakes in them, before the real judge."""

import collections

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from kernels_eval import client, problem_cards
from kernels_eval.functions import mistakes, pipelines, solutions
from kernels_eval.schema import Request, Status
from tests.kernels_eval import function_lab

judge = function_lab.judge

pipeline_names = st.builds(
  lambda steps, result: pipelines.PREFIX + "-".join([*steps, *result]),
  st.lists(
    st.sampled_from(list(pipelines.STEPS)),
    min_size=1,
    max_size=pipelines.MAX_STEPS,
  ),
  st.lists(st.sampled_from(list(pipelines.RESULTS)), max_size=1),
)


def test_every_step_and_result_has_a_text():
  assert list(solutions.STEPS) == list(pipelines.STEPS)
  assert set(solutions.RESULTS) == {None, *pipelines.RESULTS}
  with pytest.raises(pipelines.PipelineError, match="is no step"):
    solutions.canonical("fn-evn")


def test_a_text_says_what_the_statement_says_line_by_line():
  assert solutions.canonical("fn-even-square-sum") == (
    "def solve(xs: list[int]) -> int:\n"
    "    xs = [x for x in xs if x % 2 == 0]\n"
    "    xs = [x * x for x in xs]\n"
    "    return sum(xs)\n"
  )
  assert solutions.canonical("fn-tail") == (
    "def solve(xs: list[int]) -> list[int]:\n    xs = xs[1:]\n    return xs\n"
  )


@pytest.mark.parametrize("step", pipelines.STEPS)
def test_each_step_passes_alone(judge, step):
  _check_passes(judge, f"fn-{step}")


@pytest.mark.parametrize("result", pipelines.RESULTS)
def test_each_result_passes_after_a_step(judge, result):
  _check_passes(judge, f"fn-index-{result}")


@hypothesis.given(pipeline_names)
@hypothesis.settings(max_examples=60, deadline=None)
def test_every_pipeline_passes(judge, name):
  _check_passes(judge, name)


def _check_passes(judge, name):
  text = f"```python\n{solutions.canonical(name)}```"
  found = judge.evaluate(Request("1", name, text))
  assert found.passed, found.message


# ------------------------------------------------------------------ mistakes


@hypothesis.given(pipeline_names, st.integers(0, 2**32 - 1))
def test_a_mistake_changes_the_text(name, seed):
  source = solutions.canonical(name)
  rule, changed = mistakes.mutate(source, np.random.default_rng(seed))
  assert changed != source
  assert rule in {one.name for one in mistakes.RULES}
  assert mistakes.mutate(source, np.random.default_rng(seed)) == (rule, changed)


def test_a_text_without_a_place_is_left_alone():
  assert mistakes.mutate("pass", np.random.default_rng(0)) is None


@pytest.fixture(scope="module")
def verdicts():
  """Statuses by rule: each one in up to four problems."""
  places = collections.defaultdict(list)
  for name in problem_cards.functions(5, 600, (1, 3), 0.5):
    source = solutions.canonical(name)
    for rule in mistakes.RULES:
      match = rule.pattern.search(source)
      if match and len(places[rule.name]) < 4:
        start, end = match.span()
        changed = match.expand(rule.replacement)
        text = source[:start] + changed + source[end:]
        places[rule.name].append(Request(f"{rule.name}/{name}", name, text))
  requests = [request for each in places.values() for request in each]
  with client.Pool(num_workers=2, executor="cpu") as pool:
    found = pool.evaluate(requests)
  by_rule = collections.defaultdict(list)
  for evaluation in found:
    by_rule[evaluation.id.split("/")[0]].append(evaluation.status)
  return by_rule


def test_every_mistake_is_one_somewhere(verdicts):
  assert set(verdicts) == {rule.name for rule in mistakes.RULES}
  harmless = [
    rule for rule, found in verdicts.items() if set(found) == {Status.PASSED}
  ]
  assert not harmless


def test_most_mistakes_fail(verdicts):
  found = collections.Counter(s for each in verdicts.values() for s in each)
  assert found.total() >= 3 * len(mistakes.RULES)
  assert found[Status.PASSED] <= 0.1 * found.total(), found
  # Each kind of verdict that a text can come to by one change.
  assert {
    Status.WRONG_ANSWER,
    Status.COMPILE_ERROR,
    Status.RUNTIME_ERROR,
  } <= set(found)
  assert found[Status.WRONG_ANSWER] > found.total() / 2
  assert not found[Status.INFRASTRUCTURE_ERROR]
