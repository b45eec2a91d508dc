"""Folders of running pools in the system's temporary folder."""

import os
import pathlib
import shutil
import tempfile

PREFIX = "kernels_eval-"


def make_root() -> pathlib.Path:
  """A new folder whose name tells the process that it belongs to."""
  return pathlib.Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def remove_stale() -> None:
  """Removes what killed runs have left in the temporary folder."""
  for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}[0-9]*-*"):
    pid = folder.name[len(PREFIX) :].split("-")[0]
    try:
      if pid.isdigit() and folder.stat().st_uid == os.getuid():
        if not pathlib.Path(f"/proc/{pid}").exists():
          shutil.rmtree(folder, ignore_errors=True)
    except OSError:
      continue  # somebody else removed it
