"""The soak: its mix, what it looks at, and that it finds what is wrong."""

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import msgspec
import pytest

from kernels_eval import client, problems, temporary
from kernels_eval.numba import client as numba_client
from kernels_eval.schema import Evaluation, Phase, Request, Status
from kernels_eval.soak import belongings, mix, run, summary, twins
from kernels_eval.soak import templates as templates_lib

_ROOT = pathlib.Path(__file__).parents[2]
OWN = templates_lib.load("cpu", folder=None)
_EACH = [(kind, t) for kind, every in OWN.items() for t in every]

# ---- the mix


def test_the_mix_is_seeded():
  first, again, other = (mix.draw(60, s, OWN, 1000) for s in (3, 3, 4))
  assert first == again != other


@pytest.mark.parametrize("count", [11, 37, 500])
def test_every_kind_takes_part(count):
  candidates = mix.draw(count, 0, OWN, 1000)
  assert len(candidates) == count
  kinds = collections.Counter(c.kind for c in candidates)
  assert set(kinds) == set(mix.SHARES) and min(kinds.values()) >= 1
  if count == 500:
    assert kinds["hanging"] == 10 and kinds["good"] > 150
  assert len({c.request.id for c in candidates}) == count


def test_kinds_can_be_left_out(monkeypatch):
  def missing():
    raise numba_client.UnavailableError("not installed")

  assert run._shares("cpu") == mix.SHARES  # the tests need Numba
  assert run._shares("cuda")["hanging"] < mix.SHARES["hanging"]
  monkeypatch.setattr(numba_client, "check_versions", missing)
  assert run._suffixes() == [".cu", ".txt"]
  shares = run._shares("cpu")
  assert set(shares) == set(mix.SHARES) - {"numba"}
  candidates = mix.draw(60, 0, OWN, 1000, shares)
  assert {c.kind for c in candidates} == set(shares) and len(candidates) == 60


def test_texts_are_unique_but_for_twins():
  candidates = mix.draw(500, 0, OWN, 1000)
  by_text = collections.defaultdict(list)
  for c in candidates:
    by_text[c.request.problem, c.request.text].append(c)
  twins = [group for group in by_text.values() if len(group) > 1]
  assert len(twins) > 10
  for group in twins:
    assert len(group) == 2 and len({c.twin for c in group}) == 1
    assert group[0].twin is not None


def test_fewer_candidates_than_kinds_are_refused():
  with pytest.raises(ValueError, match="at least 11"):
    mix.draw(10, 0, OWN, 1000)


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_a_spoiled_kernel_is_wrong_whatever_the_problem(check, name):
  answer = check(name, mix.spoiled(problems.get(name)))
  assert answer.status == Status.WRONG_ANSWER, answer


@pytest.mark.parametrize(
  ("kind", "template"),
  [(k, t) for k, t in _EACH if k != "hanging"],
  ids=lambda x: getattr(x, "name", None),
)
def test_own_candidates_get_what_they_expect(check, kind, template):
  answer = check(template.problem, template.text)
  assert answer.status in template.allowed, answer


def test_what_hangs_is_cut_off():
  with client.Pool(num_workers=2, settings=run.SETTINGS) as pool:
    answers = pool.evaluate(
      [Request(t.name, t.problem, t.text) for t in OWN["hanging"]]
    )
  for template, answer in zip(OWN["hanging"], answers, strict=True):
    assert answer.status in template.allowed, answer


def test_a_slow_kernel_is_right(check):
  few, many = (check("vector_add", mix.slow(n)) for n in (10, 30_000_000))
  assert few.passed and many.passed
  assert many.run_ms > few.run_ms + 20


# ---- files of candidates

_HEADER = (
  "// row: -\n// problem: axpy\n// on: both\n// expect: {}\n// why: Because.\n"
)


def test_the_corpus_of_a_checkout_takes_part(tmp_path):
  (tmp_path / "one.cu").write_text(_HEADER.format("no_kernel timeout"))
  (tmp_path / "honest").mkdir()
  (tmp_path / "honest" / "two.cu").write_text(_HEADER.format("passed"))
  for line in ("// on: cuda; no such thing", "// on: both\n// machine: vax"):
    other = _HEADER.replace("// on: both", line).format("timeout")
    (tmp_path / f"other_{len(line)}.cu").write_text(other)
  own = {t.name for t in OWN["malicious"]}
  more = templates_lib.load("cpu", folder=tmp_path)["malicious"]
  one, two = sorted(
    (t for t in more if t.name not in own), key=lambda t: t.name, reverse=True
  )
  assert (one.name, two.name) == ("one.cu", "honest/two.cu")
  assert (one.problem, two.problem) == ("axpy", "axpy")
  assert one.allowed == {Status.NO_KERNEL, Status.TIMEOUT}
  assert two.allowed == {Status.PASSED}
  assert templates_lib.load("cpu", folder=tmp_path / "nowhere") == OWN


