"""docs/harness.md: commands and examples run, tables and numbers are the
code's."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from kernels_eval import __main__ as cli
from kernels_eval import (
  correctness,
  launch_plan,
  problems,
  report,
)
from kernels_eval.cpu import host, limits, protocol
from kernels_eval.problems import spec
from kernels_eval.schema import ERROR_EDGES, Evaluation, Status
from kernels_eval.settings import Settings
from tests.harness_page import PAGE, ROOT, blocks, table
from tests.kernels_eval import test_problems

# ---- links and commands

LINKS = re.findall(r"\]\(((?!https?:|#)[^)#]+)", PAGE)
ANCHORS = re.findall(r"\]\(#([^)]+)\)", PAGE)
COMMANDS = [
  line for block in blocks("bash") for line in block.splitlines() if line
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
  [b for b in blocks("python") if "Pool(" in b],
  ids=["pool", "inbox", "store"],
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
  (text,) = [b for b in blocks("python") if "PROBLEM = " in b]
  names = {}
  exec(text, names)
  problem = names["PROBLEM"]
  (kernel,) = [b for b in blocks("cuda") if f"problem: {problem.name}" in b]
  assert f"`kernels_eval/problems/cuda/{problem.name}.cu`" in PAGE
  (tmp_path / f"{problem.name}.cu").write_text(kernel)
  monkeypatch.setattr(spec, "_CANONICAL", tmp_path)
  monkeypatch.setitem(problems.FAMILIES, problem.name, problem)
  return problem


@pytest.mark.parametrize("text", blocks("cuda"))
def test_kernels_get_what_the_page_says(text, check, added):
  problem = re.match(r"// problem: (\w+)\n", text)[1]
  expected = re.search(r"^// expect: (\w+)$", text, re.M)
  status = Status(expected[1]) if expected else Status.PASSED
  answer = check(problem, text)
  assert answer.status == status, answer
  if status == Status.LAUNCH_ERROR:
    (shown,) = blocks("report")
    assert shown.strip() in report.render(answer, text, colour=False)


@pytest.mark.parametrize("text", blocks("numba"))
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


# ---- tables and numbers


def test_the_statuses_are_the_codes():
  assert {row[0].strip("`") for row in table("## Statuses")} == {
    s.value for s in Status
  }


def test_the_tolerances_are_the_codes():
  assert table("## Correctness") == [
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
