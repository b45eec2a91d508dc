"""What evaluations on a GPU do, and their limits."""

import dataclasses
from typing import Any

_LIMIT_OF = {
  "timing_wall_s": "with_timing",
  "jax_wall_s": "with_jax",
  "sanitizer_wall_s": "with_sanitizer",
}


@dataclasses.dataclass(frozen=True)
class CudaSettings:
  """Which GPUs, what is done there beside judging, and limits in seconds and
  bytes, beside those that both executors share (`settings.py`): compilation
  has its limits there, and `run_cpu_s` is what the kernels of all cases may
  take of the GPU, in both patterns together."""

  devices: tuple[int, ...] = (0,)  # indices of GPUs that are alike
  with_timing: bool = False  # right candidates are timed
  with_jax: bool = False  # the jitted JAX reference, too, once for a problem
  with_cpu_first: bool = False  # certain failures never reach the GPU
  with_sanitizer: bool = False  # failures are explained by compute-sanitizer
  # Beside run_cpu_s: loading, copies, and the second or two that a GPU takes to
  # say that a kernel has failed. Other launchers' turns do not count.
  load_wall_s: float = 3.0
  timing_wall_s: float = 60.0
  jax_wall_s: float = 120.0  # start of JAX, compilation, timing
  sanitizer_wall_s: float = 60.0  # start of a launcher, or all cases
  compile_memory_bytes: int = 8 * 2**30  # address space
  max_image_bytes: int = 256 * 2**20

  def deciding(self) -> dict[str, Any]:
    """By name, what a verdict or what is said of it may depend on: neither
    which of a host's GPUs they are, nor the limit of what is not done."""
    values = dataclasses.asdict(self)
    del values["devices"]
    for limit, switch in _LIMIT_OF.items():
      if not values[switch]:
        del values[limit]
    return values
