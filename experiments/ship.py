"""Puts a run's policy into the package: leap_jax/data/tiny, in half precision.

python -m experiments.ship WORKDIR
"""

import pathlib
import sys

import numpy as np

from leap_jax import policy_io

MAX_BYTES = 5 * 2**20


def main(argv: list[str]) -> int:
  """Copies and converts; refuses what is too large to ship."""
  if len(argv) != 2 or argv[1].startswith("-"):
    print(__doc__, file=sys.stderr)
    return 2
  try:
    config, params, tokenizer = policy_io.load(pathlib.Path(argv[1]) / "policy")
  except policy_io.PolicyError as error:
    print(f"experiments.ship: {error}", file=sys.stderr)
    return 2
  folder = policy_io.SHIPPED
  policy_io.save(folder, config, params, tokenizer, np.float16)
  size = sum(path.stat().st_size for path in folder.iterdir())
  print(f"{folder}: {size / 2**20:.2f} MiB")
  if size > MAX_BYTES:
    print(
      f"experiments.ship: more than {MAX_BYTES / 2**20:.0f} MiB; do not commit",
      file=sys.stderr,
    )
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
