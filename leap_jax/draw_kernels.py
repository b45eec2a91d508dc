"""The log mass of each block of ids, with one look at the logits: a kernel of
Pallas for what `draws.log_masses` computes.

Logits of a step are larger than a GPU's cache, and XLA reads them twice, for
the maxima and for the sums. A block of ids is small enough to stay in registers
between the two.

Shapes: B rows, V logits of each, M blocks of `draws.BLOCK` ids.
"""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from leap_jax import draws

_BLOCKS = 16  # of a program
_MOST_LOGITS = 2**31  # places are counted in 32 bits by some versions of Pallas


def _kernel(rule, num_ids, logits, masses):
  from jax.experimental import pallas as pl
  from jax.experimental.pallas import triton

  row, first = pl.program_id(0), pl.program_id(1) * _BLOCKS
  blocks = first + jnp.arange(_BLOCKS)
  ids = blocks[:, None] * draws.BLOCK + jnp.arange(draws.BLOCK)[None]
  is_id = ids < num_ids
  x = triton.load(logits.at[row, ids], mask=is_id, other=0)
  x = jnp.where(is_id, x.astype(jnp.float32) / rule.temperature, draws.CUT)
  top = x.max(1)
  mass = top + jnp.log(jnp.exp(x - top[:, None]).sum(1))
  triton.store(masses.at[row, blocks], mass, mask=blocks < masses.shape[1])


def log_masses(logits: jax.Array, rule: draws.Rule, num_ids: int) -> jax.Array:
  """[B, V] -> [B, M] float32, see `draws.log_masses`."""
  # Pallas is experimental: what does not use it needs no jax that has it.
  from jax.experimental import pallas as pl
  from jax.experimental.pallas import triton

  rows, size = logits.shape
  if logits.size >= _MOST_LOGITS:
    return draws.log_masses(logits, rule, num_ids)
  num_blocks = pl.cdiv(size, draws.BLOCK)
  return pl.pallas_call(
    functools.partial(_kernel, rule, num_ids),
    grid=(rows, pl.cdiv(num_blocks, _BLOCKS)),
    out_shape=jax.ShapeDtypeStruct((rows, num_blocks), jnp.float32),
    compiler_params=triton.CompilerParams(num_warps=4),
    interpret=jax.default_backend() != "gpu",
  )(logits)


@functools.cache
def fault() -> str | None:
  """What is wrong with the kernel, found by trying it; None if nothing."""
  rng = np.random.default_rng(0)
  size = 20 * draws.BLOCK - 3
  logits = 3 * rng.standard_normal((4, size), np.float32)
  run = lambda f: jax.jit(f, static_argnums=(1, 2))(
    logits, draws.Rule(0.7), size - 200
  )
  try:
    gap = float(jnp.abs(run(log_masses) - run(draws.log_masses)).max())
  except Exception as error:  # Pallas', Triton's and XLA's, of many kinds
    return str(error).splitlines()[0][:200]
  return None if gap < 1e-3 else f"log masses are off by {gap:.2g}"


def is_usable(joins_kernels: bool) -> bool:
  """Whether draws look at the logits through it, chosen once at start: beside
  other kernels of Pallas. Warns where they should but cannot."""
  if not joins_kernels:
    return False
  found = fault()
  if found is not None:
    warnings.warn(f"draws go without their kernel: {found}", stacklevel=2)
  return found is None
