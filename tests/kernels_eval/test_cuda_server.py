"""The server of a GPU: deadlines, replacement, quarantine, timing alone.

The launchers are stand-ins without a GPU (`fake_launcher.py`); the server and
its protocol are the real ones.
"""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest

from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import connection, jobs, launcher_process, server
from kernels_eval.outcome import Stop
from kernels_eval.schema import Status
from tests.kernels_eval import machine

FAKE = pathlib.Path(__file__).parent / "fake_launcher.py"
ROOT = pathlib.Path(__file__).parents[2]


class Lab:
  """A server in a thread of this process, and its launchers' journal."""

  def __init__(self, folder, *options):
    self.socket = folder / "gpu"
    self.journal = folder / "journal"
    self.journal.touch()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(self.socket))
    listener.listen(8)
    command = [sys.executable, str(FAKE), "--journal", str(self.journal)]
    self.processes = []

    def spawn(descriptor):
      process = subprocess.Popen(
        [*command, *options, "--socket", str(descriptor)],
        pass_fds=[descriptor],
        start_new_session=True,
      )
      self.processes.append(process)
      return process.pid

    self.server = server.Server(0, spawn, listener)
    reading, self._writing = os.pipe()
    self._thread = threading.Thread(target=self.server.serve, args=(reading,))
    self._thread.start()

  def connect(self):
    return connection.Connection(self.socket)

  def close(self):
    os.close(self._writing)
    self._thread.join(20)
    assert not self._thread.is_alive()
    for process in self.processes:  # the server has reaped them
      process.wait(5)

  def lines(self):
    return [line.split() for line in self.journal.read_text().splitlines()]


@pytest.fixture
def start(tmp_path, monkeypatch):
  monkeypatch.setenv("PYTHONPATH", str(ROOT))
  labs = []

  def make(*options):
    labs.append(Lab(tmp_path, *options))
    return labs[-1]

  yield make
  for lab in labs:
    lab.close()


def ask(link, what, wall_s=20.0, gpu_s=0.0):
  launch = jobs.Launch(0, what, (1, 1, 1), (1, 1, 1), 0, ())
  job = jobs.Run(0, (0,), 0, ((launch,),), wall_s, gpu_s)
  return send(link, job)


def send(link, job):
  descriptor = connection.make_mapping([b"x"], 16)
  try:
    return link.ask(job, descriptor)
  finally:
    os.close(descriptor)


def ends_soon(pid):
  deadline = time.monotonic() + 5.0
  while pathlib.Path(f"/proc/{pid}").exists():
    if time.monotonic() > deadline:
      return False
    time.sleep(0.01)
  return True


def timing_job():
  return jobs.Timing((), 0, (), (), 0, 0, (), 20.0)


def test_a_job_comes_back_with_its_report(start):
  link = start().connect()
  assert link.hello.device == "stand-in"
  assert ask(link, "well").outcome == jobs.Outcome.DONE
  link.close()


def test_a_job_that_does_not_end_is_killed_at_its_deadline(start):
  lab = start()
  link = lab.connect()
  started = time.monotonic()
  report = ask(link, "hang", wall_s=0.5)
  assert report.outcome == jobs.Outcome.TIMED_OUT
  assert time.monotonic() - started < 3.0
  (line,) = lab.lines()
  assert ends_soon(line[2])
  # The next one finds a launcher at once: the spare.
  started = time.monotonic()
  assert ask(link, "well").outcome == jobs.Outcome.DONE
  assert time.monotonic() - started < 1.0
  link.close()


def test_a_spoilt_launcher_serves_no_second_job(start):
  lab = start()
  link = lab.connect()
  for _ in range(6):  # a candidate's faults are no failures of the machine
    assert ask(link, "fail").outcome == jobs.Outcome.KERNEL_FAILED
  assert ask(link, "well").outcome == jobs.Outcome.DONE
  processes = [line[2] for line in lab.lines() if line[0] == "start"]
  assert len(set(processes)) == 7
  assert not lab.server.is_quarantined
  link.close()


