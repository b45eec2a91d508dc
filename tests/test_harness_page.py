"""docs/harness.md: commands and examples run, grammar and numbers are the
code's."""

import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from kernels_eval import __main__ as cli
from kernels_eval import (
  correctness,
  expressions,
  launch_plan,
  problems,
  report,
)
from kernels_eval.cpu import host, limits, protocol
from kernels_eval.problems import spec
from kernels_eval.schema import ERROR_EDGES, Evaluation, Status
from kernels_eval.settings import Settings
from tests.kernels_eval import test_problems

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "harness.md").read_text()


def _blocks(language):
  return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


def _table(heading):
  """Cells of the first table behind a heading."""
  text = PAGE[PAGE.index(f"\n{heading}\n") :]
  rows = re.search(r"(?:^\|.*\n)+", text, re.M)[0].splitlines()[2:]
  return [[cell.strip() for cell in r.strip("|").split(" | ")] for r in rows]


# ---- links and commands

LINKS = re.findall(r"\]\(((?!https?:|#)[^)#]+)", PAGE)
ANCHORS = re.findall(r"\]\(#([^)]+)\)", PAGE)
COMMANDS = [
  line for block in _blocks("bash") for line in block.splitlines() if line
]


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_links_exist(link):
  assert (ROOT / "docs" / link).exists()


@pytest.mark.parametrize("anchor", ANCHORS)
def test_sections_exist(anchor):
  names = re.findall(r"^#+ (.*)$", PAGE, re.M)
  assert anchor in [n.lower().replace(" ", "-") for n in names]


@pytest.mark.parametrize("path", re.findall(r"`(kernels_eval/[\w/.]+)`", PAGE))
def test_files_exist(path):
  made_there = "squared_distance" in path
  assert (ROOT / path).exists() != made_there


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command, tmp_path):
  command = command.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
  command = re.sub(r"--count=\d+", "--count=20", command)
  command = re.sub(r"--out=", f"--out={tmp_path}/", command)
  corpus = tmp_path / "corpus"  # the whole of it has a test of its own
  corpus.mkdir()
  for name in ("zeros.cu", "fork.cu", "writes_far_away.cu"):
    shutil.copy(ROOT / "tests" / "adversarial" / name, corpus)
  command = re.sub(r" audit$", f" audit --corpus={corpus}", command)
  done = subprocess.run(
    ["bash", "-c", command],
    cwd=ROOT,
    capture_output=True,
    text=True,
    timeout=120,
    env={**os.environ, "XDG_CACHE_HOME": _own_cache(tmp_path)},
  )
  assert done.returncode == 0, done.stdout + done.stderr
  assert done.stdout


def _own_cache(tmp_path):
  """A cache folder with the native parts of the user's, and no verdicts."""
  folder = tmp_path / "cache" / "kernels_eval"
  folder.mkdir(parents=True)
  base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  for parts in (pathlib.Path(base) / "kernels_eval").glob("cpu-*"):
    (folder / parts.name).symlink_to(parts)
  return str(folder.parent)


def test_every_command_is_on_the_page():
  commands = re.findall(r"^python -m kernels_eval (\w+)", cli.__doc__, re.M)
  for command in commands:
    assert f"python -m kernels_eval {command}" in PAGE


@pytest.mark.parametrize(
  "text",
  [b for b in _blocks("python") if "Pool(" in b],
  ids=["pool", "store"],
)
def test_python_examples_run(text, tmp_path):
  done = subprocess.run(
    [sys.executable, "-c", text],
    cwd=ROOT,
    capture_output=True,
    text=True,
    timeout=60,
    env={**os.environ, "XDG_CACHE_HOME": _own_cache(tmp_path)},
  )
  assert done.returncode == 0, done.stderr
  assert ("passed" in done.stdout) or ("1 judged anew" in done.stdout)


# ---- kernels


@pytest.fixture
def added(monkeypatch, tmp_path):
  """The worked example, as the page says to add it."""
  (text,) = [b for b in _blocks("python") if "PROBLEM = " in b]
  names = {}
  exec(text, names)
  problem = names["PROBLEM"]
  (kernel,) = [b for b in _blocks("cuda") if f"problem: {problem.name}" in b]
  assert f"`kernels_eval/problems/cuda/{problem.name}.cu`" in PAGE
  (tmp_path / f"{problem.name}.cu").write_text(kernel)
  monkeypatch.setattr(spec, "_CANONICAL", tmp_path)
  monkeypatch.setitem(problems.FAMILIES, problem.name, problem)
  return problem