def test_files_of_both_languages(tmp_path):
  numba = _HEADER.replace("//", "#").format("passed")
  (tmp_path / "one.py").write_text(numba)
  load = lambda suffixes: [
    t
    for t in templates_lib.load("cpu", suffixes, tmp_path)["malicious"]
    if t.name == "one.py"
  ]
  assert load((".cu",)) == []
  (template,) = load(templates_lib.SUFFIXES)
  assert template.comment == "#"
  kinds = OWN | {"malicious": [template]}
  texts = [
    c.request.text
    for c in mix.draw(60, 0, kinds, 1000)
    if c.kind == "malicious"
  ]
  assert texts and all(
    t.startswith(numba) and "\n# soak 0 " in t for t in texts
  )


def test_every_kind_has_files_for_a_gpu_too():
  assert templates_lib.load("cuda", folder=None).keys() == OWN.keys()
  assert OWN.keys() == set(mix.SHARES) - {
    *("good", "numba", "wrong", "mutated", "slow"),
  }


# ---- what is left behind


def _left(before):
  return {
    c.name: c.left
    for c in belongings.compare_when_quiet(before, timeout_s=0.2)
    if not c.is_same
  }


def test_nothing_is_nothing():
  assert _left(belongings.take()) == {}


def test_a_child_is_seen():
  before = belongings.take()
  with subprocess.Popen(["sleep", "60"]) as child:
    left = _left(before)
    child.kill()
  assert left.keys() == {"processes"}
  assert left["processes"] == (f"{child.pid} sleep",)
  assert _left(before) == {}


def test_an_orphan_in_a_session_of_its_own_is_seen():
  """Its parent is gone, and nothing of it names us."""
  with belongings.adopting_orphans():
    before = belongings.take()
    script = "setsid sleep 60 >/dev/null 2>&1 & echo $!"
    done = subprocess.run(
      ["sh", "-c", script], capture_output=True, text=True, env={}, check=True
    )
    time.sleep(0.1)
    left = _left(before)
    orphans = [int(x.split()[0]) for x in left["processes"]]
    try:
      assert len(orphans) == 1 and left["processes"][0].endswith(" sleep")
      assert done.stdout.strip()
    finally:
      for pid in orphans:
        os.kill(pid, 9)
    assert belongings.compare_when_quiet(before)[0].is_same


def test_descriptors_folders_and_shared_memory_are_seen():
  before = belongings.take()
  folder = tempfile.mkdtemp(prefix=f"{temporary.PREFIX}{os.getpid()}-")
  name = f"/dev/shm/kernels_eval-test-{os.getpid()}"
  with open(name, "w"):
    left = _left(before)
  os.unlink(name)
  os.rmdir(folder)
  assert left.keys() == {"descriptors", "shared_memory", "folders"}
  assert left["folders"] == (pathlib.Path(folder).name,)
  assert left["shared_memory"] == (pathlib.Path(name).name,)
  assert left["descriptors"][0].endswith(name)
  assert _left(before) == {}


def test_gpu_memory_is_compared():
  before = belongings.take()._replace(gpu_bytes=(10, 20))
  after = before._replace(gpu_bytes=(10, 20 + 2**30))
  compared = {c.name: c for c in belongings.compare(before, after)}
  assert compared["gpu_memory_0"].is_same
  assert compared["gpu_memory_1"].left == (f"{2**30} bytes",)


# ---- verdicts


def _answer(candidate, status):
  return Evaluation(
    candidate.request.id, "p", status, Phase.RUN, "m", "cpu-fiber"
  )


def _candidate(name, kind, allowed, twin=None):
  request = Request(name, "vector_add", "x")
  return mix.Candidate(request, kind, frozenset(allowed), twin)


def test_offences_are_found():
  passed, wrong, fault = (
    Status.PASSED, Status.WRONG_ANSWER, Status.INFRASTRUCTURE_ERROR,
  )  # fmt: skip
  verdicts = frozenset(Status) - {fault}
  cases = [
    (_candidate("a", "good", {passed}), passed, None),
    (_candidate("b", "good", {passed}), wrong, ("passed",)),
    (_candidate("c", "wrong", {wrong}), passed, ("wrong_answer",)),
    (_candidate("d", "mutated", verdicts, "t"), passed, None),
    (_candidate("e", "mutated", verdicts, "t"), wrong, ("passed",)),
    (_candidate("f", "mutated", verdicts, "u"), wrong, None),
  ]
  judged = run._judged(
    [c for c, _, _ in cases], [_answer(c, s) for c, s, _ in cases], {}
  )
  assert [(o.id, o.allowed) for o in judged["offences"]] == [
    (c.request.id, allowed) for c, _, allowed in cases if allowed is not None
  ]
  assert judged["num_offences"] == 3
  assert judged["num_infrastructure_errors"] == 0
  ours = [_candidate("g", "mutated", verdicts)]
  judged = run._judged(ours, [_answer(ours[0], fault)], {})
  assert judged["num_infrastructure_errors"] == judged["num_offences"] == 1


