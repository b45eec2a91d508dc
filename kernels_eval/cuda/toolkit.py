"""Where NVRTC, nvJitLink and the CUDA headers lie."""

import dataclasses
import importlib.util
import pathlib

INCLUDE = pathlib.Path(__file__).parent / "include"


class ToolkitError(Exception):
  """The machine cannot compile for a GPU; one line says why."""


@dataclasses.dataclass(frozen=True)
class Toolkit:
  """`include` holds the folders that are searched for headers; `nvjitlink`,
  which only Numba candidates need, is None where there is none."""

  nvrtc: pathlib.Path
  version: str
  include: tuple[pathlib.Path, ...]
  nvjitlink: pathlib.Path | None


def find_missing() -> str | None:
  """The Python package that the GPU executor lacks, or None."""
  for module in ("cuda.bindings.nvrtc", "cuda.pathfinder", "pynvml"):
    try:
      found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
      found = None
    if found is None:
      return module
  return None


def find() -> Toolkit:
  """Raises ToolkitError with what to install."""
  missing = find_missing()
  if missing is not None:
    raise ToolkitError(
      f"no Python module {missing}: pip install 'leap-jax[cuda13]' (or cuda12)"
    )
  from cuda import pathfinder
  from cuda.bindings import nvrtc

  try:
    library = pathfinder.load_nvidia_dynamic_lib("nvrtc")
  except (RuntimeError, OSError) as error:
    reason = str(error).splitlines()[0]
    raise ToolkitError(f"NVRTC cannot be loaded: {reason}") from None
  status, major, minor = nvrtc.nvrtcVersion()
  if int(status):
    raise ToolkitError(f"NVRTC does not work: {status.name}")
  path = pathlib.Path(library.abs_path).resolve()
  # NVRTC brings the headers of half precision and tensor cores; cooperative
  # groups and CUB need the toolkit's.
  found = [
    pathfinder.find_nvidia_header_directory(n) for n in ("cudart", "cccl")
  ]
  folders = [pathlib.Path(f).resolve() for f in found if f]
  folders += [f / "cccl" for f in folders if (f / "cccl").is_dir()]
  include = tuple(dict.fromkeys((INCLUDE, *folders)))
  return Toolkit(path, f"{major}.{minor}", include, _find_nvjitlink())


def _find_nvjitlink():
  from cuda import pathfinder

  try:
    library = pathfinder.load_nvidia_dynamic_lib("nvJitLink")
  except (RuntimeError, OSError):
    return None
  return pathlib.Path(library.abs_path).resolve()
