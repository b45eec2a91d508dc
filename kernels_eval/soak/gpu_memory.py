"""Memory in use on each GPU, where nvidia-ml-py and a driver are there."""


def used_bytes() -> tuple[int, ...] | None:
  """Bytes in use by anybody, for each GPU that CUDA shows this process; None
  where that cannot be seen."""
  try:
    from kernels_eval.cuda import state
  except ImportError:
    return None
  return state.used_bytes()
