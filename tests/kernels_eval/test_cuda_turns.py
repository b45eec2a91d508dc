"""Whose turn it is on a GPU: timing and judges alone, and the share of
neighbours. Launchers are stand-ins."""

import contextlib
import threading
import time
import types

import pytest

from kernels_eval import client
from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import connection, jobs, launcher_process, server
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.settings import Settings
from tests.kernels_eval import machine
from tests.kernels_eval.gpu_lab import ask, send


def timing_job():
  return jobs.Timing(
    subjects=(),
    image_bytes=0,
    inputs=(),
    keys=(),
    num_warm=0,
    checked=0,
    outputs=(),
    guards=(),
    wall_s=20.0,
  )


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


@pytest.fixture
def stuck(monkeypatch):
  """While it is set, no killed launcher is gone."""
  is_gone = launcher_process.is_gone
  stuck = threading.Event()
  stuck.set()
  monkeypatch.setattr(
    launcher_process,
    "is_gone",
    lambda pid: not stuck.is_set() and is_gone(pid),
  )
  yield stuck
  stuck.clear()


def test_nothing_runs_alone_beside_a_kernel_that_is_being_killed(start, stuck):
  lab = start()
  mine, other = lab.connect(), lab.connect()
  assert ask(other, "fail").outcome == jobs.Outcome.KERNEL_FAILED
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


def _ask_in_thread(link, what, wall_s):
  """(thread, list that gets the report, or the reason why there is none)."""
  answers = []

  def work():
    try:
      answers.append(ask(link, what, wall_s))
    except HostError as error:
      answers.append(str(error))

  task = threading.Thread(target=work)
  task.start()
  return task, answers


def test_a_late_job_is_judged_when_its_launcher_is_gone(start, stuck):
  lab = start()
  late, other = lab.connect(), lab.connect()
  task, answers = _ask_in_thread(late, "hang", 0.2)
  assert machine.wait_for(lambda: lab.server._dying, 5)
  for _ in range(3):  # others go on meanwhile
    assert ask(other, "well").outcome == jobs.Outcome.DONE
  time.sleep(0.2)
  assert answers == []
  stuck.clear()
  task.join(5)
  assert [a.outcome for a in answers] == [jobs.Outcome.TIMED_OUT]
  # A judge that has hung up meanwhile is no trouble.
  stuck.set()
  task, answers = _ask_in_thread(late, "hang", 0.2)
  assert machine.wait_for(lambda: lab.server._dying, 5)
  late.close()
  task.join(5)
  stuck.clear()
  assert machine.wait_for(lambda: not lab.server._dying, 5)
  assert ask(other, "well").outcome == jobs.Outcome.DONE
  assert not lab.server.is_quarantined
  other.close()


def test_no_kernel_is_blamed_for_a_driver_that_keeps_its_launcher(
  start, stuck, monkeypatch
):
  monkeypatch.setattr(server, "_REAP_S", 0.4)
  lab = start()
  links = [lab.connect() for _ in range(2)]
  asked = [_ask_in_thread(link, "hang", 0.2) for link in links]
  for task, answers in asked:
    task.join(10)
    assert len(answers) == 1 and "stuck in the driver" in answers[0]
  assert lab.server.is_quarantined
  stuck.clear()
  for link in links:
    link.close()


def test_a_server_ends_while_a_late_job_is_not_judged(start, stuck):
  lab = start()
  late = lab.connect()
  task, answers = _ask_in_thread(late, "hang", 0.2)
  assert machine.wait_for(lambda: lab.server._dying, 5)
  lab.close()
  task.join(5)
  assert len(answers) == 1 and "server of the GPU has ended" in answers[0]
  late.close()


def test_what_has_waited_for_one_judge_alone_goes_before_the_next(start):
  lab = start()
  holder, eager, other = (lab.connect() for _ in range(3))
  seen = []

  def take():
    with eager.alone():
      seen.extend(lab.lines())

  tasks = [
    threading.Thread(target=take),
    threading.Thread(target=ask, args=(other, "well")),
  ]
  with holder.alone():
    for task in tasks:  # the judge asks first
      task.start()
      time.sleep(0.1)
  for task in tasks:
    task.join(5)
  assert [line[0] for line in seen] == ["start", "end"]
  for link in (holder, eager, other):
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


def _at_once(lab, limits_s, *works):
  """(outcome, seconds) of jobs that begin one after the other."""
  links = [lab.connect() for _ in works]
  reports = [None] * len(works)

  def work(i):
    started = time.monotonic()
    report = ask(links[i], works[i], *limits_s)
    reports[i] = (report.outcome, time.monotonic() - started)

  tasks = [threading.Thread(target=work, args=(i,)) for i in range(len(works))]
  for task in tasks:
    task.start()
    time.sleep(0.05)
  for task in tasks:
    task.join(20)
  for link in links:
    link.close()
  return reports


def test_what_a_killed_neighbour_may_have_held_up_gets_more_time(
  start, monkeypatch
):
  monkeypatch.setattr(launcher_process, "_RELIEF_S", 0.3)
  # Both are beyond their limits when the first is killed.
  hang, other = _at_once(start(), (0.4, 0.2), "hang", "half a second")
  assert hang[0] == jobs.Outcome.TIMED_OUT
  assert other[0] == jobs.Outcome.DONE


def test_kernels_that_do_not_end_are_killed_one_after_the_other(
  start, monkeypatch
):
  monkeypatch.setattr(launcher_process, "_RELIEF_S", 0.3)
  first, second = _at_once(start(), (0.4, 0.2), "hang", "hang")
  assert first[0] == second[0] == jobs.Outcome.TIMED_OUT
  assert first[1] < 0.7 and second[1] - first[1] > 0.2


def test_a_kernel_that_does_not_end_is_killed_among_many_that_fail(
  start, monkeypatch
):
  monkeypatch.setattr(launcher_process, "_RELIEF_S", 0.5)
  monkeypatch.setattr(launcher_process, "_MAX_RELIEFS", 2)
  lab = start()
  links = [lab.connect() for _ in range(2)]
  outcomes = []
  task = threading.Thread(
    target=lambda: outcomes.append(ask(links[0], "hang", 0.3, 0.1).outcome)
  )
  task.start()
  started = time.monotonic()
  while not outcomes and time.monotonic() - started < 15:
    assert ask(links[1], "fail").outcome == jobs.Outcome.KERNEL_FAILED
  assert outcomes == [jobs.Outcome.TIMED_OUT]
  task.join(5)
  for link in links:
    link.close()


def test_a_late_answer_is_nobody_else_s(start, monkeypatch):
  lab = start()
  holder, waiting = lab.connect(), lab.connect()
  monkeypatch.setattr(connection, "_ALONE_QUEUE_S", 0.1)
  with holder.alone(), pytest.raises(HostError, match="does not answer"):
    with waiting.alone():
      pass
  with pytest.raises(HostError, match="has ended"):
    ask(waiting, "well")
  holder.close()


def test_a_pool_of_more_judges_waits_longer_for_each():
  def allowed_s(num_workers):
    pool = client.Pool.__new__(client.Pool)
    pool._settings = Settings()
    pool._gpus = types.SimpleNamespace(devices=[0])
    pool._workers = [None] * num_workers
    return pool.seconds_allowed

  timing_s = CudaSettings().timing_wall_s
  assert allowed_s(32) - allowed_s(2) >= 30 * timing_s
