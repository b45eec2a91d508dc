"""Compiled programs that outlive the process."""

import pathlib

import jax


def use(folder: str) -> None:
  """Keeps every program that is compiled from now on.

  JAX's defaults leave out what took less than a second, and with it most of
  the small programs that make a start slow.

  Args:
    folder: local; made if it does not exist. Its content is executed: it must
      belong to whoever runs this, alone.
  """
  path = pathlib.Path(folder).absolute()
  path.mkdir(parents=True, exist_ok=True, mode=0o700)
  jax.config.update("jax_compilation_cache_dir", str(path))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
  jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
  # Of the autotuner's results too: otherwise two starts may choose different
  # matrix products and differ in the last bits.
  jax.config.update(
    "jax_persistent_cache_enable_xla_caches",
    "xla_gpu_per_fusion_autotune_cache_dir",
  )
