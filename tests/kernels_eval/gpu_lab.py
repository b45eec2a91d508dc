"""A server of a GPU whose launchers are stand-ins without one
(`fake_launcher.py`); the server and its protocol are the real ones."""

import os
import pathlib
import socket
import subprocess
import sys
import threading

from kernels_eval.cuda import connection, jobs, server

FAKE = pathlib.Path(__file__).parent / "fake_launcher.py"


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
    if self._writing is None:  # it is closed already
      return
    os.close(self._writing)
    self._writing = None
    self._thread.join(20)
    assert not self._thread.is_alive()
    for process in self.processes:  # the server has reaped them
      process.wait(5)

  def lines(self):
    return [line.split() for line in self.journal.read_text().splitlines()]


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
