"""Memory in use on each GPU, where nvidia-ml-py and a driver are there."""


def used_bytes() -> tuple[int, ...] | None:
  """Bytes in use by anybody, for each GPU; None where that cannot be seen."""
  try:
    import pynvml
  except ImportError:
    return None
  try:
    pynvml.nvmlInit()
  except pynvml.NVMLError:
    return None
  try:
    return tuple(
      int(
        pynvml.nvmlDeviceGetMemoryInfo(
          pynvml.nvmlDeviceGetHandleByIndex(i)
        ).used
      )
      for i in range(pynvml.nvmlDeviceGetCount())
    )
  except pynvml.NVMLError:
    return None
  finally:
    pynvml.nvmlShutdown()
