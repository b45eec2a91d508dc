"""A launcher as a program of its own, for compute-sanitizer to start.

python -m kernels_eval.cuda.sanitized_launcher SOCKET DEVICE HELPERS
"""

import os
import pathlib
import select
import signal
import sys
import threading

from kernels_eval.cuda import launcher


def _end_with_judge(descriptor):
  """Kills the tool and all that it has started when the judge is gone. Where
  the judge has got its answer it shuts the socket down and still holds it."""
  poll = select.poll()
  poll.register(descriptor, 0)  # nothing but a hang-up
  poll.poll()
  os.killpg(0, signal.SIGKILL)


def main(argv: list[str]) -> int:
  """Serves until the socket is shut down; arguments as of `launcher.serve`.
  The process group is the tool's, which the judge has made for it."""
  descriptor, device, helpers = argv
  # The kernel's call for this process's parent would not do: that is the tool,
  # which does not end with the judge. A kernel that never ends keeps the main
  # thread in the driver, which lets other threads run meanwhile.
  threading.Thread(
    target=_end_with_judge, args=(os.dup(int(descriptor)),), daemon=True
  ).start()
  return launcher.serve(int(descriptor), int(device), pathlib.Path(helpers))


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
