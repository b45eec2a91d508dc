"""Config files: running one, and saying where it fails."""

import difflib
import importlib.machinery
import importlib.util
import pathlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from ml_collections import config_dict


class UsageError(Exception):
  """The request is wrong; its text is the one line to print."""


class Occupied(UsageError):
  """Another process holds a folder: the same request may do later."""


TYPE_NAMES = {
  bool: "true or false",
  int: "a whole number",
  float: "a number",
  str: "a text",
  tuple: "a list such as (32, 128)",
}
"""What a value of each type is called in a message."""


def asks_for_help(argv: Sequence[str]) -> bool:
  """Whether a command line wants to know how it is written."""
  return bool({"--help", "-h", "-help", "--helpfull"} & set(argv[1:]))


def near(name: str, names: Iterable[str]) -> str:
  """`; did you mean ...?`, or nothing."""
  found = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
  return f"; did you mean {found[0]}?" if found else ""


def config_path(argv: Sequence[str]) -> str | None:
  """What --config names."""
  for i, argument in enumerate(argv):
    if argument in ("--config", "-config") and i + 1 < len(argv):
      return argv[i + 1]
    for prefix in ("--config=", "-config="):
      if argument.startswith(prefix):
        return argument[len(prefix) :]
  return None


def _flatten(config) -> dict[str, Any]:
  out = {}
  for key in config:
    value = config.get_ref(key).get()
    if isinstance(value, config_dict.ConfigDict):
      out |= {f"{key}.{k}": v for k, v in _flatten(value).items()}
    else:
      out[key] = value
  return out


def flat(config: config_dict.ConfigDict) -> dict[str, Any]:
  """Every setting by its dotted name, sorted."""
  return dict(sorted(_flatten(config).items()))


def load_file(path: str) -> config_dict.ConfigDict:
  """Runs a config file's `get_config`.

  Raises:
    UsageError: no such file, or it fails, with its line; or what it makes
      does not have the settings of base.py.
  """
  file = pathlib.Path(path)
  if not file.is_file():
    folder = file.parent if file.parent.is_dir() else pathlib.Path(".")
    names = [str(p) for p in sorted(folder.glob("*.py"))]
    raise UsageError(f"no config file {path}{near(path, names)}")
  name = "_experiment_config"
  spec = importlib.util.spec_from_file_location(
    name, file, loader=importlib.machinery.SourceFileLoader(name, str(file))
  )
  module = importlib.util.module_from_spec(spec)
  # The file may import its neighbours as `experiments.configs...`.
  root = str(pathlib.Path(__file__).parents[1])
  if root not in sys.path:
    sys.path.append(root)
  try:
    spec.loader.exec_module(module)
    if not hasattr(module, "get_config"):
      raise UsageError(f"{path}: defines no function get_config")
    config = module.get_config()
  except UsageError:
    raise
  except Exception as error:  # whatever the file does
    raise UsageError(_where_it_failed(path, error)) from None
  _check_is_like_base(path, config)
  return config


def _where_it_failed(path, error):
  """FILE:LINE: error of a config file, in one line."""
  lines = [
    frame.lineno
    for frame in traceback.extract_tb(error.__traceback__)
    if pathlib.Path(frame.filename) == pathlib.Path(path)
  ]
  line = lines[-1] if lines else None
  if isinstance(error, SyntaxError) and error.filename == str(
    pathlib.Path(path)
  ):
    line = error.lineno
  # ml_collections lists all other fields behind its message.
  text = str(error.args[0] if error.args else "").split("Other fields")[0]
  text = " ".join(text.split())
  kind = type(error).__name__
  return f"{path}{f':{line}' if line else ''}: {kind}{text and f': {text}'}"


def _check_is_like_base(path, config):
  """A config has the settings of base.py, and no others."""
  from experiments.configs import base

  hint = "; start from base.get_config() and change its settings"
  if not isinstance(config, config_dict.ConfigDict):
    raise UsageError(
      f"{path}: get_config() returns {type(config).__name__}, not a ConfigDict"
      + hint
    )
  known, got = flat(base.get_config()), flat(config)
  for key in sorted(set(got) - set(known)):
    raise UsageError(f"{path}: no setting config.{key}{near(key, known)}")
  for key in sorted(set(known) - set(got)):
    raise UsageError(f"{path}: config.{key} is missing{hint}")
  for key, value in known.items():
    if value is not None and not isinstance(got[key], type(value)):
      raise UsageError(
        f"{path}: config.{key}={got[key]!r}: expected "
        f"{TYPE_NAMES[type(value)]}, such as {value}"
      )
