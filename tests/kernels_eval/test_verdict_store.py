"""Remembered verdicts: which, for how long, and what when the file is bad."""

import os
import pathlib
import sqlite3
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from kernels_eval import problems, verdict_cache, verdict_store
from kernels_eval.schema import Evaluation, Phase, Status, Timing

GOOD = problems.get("vector_add").canonical
PASSED = Evaluation("1", "p", Status.PASSED, Phase.JUDGE, "right", "cpu-fiber")
_ROOT = pathlib.Path(__file__).parents[2]


def _verdict(status=Status.PASSED, **fields):
  return msgspec.structs.replace(PASSED, status=status, **fields)


def key_of(i):
  return i.to_bytes(32, "little")


@pytest.fixture
def path(tmp_path):
  return tmp_path / "cache" / "verdicts-0.sqlite"


@pytest.fixture
def said():
  """Lines of warning; a test that expects none asserts it."""
  return []


@pytest.fixture(params=["memory", "store"])
def cache(request, path, said):
  if request.param == "memory":
    yield verdict_cache.Memory()
  else:
    with verdict_store.Store(path, warn=said.append) as store:
      yield store
  assert said == []


def test_a_verdict_comes_back_whole(cache):
  assert cache.get(key_of(1)) is None
  cache.put(key_of(1), PASSED)
  assert cache.get(key_of(1)) == PASSED
  assert cache.get(key_of(2)) is None


@pytest.mark.parametrize("status", Status)
def test_faults_of_ours_and_timeouts_are_not_kept(cache, status):
  cache.put(key_of(1), _verdict(status))
  wanted = status not in (Status.INFRASTRUCTURE_ERROR, Status.TIMEOUT)
  assert (cache.get(key_of(1)) is not None) == wanted


def test_a_time_is_not_kept(cache):
  timing = Timing("n=1", 1.0, 2.0, 0.01, 0.01, 20, 0.5, "canonical", "", "")
  timed = _verdict(candidate_ms=1.0, reference_ms=2.0, timing=timing)
  too_fast = _verdict(Status.INTEGRITY_VIOLATION, phase=Phase.TIME)
  for verdict in (timed, too_fast):
    cache.put(key_of(1), verdict)
    assert cache.get(key_of(1)) is None


def test_nothing_remembers_nothing():
  cache = verdict_cache.Nothing()
  cache.put(key_of(1), PASSED)
  assert cache.get(key_of(1)) is None


def test_memory_is_bounded_by_last_use():
  memory = verdict_cache.Memory(max_records=2)
  for i in (1, 2):
    memory.put(key_of(i), PASSED)
  memory.get(key_of(1))
  memory.put(key_of(3), PASSED)
  assert [memory.get(key_of(i)) is not None for i in (1, 2, 3)] == [
    True, False, True,
  ]  # fmt: skip


def test_another_process_finds_the_verdict(path, said):
  with verdict_store.Store(path, warn=said.append) as store:
    store.put(key_of(1), PASSED)
  with verdict_store.Store(path, warn=said.append) as store:
    assert store.get(key_of(1)) == PASSED
  assert said == []


def test_a_killed_process_loses_a_second_at_most(path):
  code = (
    "import os, pathlib, sys\n"
    "from kernels_eval import verdict_store\n"
    "from tests.kernels_eval.test_verdict_store import PASSED, key_of\n"
    "store = verdict_store.Store(pathlib.Path(sys.argv[1]))\n"
    "store.put(key_of(1), PASSED)\n"
    "os.kill(os.getpid(), 9)\n"
  )
  done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=_ROOT)
  assert done.returncode == -9
  with verdict_store.Store(path) as store:
    assert store.get(key_of(1)) == PASSED


@pytest.mark.parametrize(
  "record",
  [
    b"",
    b"\xc1",
    msgspec.msgpack.encode({"id": "1"}),
    msgspec.msgpack.encode(msgspec.to_builtins(PASSED) | {"extra": 1}),
    msgspec.msgpack.encode(msgspec.to_builtins(PASSED) | {"status": "good"}),
    msgspec.msgpack.encode(
      msgspec.to_builtins(_verdict(Status.WRONG_ANSWER))
      | {"candidate_ms": 1.0, "reference_ms": 1.0}
    ),
    "text",
    None,
  ],
  ids=repr,
)
def test_a_record_that_is_none_is_judged_anew(path, said, record):
  with verdict_store.Store(path, warn=said.append) as store:
    store.put(key_of(1), PASSED)
  with sqlite3.connect(path) as connection:
    if record is None:
      connection.execute("UPDATE verdicts SET record = 5")
    else:
      connection.execute("UPDATE verdicts SET record = ?", (record,))
  connection.close()
  with verdict_store.Store(path, warn=said.append) as store:
    assert store.get(key_of(1)) is None
    store.put(key_of(1), PASSED)
  with verdict_store.Store(path, warn=said.append) as store:
    assert store.get(key_of(1)) == PASSED
  assert said == []


def test_the_file_is_bounded_and_forgets_what_is_used_least(path, said):
  record = _verdict(log="x" * 2000)
  max_bytes = 256 * 1024
  now = time.time()
  with pytest.MonkeyPatch.context() as patch:
    for i in range(600):
      patch.setattr(verdict_store.time, "time", lambda i=i: now + i)
      if i % 25 == 0:
        store = verdict_store.Store(path, max_bytes=max_bytes, warn=said.append)
      store.put(key_of(i), record)
      store.flush()
      if i % 25 == 24:
        assert store.get(key_of(0)) is not None  # asked for again and again
        store.close()
  with verdict_store.Store(path, warn=said.append) as store:
    kept = [i for i in range(600) if store.get(key_of(i)) is not None]
  assert kept[0] == 0
  assert kept[1:] == list(range(kept[1], 600))
  assert 40 <= len(kept) <= max_bytes // 2000
  assert path.stat().st_size <= 2 * max_bytes
  assert said == []


