"""Files that are whole or not there."""

import os
import pathlib
from collections.abc import Callable, Mapping


def write_whole(
  folder: pathlib.Path,
  contents: Mapping[str, bytes | Callable[[pathlib.Path], None]],
) -> None:
  """Writes files of a folder, each of which is the old or the new one at any
  time, and whole.

  All of them are written beside their places first and then moved, so that a
  full disk, an error or a kill while they are written changes none of them.
  Only the moves come one after another: a kill in these microseconds leaves new
  files beside old ones. (Of a run's own policy that is harmless: all but the
  weights are the same in every save.) Nothing is promised about a loss of
  power. Whatever is raised, no temporary file stays; those of a killed process
  are written over by the next save.

  Args:
    folder: exists.
    contents: by file name, in the order of the moves: bytes, or what writes the
      file that it is told.

  Raises:
    OSError: while writing, and nothing has been replaced; or a name cannot be
      replaced (it is a folder, say), and those before it have been.
  """
  temporary = {name: folder / f".{name}.tmp" for name in contents}
  try:
    for name, content in contents.items():
      if callable(content):
        content(temporary[name])
      else:
        temporary[name].write_bytes(content)
    for name, path in temporary.items():
      os.replace(path, folder / name)
  finally:
    for path in temporary.values():
      path.unlink(missing_ok=True)