def test_twins_differ_on_a_gpu_only_for_what_the_cpu_finds():
  problem = problems.get("row_sum")
  loop = problem.canonical.index("half /= 2")
  racy = problem.canonical[:loop] + problem.canonical[loop:].replace(
    "__syncthreads();", "", 1
  )
  texts = {"racy": racy, "right": problem.canonical}
  statuses = (Status.PASSED, Status.WRONG_ANSWER)
  candidates = [
    mix.Candidate(
      Request(f"{name}-{status}", "row_sum", text),
      "mutated",
      frozenset(statuses),
      name,
    )
    for name, text in texts.items()
    for status in statuses
  ]
  answers = [
    _answer(c, s) for c, s in zip(candidates, 2 * statuses, strict=True)
  ]
  assert twins.differing(candidates, answers) == {1: 0, 3: 2}
  excused = twins.reasons(candidates, answers, run.SETTINGS)
  assert excused.keys() == {1} and excused[1].startswith("data_race")
  judged = run._judged(candidates, answers, excused)
  assert [o.id for o in judged["offences"]] == ["right-wrong_answer"]
  assert judged["excused_twins"][0].startswith("racy-wrong_answer (row_sum)")
  assert twins.reasons(candidates[:1], answers[:1], run.SETTINGS) == {}


# ---- the whole


@pytest.fixture(scope="module")
def soaked(tmp_path_factory):
  """A small one, as the command runs it."""
  out = tmp_path_factory.mktemp("soak") / "result.json"
  done = subprocess.run(
    [sys.executable, "-m", "kernels_eval", "soak", "--count=60", "--seed=5",
     "--workers=2", f"--out={out}"],
    capture_output=True,
    text=True,
    timeout=120,
    cwd=_ROOT,
  )  # fmt: skip
  return done, out


def test_a_small_soak_is_clean(soaked):
  done, out = soaked
  assert done.returncode == 0, done.stdout + done.stderr
  assert done.stdout.endswith("\nclean\n")
  assert "60/60" in done.stderr
  record = json.loads(out.read_text())
  assert sum(sum(s.values()) for s in record["statuses"].values()) == 60
  assert record["statuses"]["good"].keys() == {"passed"}
  assert record["num_infrastructure_errors"] == 0
  assert [len(m["resident_bytes"]) for m in record["judges"]] == [2, 2]
  assert min(record["judges"][0]["resident_bytes"]) > 10 * 2**20
  assert {c["name"] for c in record["belongings"]} >= {
    "processes", "threads", "descriptors", "shared_memory", "folders",
  }  # fmt: skip
  for words in ("candidates/s", "MiB", "commit", "infrastructure errors: 0"):
    assert words in done.stdout


def test_a_compiler_that_a_judge_starts_later_is_no_leak():
  pytest.importorskip("numba", reason="needs numba")
  problem = problems.get("vector_add")
  with client.Pool(num_workers=1, executor="cpu") as pool:
    plain = Request("cuda", problem.name, problem.canonical)
    assert pool.evaluate([plain])[0].passed
    ((_, before, num_before),) = run._look().values()
    later = Request("numba", problem.name, problem.numba_canonical)
    assert pool.evaluate([later])[0].passed
    ((_, after, num_after),) = run._look().values()
  assert before == after and num_after == num_before + 1


def test_what_is_not_clean_is_said(soaked):
  _, out = soaked
  result = msgspec.json.decode(out.read_bytes(), type=run.Result)
  assert result.is_clean
  memory = lambda mib, files, compilers=(4, 4): run.Memory(
    0.5, (mib * 2**20, 50 * 2**20), files, compilers
  )
  grown = (memory(50, (5, 6)), memory(70, (6, 5)))
  assert dataclasses.replace(result, judges=grown).is_clean
  offence = run.Offence("good-7", "good", "p", "timeout", ("passed",), "late")
  left = belongings.Comparison("processes", 0, 1, ("5 sleep",))
  for change, words in (
    ({"num_offences": 1, "offences": (offence,)}, "good-7 (p): timeout"),
    ({"num_infrastructure_errors": 1}, "infrastructure errors: 1"),
    ({"num_restarts": 2}, "judges replaced: 2"),
    ({"judges": (memory(50, (5, 5)), memory(80, (5, 5)))}, "A LEAK"),
    ({"judges": (memory(50, (5, 5)), memory(50, (5, 6)))}, "A LEAK"),
    ({"judges": (memory(50, (5, 5)), memory(50, (5, 5), (4, 5)))}, "A LEAK"),
    ({"belongings": (left,)}, "processes: 0 -> 1, LEFT BEHIND: 5 sleep"),
  ):
    changed = dataclasses.replace(result, **change)
    assert not changed.is_clean
    page = summary.render(changed)
    assert words in page and page.endswith("NOT CLEAN")


@pytest.mark.parametrize(
  ("arguments", "words"),
  [
    (["--count=3"], "--count=3; at least 11"),
    (["--out=/nowhere/x.json"], "cannot write /nowhere/x.json"),
    (["--seed=x"], "--seed"),
    (["--workers=0"], "--workers=0; at least 1"),
  ],
)
def test_bad_requests(arguments, words):
  done = subprocess.run(
    [sys.executable, "-m", "kernels_eval", "soak", *arguments],
    capture_output=True,
    text=True,
    timeout=60,
    cwd=_ROOT,
  )
  assert done.returncode == 2
  assert words in done.stderr and done.stderr.count("\n") == 1
