"""Forks launchers from a process that has imported what they need and has never
touched the GPU: a new one costs a CUDA context and nothing else."""

import functools
import os
import pathlib
import signal
import sys
import traceback
from collections.abc import Callable

from kernels_eval.cuda import launcher

_SOCKET = 3
_MAX_DESCRIPTORS = 4096


def prepare(device: int, helpers: pathlib.Path) -> Callable[[int], int]:
  """What starts a launcher on a socket's descriptor and returns its process id.

  Args:
    device: index of the GPU.
    helpers: where the first launcher leaves its own compiled kernels for the
      next ones.
  """
  return functools.partial(_fork, device, helpers)


def _fork(device, helpers, descriptor):
  sys.stdout.flush()
  sys.stderr.flush()
  pid = os.fork()
  if pid:
    return pid
  status = 1
  try:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT):
      signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(descriptor, _SOCKET)
    os.closerange(_SOCKET + 1, _MAX_DESCRIPTORS)
    status = launcher.serve(_SOCKET, device, helpers)
  except BaseException:
    traceback.print_exc()
  finally:
    os._exit(status)