def test_files_of_other_versions_go_after_a_month(path):
  path.parent.mkdir()
  for name in ("verdicts-old.sqlite", "verdicts-old.sqlite-wal", "other"):
    (path.parent / name).write_text("")
    os.utime(path.parent / name, (0, 0))
  (path.parent / "verdicts-new.sqlite").write_text("")
  verdict_store.Store(path).close()
  assert sorted(p.name for p in path.parent.iterdir()) == [
    "other", "verdicts-0.sqlite", "verdicts-new.sqlite",
  ]  # fmt: skip


# ---- what can be wrong with a file


def _works_without(store, said):
  """It remembers for this process, and has said so in one line."""
  for i in range(200):
    store.put(key_of(i), PASSED)
    assert store.get(key_of(i)) == PASSED
  store.flush()
  store.close()
  assert len(said) == 1 and "\n" not in said[0]
  assert str(store.path) in said[0] and "going on without it" in said[0]


@pytest.mark.parametrize("folder", ["/proc/self", "/sys", "/dev/null"])
def test_a_folder_that_cannot_be_written_to(folder, said):
  path = pathlib.Path(folder) / "below" / "verdicts.sqlite"
  _works_without(verdict_store.Store(path, warn=said.append), said)


def test_a_path_that_is_a_folder(tmp_path, said):
  _works_without(verdict_store.Store(tmp_path, warn=said.append), said)


def test_a_file_that_is_no_database(path, said):
  path.parent.mkdir()
  path.write_text("This is no database. " * 1000)
  _works_without(verdict_store.Store(path, warn=said.append), said)
  assert path.read_text().startswith("This is no database")


def test_a_database_with_other_tables(path, said):
  path.parent.mkdir()
  with sqlite3.connect(path) as connection:
    connection.execute("CREATE TABLE verdicts (something TEXT)")
  connection.close()
  store = verdict_store.Store(path, warn=said.append)
  _works_without(store, said)


def test_a_database_that_is_damaged_inside(path, said):
  with verdict_store.Store(path) as store:
    for i in range(400):
      store.put(key_of(i), _verdict(log="x" * 500))
  raw = bytearray(path.read_bytes())
  assert len(raw) > 100_000
  raw[8192:] = b"\xff" * (len(raw) - 8192)
  path.write_bytes(raw)
  store = verdict_store.Store(path, warn=said.append)
  for i in range(400):
    assert store.get(key_of(i)) in (None, _verdict(log="x" * 500))
  _works_without(store, said)


def test_a_full_disk(path, said):
  store = verdict_store.Store(path, warn=said.append)
  store._connection.execute("PRAGMA max_page_count = 10")
  for i in range(100):
    store.put(key_of(1000 + i), _verdict(log="x" * 4000))
  assert "full" in said[0]
  _works_without(store, said)


def test_a_python_without_sqlite(path, said, monkeypatch):
  monkeypatch.setattr(verdict_store, "sqlite3", None)
  _works_without(verdict_store.Store(path, warn=said.append), said)


# ---- several processes and threads


_WRITER = """
import pathlib, sys
from kernels_eval import verdict_store
from tests.kernels_eval.test_verdict_store import PASSED, key_of
path, first = pathlib.Path(sys.argv[1]), int(sys.argv[2])
sys.stdin.readline()
with verdict_store.Store(path) as store:
  for i in range(300):
    store.put(key_of(first + i), PASSED)
    store.flush()
    store.get(key_of(i))
"""


def test_processes_at_once(path):
  """All open the same new file at the same time, then write in turns."""
  writers = [
    subprocess.Popen(
      [sys.executable, "-c", _WRITER, str(path), str(1000 * i)],
      stdin=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      cwd=_ROOT,
    )
    for i in range(3)
  ]
  try:
    for writer in writers:  # they wait for this line behind their imports
      writer.stdin.write("\n")
      writer.stdin.flush()
    for writer in writers:
      _, errors = writer.communicate(timeout=60)
      assert (writer.returncode, errors) == (0, "")
  finally:
    for writer in writers:
      writer.kill()
      writer.wait()
  with verdict_store.Store(path) as store:
    missing = [
      1000 * i + j
      for i in range(3)
      for j in range(300)
      if store.get(key_of(1000 * i + j)) is None
    ]
  assert missing == []


def test_a_locked_file_delays_nobody_and_loses_nothing(path, said):
  store = verdict_store.Store(path, warn=said.append)
  other = sqlite3.connect(path, isolation_level=None)
  other.execute("BEGIN IMMEDIATE")
  started = time.monotonic()
  for i in range(300):
    store.put(key_of(i), PASSED)
    assert store.get(key_of(i)) == PASSED
  assert time.monotonic() - started < 2
  other.execute("ROLLBACK")
  other.close()
  store.close()
  with verdict_store.Store(path) as store:
    assert all(store.get(key_of(i)) == PASSED for i in range(300))
  assert said == []


def test_threads(path, said):
  with verdict_store.Store(path, warn=said.append) as store:

    def work(first):
      for i in range(100):
        store.put(key_of(first + i), PASSED)
        assert store.get(key_of(first + i)) == PASSED

    threads = [
      threading.Thread(target=work, args=(1000 * i,)) for i in range(4)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    store.flush()
    query = "SELECT COUNT(*) FROM verdicts"
    assert store._connection.execute(query).fetchone() == (400,)
  assert said == []
