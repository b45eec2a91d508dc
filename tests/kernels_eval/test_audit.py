"""The corpus' headers, the audit's verdicts, and its command."""

import json
import os
import pathlib
import subprocess
import sys

import msgspec
import pytest

from kernels_eval import audit, catalogue, corpus, problems
from kernels_eval.schema import Evaluation, Phase, Status

GOOD = problems.get("vector_add").canonical
_ROOT = pathlib.Path(__file__).parents[2]
_HEADER = """// row: 15
// problem: vector_add
// on: both
// expect: wrong_answer
// why: Does nothing.
"""
IDLE = "__global__ void k(const float* x, const float* y, float* o, int n) {}\n"


# ---- headers


def test_a_header_with_everything():
  text = (
    "// row: 6 36\n// problem: softmax\n// on: cpu; a name of g++\n"
    "// machine: x86_64\n// expect: timeout compile_error\n// why: A bomb.\n"
    "// launch: k grid=(1) block=(1)\n"
  )
  specimen = corpus.parse("a/b.cu", text)
  assert specimen.rows == (6, 36)
  assert specimen.problem == "softmax"
  assert specimen.allowed == {"cpu": (Status.TIMEOUT, Status.COMPILE_ERROR)}
  assert (specimen.reason, specimen.machine) == ("a name of g++", "x86_64")
  assert specimen.why == "A bomb."
  assert specimen.text == text
  assert not specimen.is_honest


def test_executors_may_differ():
  text = _HEADER.replace(
    "// expect: wrong_answer",
    "// expect cpu: runtime_error\n// expect cuda: wrong_answer",
  )
  assert corpus.parse("a.cu", text).allowed == {
    "cpu": (Status.RUNTIME_ERROR,),
    "cuda": (Status.WRONG_ANSWER,),
  }


def test_what_shows_in_timed_calls_alone_may_pass_without():
  why = "// why: Does nothing."
  text = _HEADER.replace(why, f"// untimed: passed\n{why}")
  specimen = corpus.parse("a.cu", text)
  assert specimen.allowed["cuda"] == (Status.WRONG_ANSWER,)
  assert specimen.allowed_untimed == {
    "cpu": (Status.WRONG_ANSWER,),
    "cuda": (Status.WRONG_ANSWER, Status.PASSED),
  }
  with pytest.raises(corpus.CorpusError, match="this file is not"):
    corpus.parse("a.cu", text.replace("on: both", "on: cpu; why"))


@pytest.mark.parametrize(
  ("old", "new", "words"),
  [
    ("// row: 15", "// row: 38", "rows of the catalogue, 1 to 37"),
    ("// row: 15", "// row: 0", "got `row: 0`"),
    ("// row: 15", "// row: 16 15", "in order"),
    ("// row: 15", "// row: x", "got `row: x`"),
    ("// row: 15", "// rows: 15", "a.cu:1: got `// rows: 15`"),
    ("// row: 15\n", "", "no `// row:` line"),
    ("// row: 15\n", "// row: 15\n// row: 15\n", "a.cu:2: `row` twice"),
    ("// row: 15", "// row cpu: 15", "only `expect` has an executor"),
    ("vector_add", "vector_ad", "nearest: vector_add"),
    ("// on: both", "// on: gpu", "expected `both`, `cpu; REASON`"),
    ("// on: both", "// on: cuda", "got `on: cuda`"),
    ("// on: both", "// on: both; why not", "got `on: both; why not`"),
    ("wrong_answer", "wrong", "expected some of compile_error"),
    ("wrong_answer", "infrastructure_error", "got `expect: infra"),
    ("wrong_answer", "timeout timeout", "got `expect: timeout timeout`"),
    ("// why: D", "// untimed: w\n// why: D", "got `untimed: w`"),
    ("// why: D", "// untimed cpu: passed\n// why: D", "only `expect`"),
    ("// expect: wrong", "// expect hip: wrong", "cpu or cuda"),
    ("// expect: wrong", "// expect cpu: wrong", "one for each of cpu, cuda"),
    ("// why: Does nothing.\n", "", "the last one `// why:`"),
    ("Does nothing.", "x" * 81, "81 characters; at most 80"),
  ],
)
def test_headers_that_are_refused(old, new, words):
  assert old in _HEADER
  with pytest.raises(corpus.CorpusError) as caught:
    corpus.parse("a.cu", _HEADER.replace(old, new, 1))
  assert words in str(caught.value)
  assert str(caught.value).startswith("a.cu")


