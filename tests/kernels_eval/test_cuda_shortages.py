"""A server of a GPU on a machine that is short of something. Launchers are
stand-ins."""

import contextlib
import errno
import os
import pathlib
import resource
import socket
import threading
import time

import pytest

from kernels_eval.cpu.host import HostError
from kernels_eval.cuda import connection, jobs, server
from tests.kernels_eval.gpu_lab import ask


def test_a_machine_short_of_processes_is_asked_again(start):
  lab = start()
  link = lab.connect()
  spawn, lab.server._spawn = lab.server._spawn, _raise_short
  for _ in range(server.MIN_LAUNCHERS):
    assert ask(link, "fail").outcome == jobs.Outcome.KERNEL_FAILED
  done = []
  task = threading.Thread(target=lambda: done.append(ask(link, "well")))
  task.start()
  time.sleep(0.2)
  assert done == []  # nobody is there to do it
  lab.server._spawn = spawn
  task.join(5)
  assert done[0].outcome == jobs.Outcome.DONE
  assert not lab.server.is_quarantined
  link.close()


def test_a_machine_short_of_processes_for_long_says_so(start, monkeypatch):
  lab = start()
  link = lab.connect()
  monkeypatch.setattr(server, "START_S", 0.5)
  lab.server._spawn = _raise_short
  started = time.monotonic()
  for _ in range(server.MIN_LAUNCHERS):
    assert ask(link, "fail").outcome == jobs.Outcome.KERNEL_FAILED
  with pytest.raises(HostError, match="no launcher can be started"):
    ask(link, "well")
  assert time.monotonic() - started > 0.5
  link.close()


def _raise_short(descriptor):
  raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def test_a_server_short_of_descriptors_goes_on(start):
  lab = start()
  link = lab.connect()
  limits = resource.getrlimit(resource.RLIMIT_NOFILE)
  few = 1 + max(int(p.name) for p in pathlib.Path("/proc/self/fd").iterdir())
  held = []
  late = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  mapping = connection.make_mapping([b"x"], 16)
  launch = jobs.Launch(0, "well", (1, 1, 1), (1, 1, 1), 0, ())
  job = jobs.Run(0, (0,), 0, ((launch,),), 20.0, 0.0)
  try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (few + 2, limits[1]))
    with contextlib.suppress(OSError):
      while True:
        held.append(os.dup(mapping))
    late.connect(str(lab.socket))
    with pytest.raises(HostError, match="too many open files"):
      link.ask(job, mapping)
  finally:
    for descriptor in held:
      os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
  late.settimeout(5)
  assert late.recv(jobs.MAX_MESSAGE_BYTES)  # it is greeted
  assert link.ask(job, mapping).outcome == jobs.Outcome.DONE
  os.close(mapping)
  for one in (link, late):
    one.close()
