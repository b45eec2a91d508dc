"""The command line: what it prints where, and its exit status."""

import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import msgspec
import pytest

from kernels_eval import __main__ as cli
from kernels_eval import problems, report
from kernels_eval.schema import Diagnostic, Evaluation, Finding, Phase, Status

GOOD = problems.get("vector_add").canonical
_ROOT = pathlib.Path(__file__).parents[2]


def _run(*arguments, stdin=None, **environment):
  """A process of its own: standard output is no terminal."""
  return subprocess.run(
    [sys.executable, "-m", "kernels_eval", *arguments],
    input=stdin,
    capture_output=True,
    text=True,
    timeout=60,
    cwd=_ROOT,
    env={**os.environ, **environment},
  )


@pytest.fixture
def file(tmp_path):
  path = tmp_path / "kernel.cu"
  path.write_text(GOOD)
  return path


def test_list_names_every_problem(capsys):
  assert cli.main(["list"]) == 0
  assert capsys.readouterr().out.split() == sorted(problems.FAMILIES)


def test_show(capsys):
  assert cli.main(["show", "vector_add"]) == 0
  shown = capsys.readouterr().out
  problem = problems.get("vector_add")
  for part in (problem.statement, problem.signature, problem.launch):
    assert part in shown
  assert "{" not in shown
  assert cli.main(["show", "vector_add", "--solution"]) == 0
  assert GOOD.strip() in capsys.readouterr().out


def test_check_of_a_good_kernel(file):
  done = _run("check", str(file), "--problem", "vector_add")
  assert done.returncode == 0
  assert done.stdout.startswith("vector_add  passed  right on all")
  assert "timing unavailable" in done.stdout
  assert "\033" not in done.stdout + done.stderr
  assert "sandbox:" in done.stderr


def test_check_with_json_prints_one_line(file):
  file.write_text(GOOD.replace("i < n", "i <= n"))
  done = _run("check", str(file), "--problem", "vector_add", "--json")
  assert done.returncode == 1
  assert done.stdout.count("\n") == 1
  record = json.loads(done.stdout)
  assert record["status"] == "runtime_error"
  assert record["finding"]["line"] == 3
  assert record["candidate_ms"] is None
  assert done.stderr == ""


def test_check_from_standard_input():
  text = f"Here it is.\n```cuda\n{GOOD.replace('+ y', '- y')}```\n"
  done = _run("check", "-", "--problem", "vector_add", stdin=text)
  assert done.returncode == 1
  assert "wrong_answer" in done.stdout
  assert "largest error" in done.stdout


def test_the_report_shows_the_offending_line(file):
  file.write_text(GOOD.replace("x[i] + y[i]", "x[i] + z[i]"))
  done = _run("check", str(file), "--problem", "vector_add")
  assert done.returncode == 1
  assert "compile_error" in done.stdout
  marked = [x for x in done.stdout.splitlines() if x.startswith("  >")]
  assert len(marked) == 1
  assert marked[0].endswith("if (i < n) out[i] = x[i] + z[i];")
  assert "3 |" in marked[0]


@pytest.mark.parametrize(
  ("arguments", "words"),
  [
    (["check", "/nowhere/k.cu", "--problem", "vector_add"],
     "cannot read /nowhere/k.cu: No such file"),
    (["check", "/", "--problem", "vector_add"],
     "cannot read /: Is a directory"),
    (["check", sys.executable, "--problem", "vector_add"],
     "is not a text file"),
    (["check", __file__, "--problem", "vector_ad"], "vector_add"),
    (["check", __file__], "--problem"),
    (["show", "sofmax"], "softmax"),
    (["chek", "x"], "did you mean `check`?"),
    (["bench", "--count", "0"], "--count"),
    (["bench", "--workers", "0"], "--workers=0; at least 1"),
    (["bench", "--workers", "-2"], "--workers=-2; at least 1"),
    ([], "command"),
  ],
)  # fmt: skip
def test_bad_requests(arguments, words):
  done = _run(*arguments)
  assert done.returncode == 2
  assert words in done.stderr
  assert done.stderr.count("\n") == 1
  assert "Traceback" not in done.stderr
  assert done.stdout == ""


def test_bench_reports_a_rate():
  done = _run("bench", "--count", "4", "--workers", "1", "--json")
  assert done.returncode == 0, done.stderr
  record = json.loads(done.stdout)
  assert record["num_passed"] == 4
  assert record["kernels_per_second"] > 1