def test_a_launcher_that_dies_is_nobodys_verdict(start):
  link = start().connect()
  with pytest.raises(HostError, match="the launcher process ended"):
    ask(link, "die")
  assert ask(link, "well").outcome == jobs.Outcome.DONE
  link.close()


@pytest.mark.parametrize(
  ("what", "times"),
  [("die", server.MAX_FAILURES), ("broken", server.MAX_FAILED_JOBS)],
)
def test_a_device_that_fails_again_and_again_is_quarantined(start, what, times):
  lab = start()
  link = lab.connect()
  for _ in range(times):
    assert not lab.server.is_quarantined
    with pytest.raises(HostError):
      ask(link, what)
  with pytest.raises(HostError, match="GPU 0 is not usable"):
    ask(link, "well")
  assert lab.server.is_quarantined
  with pytest.raises(HostError, match="GPU 0 is not usable"):
    lab.connect()
  link.close()


def test_the_clock_blames_no_job_for_its_neighbour(start):
  lab = start()
  links = [lab.connect() for _ in range(2)]
  reports = {}

  def work(link, what):
    started = time.monotonic()
    report = ask(link, what, wall_s=0.4, gpu_s=0.4)
    reports[what] = (report.outcome, time.monotonic() - started)

  tasks = [
    threading.Thread(target=work, args=(link, what))
    for link, what in zip(links, ("hang", "half a second"), strict=True)
  ]
  for task in tasks:
    task.start()
  for task in tasks:
    task.join(10)
  # Half a second beside another is a quarter of a second of the GPU.
  assert reports["half a second"][0] == jobs.Outcome.DONE
  # 0.25 s of the GPU in the first half second, and 0.15 s alone.
  outcome, spent_s = reports["hang"]
  assert outcome == jobs.Outcome.TIMED_OUT
  assert 0.6 < spent_s < 1.5
  # Alone it has what its deadline says.
  outcome = ask(links[0], "half a second", wall_s=0.3, gpu_s=0.3).outcome
  assert outcome == jobs.Outcome.TIMED_OUT
  for link in links:
    link.close()


def test_a_device_without_memory_says_so_at_the_start(start):
  lab = start("--start", "badly")
  with pytest.raises(HostError, match="no memory on the device"):
    lab.connect()
  # No launcher is left: the server waits for its end, it does not spin.
  time.sleep(0.3)  # until those that it has killed are gone
  before = time.process_time()
  time.sleep(0.5)
  assert time.process_time() - before < 0.2


def test_a_timing_job_runs_alone(start):
  lab = start()
  links = [lab.connect() for _ in range(4)]
  tasks = [
    threading.Thread(target=ask, args=(links[0], "sleep")),
    threading.Thread(target=send, args=(links[1], timing_job())),
    threading.Thread(target=ask, args=(links[2], "sleep")),
    threading.Thread(target=send, args=(links[3], timing_job())),
  ]
  for task in tasks:
    task.start()
    time.sleep(0.05)
  for task in tasks:
    task.join()
  spans = {}
  for what, kind, process, moment in lab.lines():
    spans.setdefault((kind, process, what), []).append(float(moment))
  runs = [
    (kind, start, end)
    for (kind, process, what), moments in spans.items()
    if what == "start"
    for start, end in zip(moments, spans[kind, process, "end"], strict=True)
  ]
  assert len(runs) == 4
  for kind, start_s, end_s in runs:
    if kind == "timing":
      others = [r for r in runs if r != (kind, start_s, end_s)]
      assert all(e <= start_s or s >= end_s for _, s, e in others)
  for link in links:
    link.close()


def test_a_judge_alone_with_the_gpu_holds_up_the_others(start):
  lab = start()
  mine, other = lab.connect(), lab.connect()
  task = threading.Thread(target=ask, args=(other, "well"))
  with mine.alone():
    task.start()
    time.sleep(0.2)
    assert lab.lines() == []
  task.join(5)
  assert len(lab.lines()) == 2
  # It waits itself until those that are at work have ended.
  task = threading.Thread(target=ask, args=(other, "sleep"))
  task.start()
  assert machine.wait_for(lambda: len(lab.lines()) == 3, 5)
  with mine.alone():
    assert len(lab.lines()) == 4
  task.join(5)
  # One that ends without a word gives the GPU back.
  holder = lab.connect()
  with contextlib.suppress(HostError), holder.alone():
    holder.close()
  assert ask(other, "well").outcome == jobs.Outcome.DONE
  for link in (mine, other):
    link.close()


