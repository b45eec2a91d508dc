"""Puts a run's policy into the package: leap_jax/data/tiny, in half precision.

python -m experiments.ship WORKDIR
"""

import os
import pathlib
import sys
import tempfile

import numpy as np

from experiments.config_file import asks_for_help
from leap_jax import policy_io

MAX_BYTES = 5 * 2**20


def main(argv: list[str]) -> int:
  """Copies and converts; refuses what is too large to ship.

  The policy that has been shipped so far stays until the new one is whole.
  """
  if asks_for_help(argv):
    print(__doc__)
    return 0
  if len(argv) != 2 or argv[1].startswith("-"):
    print(__doc__, file=sys.stderr)
    return 2
  try:
    config, params, tokenizer = policy_io.load(pathlib.Path(argv[1]) / "policy")
    return _ship(policy_io.SHIPPED, config, params, tokenizer)
  except policy_io.PolicyError as error:
    print(f"experiments.ship: {error}", file=sys.stderr)
    return 2
  except OSError as error:
    where = f" ({error.filename})" if error.filename else ""
    print(
      f"experiments.ship: {error.strerror or error}{where}; nothing shipped",
      file=sys.stderr,
    )
    return 1


def _ship(folder, config, params, tokenizer):
  folder.mkdir(parents=True, exist_ok=True)
  # In the same file system, so that files can be moved into place.
  with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
    made = pathlib.Path(temporary)
    policy_io.save(made, config, params, tokenizer, np.float16)
    size = sum(path.stat().st_size for path in made.iterdir())
    if size > MAX_BYTES:
      print(
        f"experiments.ship: {size / 2**20:.2f} MiB; at most "
        f"{MAX_BYTES / 2**20:.0f} can be shipped",
        file=sys.stderr,
      )
      return 1
    for path in made.iterdir():
      os.replace(path, folder / path.name)
  print(f"{folder}: {size / 2**20:.2f} MiB")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
