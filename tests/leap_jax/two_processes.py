"""Runs a program in two processes of one CPU device each."""

import os
import pathlib
import socket
import subprocess
import sys

_ROOT = pathlib.Path(__file__).parents[2]

_PREAMBLE = """
import sys
import jax, numpy as np
jax.config.update("jax_platforms", "cpu")
from leap_jax import hosts
me = int(sys.argv[1])
hosts.connect(f"127.0.0.1:{sys.argv[2]}", 2, me)
"""


def run(program: str, *arguments: str) -> None:
  """Fails unless both print "done" at the end.

  Args:
    program: Python; knows `jax`, `np`, `sys`, `hosts`, and as `me` which of the
      two it is.
    *arguments: sys.argv[3:].
  """
  with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
  env = {
    **os.environ,
    "PYTHONPATH": str(_ROOT),
    "XLA_FLAGS": "--xla_force_host_platform_device_count=1",
  }
  both = [
    subprocess.Popen(
      [
        sys.executable,
        "-c",
        _PREAMBLE + program,
        str(i),
        str(port),
        *arguments,
      ],
      env=env,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )
    for i in range(2)
  ]
  try:
    for process in both:
      out, err = process.communicate(timeout=120)
      assert out.strip().endswith("done"), err[-2000:]
  finally:
    for process in both:
      process.kill()
      process.communicate()
