"""Verdicts that outlive the process, in one SQLite file of the user's.

A cache must never be the reason that work stops. Whatever is wrong with the
file, its folder or the disk, one line says so and the rest of the process does
without it; while another process writes, this one waits a tenth of a second and
tries again with its next verdict. The candidates' sandbox does not hold the
file.
"""

import atexit
import contextlib
import pathlib
import random
import sys
import threading
import time
from collections.abc import Callable

import msgspec

from kernels_eval import cache_folder, verdict_cache
from kernels_eval.schema import HARNESS_VERSION, Evaluation

try:
  import sqlite3
except ImportError:  # a Python that was built without it
  sqlite3 = None

_ERRORS = (OSError, ImportError) + ((sqlite3.Error,) if sqlite3 else ())
MAX_BYTES = 256 * 2**20
_BUSY_S = 0.1
_OPEN_TRIES = 40
_CLOSE_TRIES = 20
_FLUSH_S = 1.0  # at most so much is lost when the process is killed
_FLUSH_RECORDS = 64
_MAX_PENDING = 10_000
_UNUSED_S = 30 * 24 * 3600.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (
  key BLOB PRIMARY KEY, record BLOB NOT NULL, last_used REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS verdicts_by_use ON verdicts (last_used);
"""


def default_path() -> pathlib.Path:
  """The file of this version of the records."""
  return cache_folder.path() / f"verdicts-{HARNESS_VERSION}.sqlite"


def _say(text):
  print(text, file=sys.stderr)


def _is_busy(error):
  return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
  )


class Store:
  """A `verdict_cache.Cache` on disk, with a `Memory` in front. Owns a database
  connection: close it, or use `with`. Any thread may use it."""

  def __init__(
    self,
    path: pathlib.Path | None = None,
    *,
    max_bytes: int = MAX_BYTES,
    warn: Callable[[str], None] = _say,
  ):
    """Opens or creates the file; never raises for what is wrong with it.

    Args:
      path: of the file; None means `default_path()`.
      max_bytes: beyond it the verdicts used least recently are removed.
      warn: gets at most one line.
    """
    self.path = default_path() if path is None else path
    self._max_bytes = max_bytes
    self._warn = warn
    self._memory = verdict_cache.Memory()
    self._pending: dict[bytes, bytes] = {}
    self._touched: set[bytes] = set()
    self._next_flush = 0.0
    self._lock = threading.RLock()
    self._connection = None
    try:
      self._open()
    except _ERRORS as error:
      self._give_up(error)
    atexit.register(self.close)

  def _open(self):
    if sqlite3 is None:
      raise ImportError("this Python has no sqlite3")
    self.path.parent.mkdir(parents=True, exist_ok=True)
    self._connection = sqlite3.connect(
      self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    # The change to WAL does not wait for other processes, it fails.
    for i in range(_OPEN_TRIES):
      try:
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.execute(f"PRAGMA journal_size_limit={4 * 2**20}")
        self._connection.executescript(_SCHEMA)
        break
      except sqlite3.OperationalError as error:
        if not _is_busy(error) or i == _OPEN_TRIES - 1:
          raise
        time.sleep(random.uniform(0, 2 * _BUSY_S))
    self._remove_unused()

  def _remove_unused(self):
    """Files of other versions that nobody has written to for a month."""
    for path in self.path.parent.glob("verdicts-*.sqlite*"):
      with contextlib.suppress(OSError):
        is_old = time.time() - path.stat().st_mtime > _UNUSED_S
        if is_old and not path.name.startswith(self.path.name):
          path.unlink()

  def _give_up(self, error):
    connection, self._connection = self._connection, None
    self._pending.clear()
    self._touched.clear()
    if connection is not None:
      with contextlib.suppress(sqlite3.Error):
        connection.close()
    self._warn(
      f"verdict cache {self.path}: {error}; going on without it (if it is "
      "damaged, remove the file)"
    )

  def get(self, key: bytes) -> Evaluation | None:
    """The verdict, or None."""
    with self._lock:
      known = self._memory.get(key)
      if known is not None or self._connection is None:
        return known
      if key in self._pending:
        return msgspec.msgpack.decode(self._pending[key], type=Evaluation)
      try:
        row = self._connection.execute(
          "SELECT record FROM verdicts WHERE key = ?", (key,)
        ).fetchone()
      except sqlite3.Error as error:
        if not _is_busy(error):
          self._give_up(error)
        return None
      if row is None:
        return None
      try:
        found = msgspec.msgpack.decode(row[0], type=Evaluation)
      except (msgspec.MsgspecError, ValueError, TypeError):
        return None  # to be overwritten by the verdict that is now due
      self._memory.put(key, found)
      self._touched.add(key)
      return found

  def put(self, key: bytes, evaluation: Evaluation) -> None:
    """Remembers a verdict, if `may_be_kept`."""
    if not verdict_cache.may_be_kept(evaluation):
      return
    with self._lock:
      self._memory.put(key, evaluation)
      if self._connection is None:
        return
      if len(self._pending) < _MAX_PENDING:
        self._pending[key] = msgspec.msgpack.encode(evaluation)
      if (
        time.monotonic() >= self._next_flush
        or len(self._pending) % _FLUSH_RECORDS == 0
      ):
        self.flush()

  def flush(self) -> None:
    """Writes what has come in; what cannot be written now stays for later."""
    with self._lock:
      self._next_flush = time.monotonic() + _FLUSH_S
      if self._connection is None or not (self._pending or self._touched):
        return
      try:
        self._write()
      except sqlite3.Error as error:
        if not _is_busy(error):
          self._give_up(error)
        return
      self._pending.clear()
      self._touched.clear()

  def _write(self):
    now = time.time()
    self._connection.execute("BEGIN IMMEDIATE")
    try:
      self._connection.executemany(
        "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)",
        [(key, record, now) for key, record in self._pending.items()],
      )
      self._connection.executemany(
        "UPDATE verdicts SET last_used = ? WHERE key = ?",
        [(now, key) for key in self._touched],
      )
      while self._used_bytes() > self._max_bytes and self._evict():
        pass
      self._connection.execute("COMMIT")
    except BaseException:
      with contextlib.suppress(sqlite3.Error):
        self._connection.execute("ROLLBACK")
      raise

  def _pragma(self, name):
    return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

  def _used_bytes(self):
    pages = self._pragma("page_count") - self._pragma("freelist_count")
    return pages * self._pragma("page_size")

  def _evict(self):
    """Removes the eighth that was used least recently; False if none was."""
    query = "SELECT COUNT(*) FROM verdicts"
    count = self._connection.execute(query).fetchone()[0]
    done = self._connection.execute(
      "DELETE FROM verdicts WHERE key IN "
      "(SELECT key FROM verdicts ORDER BY last_used LIMIT ?)",
      (count // 8 + 1,),
    )
    return done.rowcount > 0

  def close(self) -> None:
    """Writes what is left and closes the file. May be called twice."""
    with self._lock:
      atexit.unregister(self.close)
      for _ in range(_CLOSE_TRIES):
        self.flush()
        if not self._pending:
          break
      connection, self._connection = self._connection, None
      if connection is not None:
        with contextlib.suppress(sqlite3.Error):
          connection.close()

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self.close()
