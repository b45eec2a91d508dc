"""Where the harness keeps what outlives a process."""

import os
import pathlib


def path() -> pathlib.Path:
  """The user's cache folder for the harness, which need not exist."""
  base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  return pathlib.Path(base) / "kernels_eval"
