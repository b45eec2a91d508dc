"""Limits of one evaluation on a GPU."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class CudaSettings:
  """Seconds and bytes; compilation has the limits of the CPU executor."""

  run_wall_s: float = 10.0  # all cases, both patterns
  timing_wall_s: float = 60.0
  compile_memory_bytes: int = 8 * 2**30  # address space
  max_image_bytes: int = 256 * 2**20
