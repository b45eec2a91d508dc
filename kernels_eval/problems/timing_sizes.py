"""Sizes at which a problem is timed on a GPU, and the least work there is.

Large enough for work and memory to outweigh a launch; the cases of correctness
are small on purpose. Not all inputs are larger than a cache, and they need not
be: before each timed call the caches are filled with something else
(`cuda/launcher.py`), so that every byte comes from memory.
"""

from kernels_eval import dtypes
from kernels_eval.problems.spec import Problem

_ROWS = {"rows": 4096, "cols": 4096}
_MATMUL = {"m": 1024, "n": 1024, "k": 1024}
_PLANES = {"planes": 64, "height": 512, "width": 512}
_BY_DIMS = {
  ("n",): {"n": 2**24},
  ("rows", "cols"): _ROWS,
  ("m", "n", "k"): _MATMUL,
  ("batch", "m", "n", "k"): {"batch": 16, "m": 256, "n": 256, "k": 256},
  ("planes", "height", "width"): _PLANES,
  ("queries", "keys", "dim"): {"queries": 1024, "keys": 1024, "dim": 64},
  ("n", "dim"): {"n": 1024, "dim": 64},
  ("n", "taps"): {"n": 2**22, "taps": 33},
  ("filters", "channels", "height", "width"): {
    "filters": 32,
    "channels": 16,
    "height": 256,
    "width": 256,
  },
  ("rows", "classes"): {"rows": 4096, "classes": 8192},
  ("bags", "length", "entries", "cols"): {
    "bags": 8192,
    "length": 16,
    "entries": 65536,
    "cols": 256,
  },
  ("n", "entries", "cols"): {"n": 65536, "entries": 65536, "cols": 256},
  ("n", "bins"): {"n": 2**20, "bins": 256},
  ("steps", "channels"): {"steps": 512, "channels": 16384},
  ("m", "n"): {"m": 4096, "n": 4096},
  ("tokens", "pairs"): {"tokens": 16384, "pairs": 512},
  ("n", "bins", "cols"): {"n": 8192, "bins": 1024, "cols": 512},
  ("rows", "inner", "hidden"): {"rows": 1024, "inner": 512, "hidden": 1024},
}
# Their canonical solution is one block.
_ONE_BLOCK = ("count_above", "dot_product", "mse_loss", "exclusive_scan")
_BY_NAME = {
  **dict.fromkeys(_ONE_BLOCK, {"n": 2**20}),
  "gram": {"rows": 2048, "cols": 512},
}
# Inputs of which a kernel may leave parts unread.
_PARTLY_READ = {
  "gather_rows": ("table",),
  "embedding_bag_mean": ("table",),
  "select": ("x", "y"),
}


def dims_for(problem: Problem) -> dict[str, int]:
  """Dimensions of the timed case.

  Raises:
    KeyError: the dimensions of the problem are not in the tables here.
  """
  return _BY_NAME.get(problem.name) or _BY_DIMS[problem.dims]


def least_read_bytes(problem: Problem, dims: dict[str, int]) -> int:
  """Bytes of input that no correct kernel can do without. Outputs do not count:
  they may still be in the cache when the kernel ends, to be written behind the
  second event."""
  total = 0
  for tensor in problem.inputs:
    if tensor.name in _PARTLY_READ.get(problem.name, ()):
      continue
    size = dtypes.DTYPES[tensor.dtype].item_bytes
    for n in tensor.shape_for(dims):
      size *= n
    total += size
  return total
