"""Limits of one evaluation on a GPU."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class CudaSettings:
  """Seconds and bytes, beside those that both executors share
  (`cpu/settings.py`): compilation has its limits there, and `run_cpu_s` is what
  the kernels of all cases may take of the GPU, in both patterns together."""

  # Beside that: loading, copies, another launcher's turn, and the second or two
  # that a GPU takes to say that a kernel has failed.
  load_wall_s: float = 3.0
  timing_wall_s: float = 60.0
  compile_memory_bytes: int = 8 * 2**30  # address space
  max_image_bytes: int = 256 * 2**20