_FAILED = Evaluation(
  id="",
  problem="p",
  status=Status.RUNTIME_ERROR,
  phase=Phase.RUN,
  message="line 2: bad",
  executor="cpu-fiber",
  finding=Finding("out_of_bounds", "bad", 2, (1, 0, 0), (0, 0, 0)),
  case="n=1",
  num_cases=3,
  log="printed\n",
)


def test_colours_only_where_they_are_wanted(monkeypatch, file):
  text = "__global__ void k()\nbad line\n"
  assert "\033" not in report.render(_FAILED, text, colour=False)
  assert "\033[31m" in report.render(_FAILED, text, colour=True)

  class Terminal(io.StringIO):
    def isatty(self):
      return True

  for no_colour, expected in (("", True), ("1", False)):
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_colour:
      monkeypatch.setenv("NO_COLOR", no_colour)
    assert cli.main(["check", str(file), "--problem", "vector_add"]) == 0
    assert ("\033" in out.getvalue()) == expected


def test_report_of_a_finding():
  text = "__global__ void k()\n\tbad\x1b[2J line\u2028still it\n}\n"
  shown = report.render(_FAILED, text, colour=False)
  assert "  >    2 |   bad\N{REPLACEMENT CHARACTER}[2J line" in shown
  assert "still it" in shown and "    3 | }" in shown
  assert "thread (1, 0, 0), block (0, 0, 0)" in shown
  assert "case 1 of 3: n=1" in shown
  assert "printed" in shown


def test_report_of_a_line_that_does_not_exist():
  evaluation = msgspec.structs.replace(
    _FAILED,
    finding=Finding("trap", "bad", 99999, None, None),
    diagnostics=(Diagnostic("error", "odd", 77777, 1),),
  )
  shown = report.render(evaluation, "__global__ void k()", colour=False)
  assert "line 77777: odd" in shown


def test_a_mistyped_command_is_looked_for_in_the_arguments_given(capsys):
  assert cli.main(["benhc", "--count=1"]) == 2
  assert "no command `benhc` (did you mean `bench`?)" in capsys.readouterr().err


@pytest.mark.parametrize("blocks", [1, 20])
def test_a_limit_on_file_size_is_said_in_one_line(file, tmp_path, blocks):
  """The parts cannot be built; in Python or in g++."""
  done = subprocess.run(
    ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh"]
    + [sys.executable, "-m", "kernels_eval", "check", str(file)]
    + ["--problem", "vector_add", "--no-cache"],
    capture_output=True,
    text=True,
    timeout=60,
    cwd=_ROOT,
    env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "empty")},
  )
  assert done.returncode == 2
  assert done.stdout == ""
  assert done.stderr.count("\n") == 1, done.stderr
  assert "infrastructure_error: " in done.stderr


@pytest.mark.parametrize(
  ("number", "status", "lines"),
  [(signal.SIGINT, 130, 1), (signal.SIGTERM, 143, 0)],
)
def test_a_signal_ends_it_and_leaves_nothing(
  file, tmp_path, number, status, lines
):
  file.write_text(
    "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
    "  while (true) {}\n}\n"
  )
  with subprocess.Popen(
    [sys.executable, "-m", "kernels_eval", "check", str(file)]
    + ["--problem", "vector_add"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    cwd=_ROOT,
    env={**os.environ, "TMPDIR": str(tmp_path)},
  ) as process:
    assert "sandbox:" in process.stderr.readline()
    time.sleep(0.5)  # within the five seconds that the kernel has
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
  assert process.returncode == status, err
  assert out == ""
  assert err.count("\n") == lines, err
  assert not list(tmp_path.glob("kernels_eval-*"))


def test_check_removes_what_killed_ones_have_left(file, tmp_path):
  done = subprocess.run(
    [sys.executable, "-c", "import os; print(os.getpid())"],
    capture_output=True, text=True, check=True,
  )  # fmt: skip
  stale = tmp_path / f"kernels_eval-{done.stdout.strip()}-x"
  stale.mkdir()
  _run("check", str(file), "--problem", "vector_add", TMPDIR=str(tmp_path))
  assert list(tmp_path.glob("kernels_eval-*")) == []


def test_a_failure_at_the_timed_size_is_of_no_case():
  failed = msgspec.structs.replace(
    _FAILED, case="n=16777216", num_cases_passed=7, num_cases=7
  )
  shown = report.render(failed, "", colour=False)
  assert "timed case: n=16777216" in shown and "of 7" not in shown
