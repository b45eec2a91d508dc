"""Verdicts that pools and the command line remember."""

import os
import pathlib
import stat
import subprocess
import sys

import pytest

from kernels_eval import client, problems, verdict_cache, verdict_store
from kernels_eval.cpu import host
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings

GOOD = problems.get("vector_add").canonical
_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
  return tmp_path / "cache" / "verdicts-0.sqlite"


@pytest.fixture
def said():
  """Lines of warning; a test that expects none asserts it."""
  return []


_TIMEOUT = GOOD.replace("out[i] =", "while (true) {}\n out[i] =")
_REQUESTS = [
  Request("a", "vector_add", GOOD),
  Request("b", "vector_add", GOOD.replace("+ y", "- y")),
  Request("c", "vector_add", _TIMEOUT),
]
_QUICK = Settings(run_cpu_s=0.3)


def test_a_second_pool_judges_timeouts_only(path, said):
  wanted = [Status.PASSED, Status.WRONG_ANSWER, Status.TIMEOUT]
  for num_evaluated in (3, 1):
    with (
      verdict_store.Store(path, warn=said.append) as store,
      client.Pool(num_workers=1, settings=_QUICK, cache=store) as pool,
    ):
      answers = pool.evaluate(_REQUESTS)
      assert [a.status for a in answers] == wanted
      assert [a.id for a in answers] == ["a", "b", "c"]
      assert pool.num_evaluated == num_evaluated
      pool.evaluate(_REQUESTS[:2])
      assert pool.num_evaluated == num_evaluated
  # Other limits, another seed: another question.
  with (
    verdict_store.Store(path, warn=said.append) as store,
    client.Pool(num_workers=1, seed=1, settings=_QUICK, cache=store) as pool,
  ):
    pool.evaluate(_REQUESTS[:1])
    assert pool.num_evaluated == 1
  assert said == []


def test_a_pool_with_nothing_judges_again():
  with client.Pool(num_workers=1, cache=verdict_cache.Nothing()) as pool:
    for count in (1, 2):
      # Twice in one batch is once.
      pool.evaluate([_REQUESTS[0], _REQUESTS[0]])
      assert pool.num_evaluated == count


def test_the_sandbox_does_not_hold_the_file(lab, monkeypatch):
  """Beside the native parts, which the sandbox does hold."""
  executor_ = lab.executor
  folder = executor_._tools.parts.parent
  monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent))
  assert verdict_store.default_path().parent == folder
  secret = folder / f"verdicts-test-{os.getpid()}.sqlite"
  secret.write_text("secret")
  secret.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
  limits = host.Limits(10, 5, 2**31, 2**20, num_processes=8)
  try:
    with executor_.folder() as private:
      see = lambda path: executor_._host.command(
        ["/bin/cat", str(path)], str(private), limits
      )
      assert "secret" not in see(secret).log and not see(secret).ok
      assert see(executor_._tools.parts / "device.h").ok
  finally:
    secret.unlink()


def _check(file, cache, *more):
  return subprocess.run(
    [sys.executable, "-m", "kernels_eval", "check", str(file), "--problem",
     "vector_add", *more],
    capture_output=True,
    text=True,
    timeout=60,
    cwd=_ROOT,
    env={**os.environ, "XDG_CACHE_HOME": str(cache)},
  )  # fmt: skip


def test_check_says_that_it_judged_before(tmp_path, monkeypatch):
  file = tmp_path / "k.cu"
  file.write_text(GOOD.replace("+ y", "- y"))
  # The native parts are built already; the verdicts are this test's own.
  cache = tmp_path / "cache"
  cache.mkdir()
  parts = verdict_store.default_path().parent
  (cache / "kernels_eval").mkdir()
  for folder in parts.glob("cpu-*"):
    (cache / "kernels_eval" / folder.name).symlink_to(folder)
  first = _check(file, cache)
  assert first.returncode == 1 and "judged before" not in first.stderr
  second = _check(file, cache)
  assert second.returncode == 1 and second.stdout == first.stdout
  assert "judged before; --no-cache judges again" in second.stderr
  third = _check(file, cache, "--no-cache")
  assert third.returncode == 1 and "judged before" not in third.stderr
  quiet = _check(file, cache, "--json")
  assert quiet.stderr == "" and '"wrong_answer"' in quiet.stdout


def test_check_works_without_a_cache(tmp_path):
  file = tmp_path / "k.cu"
  file.write_text(GOOD)
  path = verdict_store.default_path()
  cache = tmp_path / "cache" / "kernels_eval"
  cache.mkdir(parents=True)
  for folder in path.parent.glob("cpu-*"):
    (cache / folder.name).symlink_to(folder)
  (cache / path.name).write_text("no database " * 100)
  done = _check(file, cache.parent)
  assert done.returncode == 0
  assert "vector_add  passed" in done.stdout
  warnings = [x for x in done.stderr.splitlines() if "verdict cache" in x]
  assert len(warnings) == 1 and "Traceback" not in done.stderr
