"""Several processes of one run end together.

A process that fails leaves the others waiting: in an exchange, or at the end
behind the barrier of `jax.distributed`, which gives up after minutes with a
trace of C++. So it writes why into the key-value store of `jax.distributed`
and ends without that barrier. Each of the others looks there twice a second
and ends with the same words and exit status, whatever it is doing. The first
process, which holds the store, goes last.

A process that is killed writes nothing: the others find it gone at their next
exchange (`lost`), and without the first one JAX ends them with a trace.
"""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

import jax

# JAX has no public way to its key-value store (0.10, 0.11).
from jax._src import distributed

from leap_jax import hosts

_KEY = "leap/failed"
_LOOK_EVERY_S = 0.5
_FIRST_GOES_AFTER_S = 2.0  # the others have looked by then

# How libraries say that they have lost another process.
_SIGNS = ("Gloo", "NCCL", "Connection closed by peer", "Connection reset by")


@contextlib.contextmanager
def ending_together(say: Callable[[str], None]) -> Iterator[None]:
  """Ends this process when another one fails; waits for all at a good end.

  What is in here may raise; call `leave` with it afterwards. After
  `hosts.connect`.

  Args:
    say: told why another process failed, just before this one ends.
  """
  is_over = threading.Event()

  def watch():
    while not is_over.wait(_LOOK_EVERY_S):
      _leave_if_told(say)

  thread = threading.Thread(target=watch, daemon=True)
  thread.start()
  try:
    yield
    hosts.wait_for_all()  # one that fails late still tells the others
  except BaseException:
    is_over.set()
    thread.join()  # one of the two says the line
    # The error may be no more than that another process is gone.
    _leave_if_told(say)
    raise
  is_over.set()
  thread.join()


def leave(status: int, line: str) -> NoReturn:
  """Ends this process at once, and with it all others.

  Args:
    status: exit status, not 0.
    line: why; has been said here.
  """
  state = distributed.global_state
  if state.client is not None:
    # Two may fail at once, and the store may be gone.
    with contextlib.suppress(jax.errors.JaxRuntimeError):
      state.client.key_value_set(
        _KEY, json.dumps([state.process_id, status, line])
      )
    if state.process_id == 0:
      time.sleep(_FIRST_GOES_AFTER_S)
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(status)


def _leave_if_told(say):
  try:
    told = distributed.global_state.client.key_value_try_get(_KEY)
  except jax.errors.JaxRuntimeError:  # nothing there
    return
  process, status, line = json.loads(told)
  say(f"process {process}: {line}")
  leave(status, line)


def lost(error: BaseException) -> str | None:
  """One line if an exchange failed because another process is gone, or None."""
  text = str(error)
  if jax.process_count() == 1 or not any(sign in text for sign in _SIGNS):
    return None
  return f"another process of this run is gone ({text.splitlines()[0][:200]})"