def test_nothing_runs_alone_beside_a_kernel_that_is_being_killed(
  start, monkeypatch
):
  is_gone = launcher_process.is_gone
  stuck = threading.Event()
  stuck.set()
  monkeypatch.setattr(
    launcher_process,
    "is_gone",
    lambda pid: not stuck.is_set() and is_gone(pid),
  )
  lab = start()
  mine, other = lab.connect(), lab.connect()
  assert ask(other, "hang", wall_s=0.2).outcome == jobs.Outcome.TIMED_OUT
  given = threading.Event()

  def take():
    with mine.alone():
      given.set()

  task = threading.Thread(target=take)
  task.start()
  assert not given.wait(0.7)
  stuck.clear()
  assert given.wait(5)
  task.join(5)
  for link in (mine, other):
    link.close()


def test_a_plan_that_is_too_long_is_the_candidates_fault(start):
  lab = start()
  link = lab.connect()
  with pytest.raises(Stop) as stop:
    ask(link, "k" * jobs.MAX_MESSAGE_BYTES)
  assert stop.value.status == Status.CONTRACT_VIOLATION
  assert ask(link, "well").outcome == jobs.Outcome.DONE
  # One that was cut on the way ends that connection, not the server.
  rude = lab.connect()
  rude._socket.send(b"\x93" + b"x" * 1000)
  assert rude._socket.recv(10) == b""
  assert ask(link, "well").outcome == jobs.Outcome.DONE
  for one in (link, rude):
    one.close()


def test_a_late_answer_is_nobody_else_s(start, monkeypatch):
  lab = start()
  holder, waiting = lab.connect(), lab.connect()
  monkeypatch.setattr(connection, "_QUEUE_S", 0.1)
  with holder.alone(), pytest.raises(HostError, match="does not answer"):
    with waiting.alone():
      pass
  with pytest.raises(HostError, match="has ended"):
    ask(waiting, "well")
  holder.close()


def test_a_judge_that_hangs_up_takes_its_waiting_job_along(start):
  lab = start()
  busy = [lab.connect() for _ in range(server.MIN_LAUNCHERS)]
  tasks = [threading.Thread(target=ask, args=(b, "sleep")) for b in busy]
  for task in tasks:
    task.start()
  time.sleep(0.1)
  gone = lab.connect()
  threading.Thread(target=_ask_and_be_gone, args=(gone,)).start()
  time.sleep(0.05)
  gone.close()
  for task in tasks:
    task.join()
  time.sleep(0.2)
  assert len([x for x in lab.lines() if x[0] == "start"]) == len(busy)
  for link in busy:
    link.close()


def _ask_and_be_gone(link):
  with pytest.raises(HostError):
    ask(link, "well")


def test_the_end_of_the_pool_ends_server_and_launchers(tmp_path):
  code = (
    "import pathlib, sys, time\n"
    "from kernels_eval.cuda import server_process\n"
    "p = server_process.ServerProcess(pathlib.Path(sys.argv[1]), 0)\n"
    "print(p._process.pid, flush=True)\n"
    "time.sleep(60)\n"
  )
  parent = subprocess.Popen(
    [sys.executable, "-c", code, str(tmp_path)],
    stdout=subprocess.PIPE,
    text=True,
    cwd=ROOT,
  )
  pid = int(parent.stdout.readline())
  assert pathlib.Path(f"/proc/{pid}").exists()
  parent.kill()
  parent.wait()
  parent.stdout.close()
  deadline = time.monotonic() + 20
  while pathlib.Path(f"/proc/{pid}/exe").exists():
    state = pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()
    if state[0] == "Z":  # nobody reaps it here
      break
    assert time.monotonic() < deadline
    time.sleep(0.05)
