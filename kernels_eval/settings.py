"""Limits of one evaluation; those of a GPU alone: `cuda/settings.py`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
  """Seconds of wall and processor time, bytes, and counts."""

  compile_wall_s: float = 30.0
  compile_cpu_s: float = 20.0
  compile_memory_bytes: int = 2 * 2**30
  compile_file_bytes: int = 64 * 2**20
  run_wall_s: float = 20.0
  run_cpu_s: float = 5.0  # on a GPU: time of the GPU
  max_buffer_bytes: int = 64 * 2**20
  max_scratch_bytes: int = 8 * 2**20  # over all cases
  access_limit: int = 200_000_000
