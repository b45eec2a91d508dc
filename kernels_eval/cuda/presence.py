"""Whether this machine has a GPU that kernels can be judged on."""

import pathlib

from kernels_eval.cuda import toolkit


def has_device() -> bool:
  """Whether an NVIDIA driver shows a device. Starts nothing."""
  return any(pathlib.Path("/dev").glob("nvidia[0-9]*"))


def obstacle() -> str | None:
  """Why candidates cannot run on a GPU here, in one line, or None."""
  if not has_device():
    return "this machine shows no NVIDIA GPU (/dev/nvidia*)"
  missing = toolkit.find_missing()
  if missing is not None:
    return (
      f"no Python module {missing}: pip install 'leap-jax[cuda13]' (or cuda12)"
    )
  return None
