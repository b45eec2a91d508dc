"""Composed problems: names, soundness, canonical solutions, mistakes."""

import collections

import numpy as np
import pytest

from kernels_eval import correctness, mutations, problems
from kernels_eval.problems import composer
from kernels_eval.schema import Status


def some_names(count, seed=5):
  rng = np.random.default_rng(seed)
  names = {}
  while len(names) < count:
    name = composer.sample(rng, int(rng.integers(1, 6)), 0.4)
    if composer.is_sound(name):
      names[name] = None
  return list(names)


@pytest.mark.parametrize("name", some_names(25))
def test_canonical_solutions_pass(check, name):
  evaluation = check(name, problems.get(name).canonical)
  assert evaluation.passed, (evaluation.message, evaluation.case)


@pytest.mark.parametrize("operator", composer.OPERATORS)
def test_every_operator_alone(check, operator):
  name = f"chain-{operator}"
  assert check(name, problems.get(name).canonical).passed


@pytest.mark.parametrize("reduction", composer.REDUCTIONS)
def test_every_reduction(check, reduction):
  name = f"chain-square-sub_y-{reduction}"
  assert check(name, problems.get(name).canonical).passed


@pytest.mark.parametrize("name", some_names(40, seed=8))
def test_useless_outputs_fail_somewhere(name):
  problem = problems.get(name)
  survivors = collections.Counter()
  for case in problem.cases:
    arrays = problem.make_inputs(case, 0)
    exact = problem.expected(case, arrays)["out"]
    single = problem.expected(case, arrays, np.float32)["out"]
    baselines = {
      "zeros": np.zeros_like(exact),
      "ones": np.ones_like(exact),
      "mean": np.full_like(exact, exact.mean()),
    }
    baselines |= {
      f"copy of {key}": value
      for key, value in arrays.items()
      if value.shape == exact.shape
    }
    for label, got in baselines.items():
      mismatch = correctness.compare(
        "out", got.astype(np.float32), exact, single, "float32"
      )
      survivors[label] += mismatch is None
  for label, passed in survivors.items():
    assert passed < len(problem.cases), f"{label} passes {name}"


@pytest.mark.parametrize(
  "name",
  [
    "chain-add_1-sub_1",
    "chain-double-half",
    "chain-neg-neg",
    "chain-square-neg-relu",
    # float32 ends at 2^128.
    "chain-" + "-".join(["square"] * 6),
    "chain-" + "-".join(["square"] * 6) + "-root-root",
    "chain-" + "-".join(["square"] * 5) + "-mul_y-square-sum",
  ],
)
def test_compositions_that_teach_nothing_are_not_sound(name):
  assert not composer.is_sound(name)


@pytest.mark.parametrize(
  "name,words",
  [
    ("chain-relv", "`relv` is no operator"),
    ("chain-sum", "0 operators"),
    ("chain-" + "-".join(["abs"] * 9), "9 operators"),
    ("chain-sum-relu", "`sum` is no operator"),
    ("chain-", "is no operator"),
  ],
)
def test_bad_names_say_what_is_allowed(name, words):
  with pytest.raises(problems.UnknownProblem) as error:
    problems.get(name)
  assert words in str(error.value)


def test_names_are_canonical():
  for name in some_names(50):
    operators, reduction = composer.split_name(name)
    assert composer.join_name(operators, reduction) == name


# ------------------------------------------------------------------ mistakes


def test_mistakes_are_found_out(check):
  """Most mutations are wrong, in every way that a kernel can be wrong."""
  rng = np.random.default_rng(0)
  seen, harmless = collections.Counter(), 0
  names = some_names(60, seed=2)
  for name in names:
    rule, text = mutations.mutate(problems.get(name).canonical, rng)
    evaluation = check(name, text)
    assert evaluation.counts, (name, rule, evaluation.message)
    seen[evaluation.status] += 1
    harmless += evaluation.passed
  assert harmless < len(names) / 3
  assert set(seen) >= {
    Status.WRONG_ANSWER,
    Status.COMPILE_ERROR,
    Status.RUNTIME_ERROR,
  }


@pytest.mark.parametrize(
  "rule,name,status",
  [
    ("no_bounds_check", "chain-relu", Status.RUNTIME_ERROR),
    ("no_barrier", "chain-square-sum", Status.RUNTIME_ERROR),
    ("small_shared", "chain-square-sum", Status.RUNTIME_ERROR),
    ("not_written", "chain-relu", Status.WRONG_ANSWER),
    ("max_to_min", "chain-relu", Status.WRONG_ANSWER),
    ("no_semicolon", "chain-relu", Status.COMPILE_ERROR),
    ("undeclared", "chain-relu", Status.COMPILE_ERROR),
    ("only_first_row", "chain-square-sum", Status.RUNTIME_ERROR),
  ],
)
def test_what_a_mistake_leads_to(check, rule, name, status):
  source = problems.get(name).canonical
  places = [(r, m) for r, m in mutations.applicable(source) if r.name == rule]
  assert places
  for r, match in places:
    text = (
      source[: match.start()]
      + match.expand(r.replacement)
      + source[match.end() :]
    )
    assert check(name, text).status == status


def test_every_rule_applies_somewhere():
  texts = [problems.get(n).canonical for n in some_names(200, seed=3)]
  applied = {r.name for t in texts for r, _ in mutations.applicable(t)}
  assert applied == {r.name for r in mutations.RULES}


def test_a_text_without_a_place_for_a_mistake():
  assert mutations.mutate("nothing", np.random.default_rng(0)) is None


def test_a_reference_that_overflows_float32_is_no_reference(check):
  """Beside an infinite float32 result any finite answer would be right."""
  name = "chain-" + "-".join(["square"] * 6)
  answer = check(
    name, "__global__ void k(const float* x, float* out, int n) {}"
  )
  assert answer.status == Status.INFRASTRUCTURE_ERROR
  assert "not finite" in answer.message
