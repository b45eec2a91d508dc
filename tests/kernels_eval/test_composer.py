"""Composed problems: names, soundness, canonical solutions, mistakes."""

import collections

import hypothesis
import hypothesis.strategies as st
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


@pytest.mark.parametrize(
  "names",
  [
    ("relu", "relu-relu", "double-relu-half", "add_y-sub_y-relu"),
    ("square", "square-abs-abs", "neg-square"),
    ("sigmoid", "sigmoid-leaky", "sigmoid-relu", "sigmoid-abs-clip"),
    ("abs", "square-root", "neg-abs"),
    ("relu-max", "leaky-relu-max"),
    ("square-sum", "abs-square-sum"),
  ],
)
def test_names_of_one_function_have_one_key(names):
  keys = {composer.function_key(composer.PREFIX + n) for n in names}
  assert len(keys) == 1


def test_functions_that_differ_have_keys_of_their_own():
  names = [
    *("relu", "leaky", "clip", "tanh", "softsign", "half", "double", "log"),
    *("relu-sum", "relu-mean", "relu-max", "add_1-relu", "relu-add_1"),
    *("max_y", "min_y", "add_y", "mul_y", "max_y-relu", "relu-max_y-sum"),
    *("relu-square-root", "square-sum", "square-half-sum", "square-mean"),
  ]
  keys = {composer.function_key(composer.PREFIX + n) for n in names}
  # `relu-square-root` is `relu`.
  assert len(keys) == len(names) - 1


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=60, deadline=None)
def test_an_identity_anywhere_changes_no_key(data):
  names = list(composer.OPERATORS)
  operators = data.draw(
    st.lists(st.sampled_from(names), min_size=1, max_size=4)
  )
  place = data.draw(st.integers(0, len(operators)))
  identity = data.draw(
    st.sampled_from([["neg", "neg"], ["double", "half"], ["half", "double"]])
  )
  reduction = data.draw(st.sampled_from([None, *composer.REDUCTIONS]))
  longer = [*operators[:place], *identity, *operators[place:]]
  assert composer.function_key(
    composer.join_name(operators, reduction)
  ) == composer.function_key(composer.join_name(longer, reduction))


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
