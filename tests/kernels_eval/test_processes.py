"""Processes that die, hang or are killed, and what they leave behind."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from kernels_eval import client, problems, temporary
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings
from tests.kernels_eval import machine

GOOD = problems.get("vector_add").canonical
_HEAD = (
  "__global__ void k(const float* x, const float* y, float* out, int n) {\n"
)
FAR = _HEAD + "  out[(size_t(1) << 40) + threadIdx.x] = x[0];\n}"
TRAP = _HEAD + "  __trap();\n}"
ENDLESS = (
  _HEAD
  + "  if (threadIdx.x + blockIdx.x) return;\n"
  + "  volatile float* v = out; v[0] = 1; while (v[0] != 2) {}\n}"
)
BUSY = _HEAD + "  while (true) {}\n}"
COMPILE_BOMB = (
  "constexpr int f() { int s = 0; for (int i = 0; i < 200000; i++)"
  " for (int j = 0; j < 200000; j++) s ^= i + j; return s; }\n"
  'static_assert(f() >= 0, "");\n' + GOOD
)
QUICK = Settings(run_cpu_s=0.3, compile_cpu_s=1.0)


def _request(text, name=""):
  return Request(name, "vector_add", text)


def _unique(i):
  return f"{GOOD}\n__device__ int unique_{i}() {{ return {i}; }}\n"


def _zombies():
  """Children of this process that nobody has waited for."""
  found = []
  for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
    stat = machine.read(entry).rpartition(b")")[2].split()
    if len(stat) > 1 and stat[0] == b"Z" and int(stat[1]) == os.getpid():
      found.append(entry)
  return found


@pytest.fixture(scope="module")
def pool():
  with client.Pool(num_workers=2, settings=QUICK) as p:
    yield p


@pytest.mark.covers("P17")
def test_a_bad_kernel_does_not_hurt_the_next(check):
  statuses = [
    check("vector_add", text).status for text in (GOOD, FAR, GOOD, TRAP, GOOD)
  ]
  good, bad = Status.PASSED, Status.RUNTIME_ERROR
  assert statuses == [good, bad, good, bad, good]


@pytest.mark.covers("P18")
def test_hanging_jobs_end_at_their_limits_and_the_others_finish(pool):
  requests = [_request(t) for t in (BUSY, ENDLESS, COMPILE_BOMB)]
  requests += [_request(_unique(i)) for i in range(8)]
  started = time.monotonic()
  answers = pool.evaluate(requests)
  assert time.monotonic() - started < 5
  statuses = [a.status for a in answers]
  assert statuses[:3] == [Status.TIMEOUT] * 3
  assert statuses[3:] == [Status.PASSED] * 8
  assert "compiler did not end within 1 s" in answers[2].message
  assert "0.3 s" in answers[0].message


def _belongings():
  """Open files, threads, shared memory, temporary files."""
  prefix = f"kernels_eval-{os.getpid()}-"
  return (
    len(os.listdir("/proc/self/fd")),
    len(os.listdir("/proc/self/task")),
    sorted(os.listdir("/dev/shm")),
    sorted(
      n for n in os.listdir(tempfile.gettempdir()) if n.startswith(prefix)
    ),
  )


@pytest.mark.covers("P19")
def test_fifty_hanging_candidates_leave_nothing(pool):
  settings = Settings(run_cpu_s=0.02, run_wall_s=0.2)
  before = _belongings()
  with client.Pool(num_workers=2, settings=settings) as p:
    root = p._root
    answers = p.evaluate(
      [_request(f"// {i}\n" + (BUSY if i % 2 else ENDLESS)) for i in range(50)]
    )
    assert {a.status for a in answers} == {Status.TIMEOUT}
    # Between jobs: the judges and their idle hosts, nothing else.
    names = [
      machine.read(f"/proc/{pid}/comm") for pid in machine.processes(root)
    ]
    kinds = {n.strip()[:6] for n in names}
    assert kinds <= {b"python", b"bwrap", b"ke_hos"}
  assert machine.processes(root) == set()
  assert _zombies() == []
  assert _belongings() == before


def _in_thread(pool, requests):
  answers = []
  thread = threading.Thread(
    target=lambda: answers.extend(pool.evaluate(requests))
  )
  thread.start()
  return thread, answers


def test_a_killed_judge_is_replaced_and_its_candidate_judged_again(pool):
  restarts = pool.num_restarts
  thread, answers = _in_thread(
    pool,
    [_request("// a\n" + BUSY), _request("// b\n" + BUSY)]
    + [_request(_unique(100 + i)) for i in range(4)],
  )
  assert machine.wait_for(lambda: all(w.job for w in pool._workers), 5)
  time.sleep(0.1)
  os.kill(pool._workers[0].process.pid, signal.SIGKILL)
  assert machine.wait_for(lambda: pool.num_restarts == restarts + 1, 1.0)
  thread.join(10)
  assert [a.status for a in answers] == [Status.TIMEOUT] * 2 + [
    Status.PASSED
  ] * 4


def test_a_killed_host_is_replaced(pool):
  root = pool._workers[0].root
  hosts = [
    pid
    for pid in machine.processes(root)
    if machine.read(f"/proc/{pid}/comm").strip() in (b"ke_host", b"bwrap")
  ]
  assert hosts
  for pid in hosts:
    os.kill(pid, signal.SIGKILL)
  answers = pool.evaluate([_request(_unique(200 + i)) for i in range(4)])
  assert [a.status for a in answers] == [Status.PASSED] * 4


def test_a_judge_that_dies_twice_is_an_infrastructure_error(pool):
  with client.Pool(num_workers=1, settings=QUICK) as p:
    thread, answers = _in_thread(p, [_request("// twice\n" + BUSY)])
    killed = []

    def has_next():  # not the one that is dead and is being replaced
      w = p._workers[0]
      return w.job is not None and w.process.pid not in killed

    for i in range(2):
      assert machine.wait_for(has_next, 5)
      killed.append(p._workers[0].process.pid)
      os.kill(killed[-1], signal.SIGKILL)
      assert machine.wait_for(lambda i=i: p.num_restarts == i + 1, 2)
    thread.join(5)
    assert [a.status for a in answers] == [Status.INFRASTRUCTURE_ERROR]
    assert not answers[0].counts
    # Not remembered: the same text gets its own verdict now.
    again = p.evaluate([_request("// twice\n" + BUSY)])
    assert again[0].status == Status.TIMEOUT


_CLIENT = """
import sys
from kernels_eval import client, temporary
from kernels_eval.settings import Settings
from kernels_eval.schema import Request
settings = Settings(run_cpu_s=60, run_wall_s=60, access_limit=10**12)
pool = client.Pool(num_workers=2, settings=settings)
print(pool._root, flush=True)
bomb = open(sys.argv[1]).read()
pool.evaluate([Request("", "vector_add", t) for t in (bomb, sys.argv[2])])
"""


def test_nothing_survives_a_killed_client(tmp_path):
  (tmp_path / "bomb.cu").write_text(COMPILE_BOMB)
  with subprocess.Popen(
    [sys.executable, "-c", _CLIENT, str(tmp_path / "bomb.cu"), BUSY],
    stdout=subprocess.PIPE,
    text=True,
    cwd=pathlib.Path(__file__).parents[2],
  ) as process:
    root = process.stdout.readline().strip()
    # Both jobs run: a compiler and a kernel besides judges and hosts.
    assert machine.wait_for(lambda: len(machine.processes(root)) >= 8, 5)
    process.kill()
  try:
    assert machine.wait_for(lambda: not machine.processes(root), 3), (
      machine.processes(root)
    )
    assert machine.wait_for(lambda: not list(pathlib.Path(root).iterdir()), 1)
  finally:
    pathlib.Path(root).rmdir()


def test_judges_are_of_the_same_package_as_their_client(tmp_path):
  """Whatever lies in the working folder."""
  decoy = tmp_path / "kernels_eval"
  decoy.mkdir()
  (decoy / "__init__.py").write_text("raise SystemExit('the decoy')")
  code = (
    "import sys; from kernels_eval import client; "
    "from kernels_eval.schema import Request\n"
    "with client.Pool(num_workers=1) as pool:\n"
    "  request = Request('', 'vector_add', sys.argv[1])\n"
    "  print(pool.evaluate([request])[0].status.value)"
  )
  done = subprocess.run(
    [sys.executable, "-P", "-c", code, GOOD],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=60,
    env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[2])},
  )
  assert done.stdout == "passed\n", done.stderr


def test_folders_of_killed_runs_are_removed_later(pool):
  done = subprocess.run(
    [sys.executable, "-c", "import os; print(os.getpid())"],
    capture_output=True,
    text=True,
    check=True,
  )
  stale = pathlib.Path(
    tempfile.mkdtemp(prefix=f"kernels_eval-{done.stdout.strip()}-")
  )
  (stale / "file").write_text("x")
  temporary.remove_stale()
  assert not stale.exists()
  assert pool._root.exists()


@pytest.mark.parametrize("count", [0, -1])
def test_a_pool_has_workers(count):
  with pytest.raises(ValueError, match=f"num_workers={count}; at least 1"):
    client.Pool(num_workers=count)


def test_a_judge_that_does_not_answer_is_killed_at_once(pool):
  """Not asked to end first, which would hold up the others."""
  restarts = pool.num_restarts
  thread, answers = _in_thread(pool, [_request("// stopped\n" + BUSY)])
  assert machine.wait_for(lambda: any(w.job for w in pool._workers), 5)
  worker = next(w for w in pool._workers if w.job)
  os.kill(worker.process.pid, signal.SIGSTOP)
  worker.deadline = time.monotonic()
  assert machine.wait_for(lambda: pool.num_restarts > restarts, 2.0)
  thread.join(10)
  assert [a.status for a in answers] == [Status.TIMEOUT]