@pytest.mark.parametrize("text", _blocks("cuda"))
def test_kernels_get_what_the_page_says(text, check, added):
  problem = re.match(r"// problem: (\w+)\n", text)[1]
  expected = re.search(r"^// expect: (\w+)$", text, re.M)
  status = Status(expected[1]) if expected else Status.PASSED
  answer = check(problem, text)
  assert answer.status == status, answer
  if status == Status.LAUNCH_ERROR:
    (shown,) = _blocks("report")
    assert shown.strip() in report.render(answer, text, colour=False)


@pytest.mark.parametrize("text", _blocks("numba"))
def test_numba_kernels_get_what_the_page_says(text, check):
  problem = re.match(r"# problem: (\w+)\n", text)[1]
  answer = check(problem, text)
  assert answer.passed, answer


def test_the_added_problem_is_a_problem(added, check):
  assert check(added.name, added.canonical).passed
  (output,) = added.outputs
  for number in (0.0, 1.0):
    test_problems.test_one_number_fails(added, output, number)
  test_problems.test_the_mean_of_all_cases_fails(added, output)
  test_problems.test_the_mean_of_each_case_fails(added, output)
  test_problems.test_a_copy_of_an_input_fails(added, output)
  test_problems.test_an_unwritten_output_fails(added, output)
  test_problems.test_rounding_to_half_fails(added, output)
  test_problems.test_every_input_matters(added)
  test_problems.test_references_are_finite_for_any_seed(added)
  test_problems.test_statement_names_every_parameter(added)
  test_problems.test_default_launch_is_within_the_limits(added)


# ---- the grammar

ROWS = problems.get("softmax")
COMMENTS = [x for b in _blocks("comments") for x in b.splitlines()]
PLANS = [line for block in _blocks("plan") for line in block.splitlines()]
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


RULES = _read_rules(_blocks("ebnf")[0])
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


@pytest.mark.parametrize(("line", "words"), _table("## Launch plan"))
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


# ---- tables and numbers


def test_the_statuses_are_the_codes():
  assert {row[0].strip("`") for row in _table("## Statuses")} == {
    s.value for s in Status
  }


def test_the_tolerances_are_the_codes():
  assert _table("## Correctness") == [
    [name, f"{t.relative:g}", f"{t.scaled:g}", f"{t.rms:g}"]
    for name, t in correctness.TOLERANCES.items()
  ]


def test_the_limits_are_the_codes():
  settings = Settings()
  text = " ".join(PAGE.split())
  for words in (
    f"{settings.compile_cpu_s:g} s of processor time and "
    f"{settings.compile_wall_s:g} s of the clock, "
    f"{settings.compile_memory_bytes // 2**30} GiB, one process, "
    f"{settings.compile_file_bytes // 2**20} MiB of files, "
    f"{host.MAX_LOG_BYTES // 2**10} KiB of log",
    f"for a run: {settings.run_cpu_s:g} s and {settings.run_wall_s:g} s, "
    f"{settings.access_limit // 10**6} million accesses, no files, "
    f"{settings.max_buffer_bytes // 2**20} MiB of buffers and "
    f"{settings.max_scratch_bytes // 2**20} MiB of scratch over all cases",
    f"{limits.MAX_THREADS} threads a block, "
    f"{limits.STATIC_SHARED_BYTES // 1024} KiB static and "
    f"{limits.SHARED_BYTES // 1024} KiB dynamic",
    f"At most {launch_plan.MAX_LAUNCHES} launches, "
    f"{launch_plan.MAX_SCRATCH} scratch buffers, "
    f"{launch_plan.MAX_ARGUMENTS} arguments, "
    f"{launch_plan.MAX_LINE_CHARS} characters a line",
    f"cut at {protocol._PRINTF_BYTES // 1024} KiB",
    "in bins that end at "
    + ", ".join(f"{e:g}" for e in ERROR_EDGES[:-1]).replace("1e-06", "1e-6")
    .replace("1e-05", "1e-5").replace("0.0001", "1e-4")
    + f" and {ERROR_EDGES[-1]:g}",
  ):  # fmt: skip
    assert words in text, words


def test_the_fields_of_the_record_are_the_codes():
  section = PAGE[PAGE.index("## The record") : PAGE.index("## Correctness")]
  named = set(re.findall(r"^- `(\w+)`", section, re.M))
  assert named <= set(Evaluation.__struct_fields__)
  assert {"launch_limit", "mismatch", "finding", "diagnostics"} <= named
