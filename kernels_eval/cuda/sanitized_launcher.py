"""A launcher as a program of its own, for compute-sanitizer to start.

python -m kernels_eval.cuda.sanitized_launcher SOCKET DEVICE HELPERS
"""

import pathlib
import sys

from kernels_eval.cuda import launcher


def main(argv: list[str]) -> int:
  """Serves until the socket closes; arguments as of `launcher.serve`."""
  descriptor, device, helpers = argv
  return launcher.serve(int(descriptor), int(device), pathlib.Path(helpers))


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