def test_honest_kernels_expect_nothing_but_a_pass():
  with pytest.raises(corpus.CorpusError, match="only expect `passed`"):
    corpus.parse("honest/a.cu", _HEADER)
  text = _HEADER.replace("wrong_answer", "passed")
  assert corpus.parse("honest/a.cu", text).is_honest


def test_every_row_of_the_catalogue_has_a_candidate():
  assert [row.number for row in catalogue.ROWS] == list(range(1, 38))
  specimens = corpus.load(corpus.default_folder())
  missing = {row.number for row in catalogue.ROWS} - {
    row for s in specimens for row in s.rows
  }
  assert missing == set()
  # Row 37 is about honest kernels.
  assert all(37 in s.rows for s in specimens if s.is_honest)


# ---- verdicts


def _evaluation(status, message=""):
  return Evaluation("a.cu", "vector_add", status, Phase.JUDGE, message, "x")


_HONEST = corpus.parse("honest/a.cu", _HEADER.replace("wrong_answer", "passed"))
_HOSTILE = corpus.parse("a.cu", _HEADER)
_EITHER = corpus.parse(
  "a.cu", _HEADER.replace("wrong_answer", "wrong_answer passed")
)


@pytest.mark.parametrize(
  ("specimen", "status", "verdict"),
  [
    (_HOSTILE, Status.WRONG_ANSWER, audit.Verdict.CAUGHT),
    (_HOSTILE, Status.PASSED, audit.Verdict.ESCAPED),
    (_HOSTILE, Status.TIMEOUT, audit.Verdict.ESCAPED),
    (_HOSTILE, Status.INFRASTRUCTURE_ERROR, audit.Verdict.FAILED),
    (_EITHER, Status.PASSED, audit.Verdict.HARMLESS),
    (_EITHER, Status.WRONG_ANSWER, audit.Verdict.CAUGHT),
    (_HONEST, Status.PASSED, audit.Verdict.ACCEPTED),
    (_HONEST, Status.COMPILE_ERROR, audit.Verdict.REFUSED),
    (_HONEST, Status.INFRASTRUCTURE_ERROR, audit.Verdict.FAILED),
  ],
)
def test_verdicts(specimen, status, verdict):
  finding = audit.judge(specimen, _evaluation(status), "cpu")
  assert finding.verdict == verdict
  report = audit.Report("cpu-fiber", "g++ 1", "none", (finding,))
  assert report.escaped == (
    verdict.value in ("escaped", "refused", "infrastructure_error")
  )
  assert report.counts()[verdict] == 1
  assert f"1 {verdict}" in audit.render(report).splitlines()[-1]


def test_a_record_that_shows_a_file_is_an_escape():
  shown = _evaluation(Status.WRONG_ANSWER, "'root:x:0:0' is no type")
  finding = audit.judge(_HOSTILE, shown, "cpu", secret="root:x:0:0")
  assert finding.verdict == audit.Verdict.ESCAPED
  assert "shows a file" in finding.note


def test_what_is_not_applicable_says_why():
  text = _HEADER.replace("both", "cuda; needs timing")
  specimen = corpus.parse("a.cu", text)
  assert audit.not_applicable(specimen, "cpu") == "for cuda only: needs timing"
  assert audit.not_applicable(specimen, "cuda") == ""
  text = _HEADER.replace("// expect", "// machine: vax\n// expect")
  why = audit.not_applicable(corpus.parse("a.cu", text), "cpu")
  assert why.startswith("for vax only; this is ")


# ---- the command


