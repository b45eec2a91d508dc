"""Files that are whole or not there."""

import os
import pathlib
from collections.abc import Callable, Mapping


def write_whole(
  folder: pathlib.Path,
  contents: Mapping[str, bytes | Callable[[pathlib.Path], None]],
) -> None:
  """Writes files of a folder; whoever is killed meanwhile leaves the old ones.

  All of them are written beside their places first and then moved, so that a
  full disk changes none of them.

  Args:
    folder: exists.
    contents: by file name: bytes, or what writes the file that it is told.

  Raises:
    OSError: nothing has been replaced.
  """
  temporary = {name: folder / f".{name}.tmp" for name in contents}
  try:
    for name, content in contents.items():
      if callable(content):
        content(temporary[name])
      else:
        temporary[name].write_bytes(content)
  except OSError:
    for path in temporary.values():
      path.unlink(missing_ok=True)
    raise
  for name, path in temporary.items():
    os.replace(path, folder / name)
