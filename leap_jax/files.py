"""Files that are whole or not there."""

import os
import pathlib
from collections.abc import Mapping


def write_whole(folder: pathlib.Path, contents: Mapping[str, bytes]) -> None:
  """Writes files of a folder; whoever is killed meanwhile leaves the old ones.

  All of them are written beside their places first and then moved, so that a
  full disk changes none of them.

  Args:
    folder: exists.
    contents: bytes by file name.

  Raises:
    OSError: nothing has been replaced.
  """
  temporary = {name: folder / f".{name}.tmp" for name in contents}
  try:
    for name, raw in contents.items():
      temporary[name].write_bytes(raw)
  except OSError:
    for path in temporary.values():
      path.unlink(missing_ok=True)
    raise
  for name, path in temporary.items():
    os.replace(path, folder / name)
