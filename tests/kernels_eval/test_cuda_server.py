"""The server of a GPU: deadlines, replacement, quarantine.

The launchers are stand-ins without a GPU (`gpu_lab.py`); the server and
its protocol are the real ones.
"""

import contextlib
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import jobs, launcher_process, server
from kernels_eval.outcome import Stop
from kernels_eval.schema import Status
from tests.kernels_eval import machine
from tests.kernels_eval.gpu_lab import ask

ROOT = pathlib.Path(__file__).parents[2]


def ends_soon(pid):
  deadline = time.monotonic() + 5.0
  while pathlib.Path(f"/proc/{pid}").exists():
    if time.monotonic() > deadline:
      return False
    time.sleep(0.01)
  return True


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


def test_row_41_a_process_that_no_signal_ends(start, monkeypatch):
  """One that is stuck in the driver: the device gets no more work, and nobody
  waits for it."""
  monkeypatch.setattr(server, "_REAP_S", 0.5)
  lab = start()
  link = lab.connect()
  with monkeypatch.context() as patch:
    patch.setattr(launcher_process, "is_gone", lambda pid: False)
    with contextlib.suppress(HostError):
      ask(link, "hang", wall_s=0.2)
    assert machine.wait_for(lambda: lab.server.is_quarantined, 5)
    started = time.monotonic()
    for _ in range(3):
      with pytest.raises(HostError, match="GPU 0 is not usable.* does not end"):
        ask(link, "well")
    assert time.monotonic() - started < 1.0
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