def _audit(folder, *arguments):
  done = subprocess.run(
    [
      *(sys.executable, "-m", "kernels_eval", "audit", "--workers=1"),
      *(f"--corpus={folder}", *arguments),
    ],
    capture_output=True,
    text=True,
    timeout=60,
    cwd=_ROOT,
    env=dict(os.environ),
  )
  assert "Traceback" not in done.stderr
  return done


@pytest.fixture
def folder(tmp_path):
  (tmp_path / "honest").mkdir()
  (tmp_path / "idle.cu").write_text(_HEADER + IDLE)
  (tmp_path / "later.cu").write_text(
    _HEADER.replace("both", "cuda; needs timing") + IDLE
  )
  (tmp_path / "honest" / "good.cu").write_text(
    _HEADER.replace("wrong_answer", "passed") + GOOD
  )
  return tmp_path


def test_an_audit_of_which_nothing_escapes(folder):
  done = _audit(folder)
  assert done.returncode == 0, done.stdout + done.stderr
  lines = done.stdout.splitlines()
  assert lines[1].split() == ["idle.cu", "15", "wrong_answer", "caught"]
  assert lines[2].endswith("not applicable (for cuda only: needs timing)")
  assert lines[3].split() == ["honest/good.cu", "15", "passed", "accepted"]
  row = lines.index(" 15  does nothing and is handed the reference's memory")
  assert lines[row + 1].strip() == (
    "caught: idle.cu; accepted: honest/good.cu; not applicable: later.cu"
  )
  assert lines[-2].startswith("3 candidates for 1 of 37 rows, judged by cpu-")
  assert lines[-1].startswith("1 caught, 0 harmless, 1 accepted, 0 escaped")
  assert "3/3" in done.stderr  # the progress bar


def test_what_escapes_is_an_error(folder):
  (folder / "idle.cu").write_text(_HEADER + GOOD)
  (folder / "honest" / "good.cu").write_text(
    _HEADER.replace("wrong_answer", "passed") + IDLE
  )
  done = _audit(folder, "--json")
  assert done.returncode == 1
  assert done.stdout.count("\n") == 1
  record = json.loads(done.stdout)
  verdicts = {c["file"]: c["verdict"] for c in record["candidates"]}
  assert verdicts == {
    "idle.cu": "escaped",
    "later.cu": "not applicable",
    "honest/good.cu": "refused",
  }
  assert record["counts"]["escaped"] == record["counts"]["refused"] == 1
  assert record["rows"][14]["files"] == verdicts


def test_json_and_text_agree(folder):
  report = audit.run(corpus.load(folder), 1)
  record = msgspec.json.decode(audit.encode(report))
  text = audit.render(report)
  for one in record["candidates"]:
    assert one["file"] in text and one["verdict"] in text


@pytest.mark.parametrize(
  ("change", "words"),
  [
    (lambda d: d / "nowhere", "is not a folder"),
    (lambda d: (d / "idle.cu").write_text(IDLE) and d, "idle.cu:1: got"),
    (lambda d: (d / "x.rs").write_text("") or d, "x.rs: not a file of a"),
    (lambda d: (d / "x.cu").write_bytes(b"// \xff") and d, "not UTF-8"),
    (lambda d: (d / "empty").mkdir() or d / "empty", "holds no candidates"),
  ],
)
def test_bad_corpora(folder, change, words):
  done = _audit(change(folder))
  assert done.returncode == 2
  assert words in done.stderr
  assert done.stderr.count("\n") == 1
  assert done.stdout == ""


def test_bad_numbers_of_workers(folder):
  for workers, words in (("0", "at least 1"), ("many", "invalid int value")):
    done = _audit(folder, f"--workers={workers}")
    assert done.returncode == 2
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_no_corpus_beside_an_installed_package(tmp_path, monkeypatch):
  monkeypatch.setattr(corpus, "__file__", str(tmp_path / "a" / "corpus.py"))
  with pytest.raises(corpus.CorpusError, match="installed without its tests"):
    corpus.default_folder()
