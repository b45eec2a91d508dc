"""The grammar of plans in docs/harness.md is what the code reads."""

import random
import re

import pytest

from kernels_eval import expressions, launch_plan, problems
from tests.harness_page import blocks, table

ROWS = problems.get("softmax")
COMMENTS = [x for b in blocks("comments") for x in b.splitlines()]
PLANS = [line for block in blocks("plan") for line in block.splitlines()]
_TOKEN = re.compile(r'\s*(?:"([^"]*)"|(\w+)|([][{}()|;=,]))')


def _read_rules(text):
  """EBNF -> {name: node}; a node is ("any" | "all", nodes), ("many", node),
  ("maybe", node), ("rule", name) or ("word", text)."""
  tokens = []
  for quoted, name, mark in _TOKEN.findall(text):
    tokens.append(("word", quoted) if quoted else ("rule", name or mark))

  def alternatives(i):
    parts, i = [], i - 1
    while True:
      part, i = sequence(i + 1)
      parts.append(part)
      if tokens[i] != ("rule", "|"):
        return (parts[0] if len(parts) == 1 else ("any", parts)), i

  def sequence(i):
    parts = []
    while tokens[i] not in [("rule", m) for m in "|;)]}"]:
      opening = tokens[i][1] if tokens[i][0] == "rule" else ""
      if opening in ("(", "[", "{"):
        inner, i = alternatives(i + 1)
        kind = {"(": None, "[": "maybe", "{": "many"}[opening]
        parts.append((kind, inner) if kind else inner)
      else:
        parts.append(tokens[i])
      i += 1
    return ("all", parts), i

  rules, i = {}, 0
  while i < len(tokens):
    name = tokens[i][1]
    assert tokens[i + 1] == ("rule", "=")
    rules[name], i = alternatives(i + 2)
    i += 1  # the semicolon
  return rules


RULES = _read_rules(blocks("ebnf")[0])
_NAMES = {  # what the names of one problem may be
  "kernel": ("k", "softmax", "_k2", "a::b"),
  "argument": ("x", "out", "rows", "cols"),
  "buffer": ("tmp", "sums_2"),
  "dimension": ("rows", "cols"),
  "number": ("0", "1", "32", "1024"),
  "name": ("k", "softmax", "_k2"),
}
_PATTERNS = {
  "number": r"\d+",
  "kernel": r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*",
}


def _sentence(rng, node, depth=0):
  """A random sentence, as words."""
  kind, inner = node
  if kind == "word":
    return [inner]
  if kind == "rule":
    if inner in _NAMES:
      return [rng.choice(_NAMES[inner])]
    return _sentence(rng, RULES[inner], depth + (inner == "factor"))
  if kind == "all":
    return [w for part in inner for w in _sentence(rng, part, depth)]
  if kind == "any":
    # Deep down only what does not go deeper: numbers and dimensions.
    choices = inner[:2] if depth > 3 and len(inner) > 3 else inner
    return _sentence(rng, rng.choice(choices), depth)
  if rng.random() < (0.5 if depth < 3 else 0.9):
    return []
  return _sentence(rng, inner, depth)


def _matches(words, node, i):
  """Every place where a match that begins at `i` may end."""
  kind, inner = node
  if kind == "word":
    return {i + 1} if i < len(words) and words[i] == inner else set()
  if kind == "rule" and inner in _NAMES:
    wanted = _PATTERNS.get(inner, r"[A-Za-z_]\w*")
    fits = i < len(words) and re.fullmatch(wanted, words[i])
    return {i + 1} if fits else set()
  if kind == "rule":
    return _matches(words, RULES[inner], i)
  if kind == "all":
    ends = {i}
    for part in inner:
      ends = {e for start in ends for e in _matches(words, part, start)}
    return ends
  if kind == "any":
    return {e for part in inner for e in _matches(words, part, i)}
  ends = new = {i}
  while new:
    new = {e for start in new for e in _matches(words, inner, start)} - ends
    ends = ends | new
    if kind == "maybe":
      break
  return ends


def _words(line):
  return re.findall(r"//|\w+(?:::\w+)*|[^\s\w]", line)


def _is_sentence(line):
  words = _words(line)
  return len(words) in _matches(words, ("rule", "line"), 0)


def _read(line, problem=ROWS):
  """Number of launches and scratch buffers in one comment."""
  kernels = ("k", "softmax", "nothing", "_k2", "a::b")
  launches, scratch = launch_plan.read([(line, 1)], problem, kernels)
  return len(launches) + len(scratch)


def _accepts(line, problem=ROWS):
  """Whether the line is a plan, and not an error or a comment."""
  try:
    return _read(line, problem) == 1
  except launch_plan.CandidateError:
    return False


@pytest.mark.parametrize("line", PLANS)
def test_plans_of_the_page_are_read(line):
  assert _read(line) == 1


@pytest.mark.parametrize("line", COMMENTS)
def test_comments_that_are_no_plans(line):
  assert _read(line) == 0


@pytest.mark.parametrize(("line", "words"), table("## Launch plan"))
def test_plans_that_are_refused(line, words):
  with pytest.raises(launch_plan.CandidateError) as caught:
    _read(line.strip("`"))
  assert words in str(caught.value)


@pytest.mark.parametrize("seed", range(4))
def test_every_sentence_of_the_grammar_is_read(seed):
  rng, count = random.Random(seed), 0
  while count < 200:
    line = " ".join(_sentence(rng, ("rule", "line")))
    if len(line) <= expressions.MAX_CHARS:  # then each expression is as well
      assert _accepts(line), line
      assert _is_sentence(line), line
      count += 1


def test_every_plan_of_the_problems_is_a_sentence():
  count = 0
  for problem in problems.FAMILIES.values():
    default = f"// launch: k {problem.launch}"
    assert _is_sentence(default) and _accepts(default, problem)
    for line in problem.canonical.splitlines():
      if re.match(r"// (launch|scratch):", line):
        assert _is_sentence(line), line
        count += 1
  assert count > 10


@pytest.mark.parametrize("seed", range(4))
def test_what_is_no_sentence_is_not_read(seed):
  """Sentences with a word lost, doubled or exchanged."""
  rng = random.Random(seed)
  num_refused = 0
  for _ in range(400):
    words = _sentence(rng, ("rule", "line"))
    i = rng.randrange(3, len(words))
    change = rng.choice(["lose", "double", "exchange"])
    if change == "lose":
      del words[i]
    elif change == "double":
      words.insert(i, words[i])
    else:
      words[i] = rng.choice(["+", ")", "(", ",", "32", "rows", "/", "="])
    line = " ".join(words)
    if not _is_sentence(line):
      num_refused += 1
      assert not _accepts(line), line
  assert num_refused > 100
