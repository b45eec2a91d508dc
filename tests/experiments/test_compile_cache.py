"""Programs that are kept for the next start."""

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from experiments import compile_cache, settings

NAMES = (
  "jax_compilation_cache_dir",
  "jax_persistent_cache_min_compile_time_secs",
  "jax_persistent_cache_min_entry_size_bytes",
  "jax_persistent_cache_enable_xla_caches",
)


@pytest.fixture
def as_before():
  before = {name: getattr(jax.config, name) for name in NAMES}
  yield
  for name, value in before.items():
    jax.config.update(name, value)
  compilation_cache.reset_cache()


def test_the_smallest_program_is_kept(tmp_path, as_before):
  folder = tmp_path / "programs"
  compilation_cache.reset_cache()
  compile_cache.use(str(folder))
  program = lambda x: x * 3 + 1
  jax.jit(program).lower(jnp.ones(3)).compile()
  assert any(path.is_file() for path in folder.rglob("*"))
  # Whoever can write there can have code run.
  assert folder.stat().st_mode & 0o077 == 0


def test_no_folder_is_no_cache():
  config, _ = settings.parse(
    ["run", "--config=experiments/configs/quickstart.py"], lambda values: None
  )
  assert config.run.compilation_cache is None
