"""Low-rank adapters: the base stays as it is, in 16 bits; little is trained.

    W = W_0 + (alpha / rank) A B,   A [in, rank] random, B [rank, out] zero

(Hu et al. 2021, arXiv 2106.09685, section 4.1.) The sum is made once for an
update and once for an iteration's sampling, in float32, then rounded to the
dtype of computation: sampler and trainer multiply with the same matrices.
Masters, gradients and moments exist for A and B alone. Every micro-batch
computes dL/dW of the targeted matrices and at once reduces it to dL/dA and
dL/dB; it is never accumulated.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from leap_jax.trained import Trained

TARGETS = ("query", "key", "value", "out", "gate", "up", "down")


@dataclasses.dataclass(frozen=True)
class LoraConfig:
  """Of all adapters of a policy."""

  rank: int
  alpha: float
  targets: tuple[str, ...]  # of TARGETS

  @property
  def scale(self) -> float:
    """What A B is multiplied with."""
    return self.alpha / self.rank


def init(lora: LoraConfig, base: Any, key: jax.Array) -> Any:
  """Adapters that change nothing yet. The key is consumed.

  Args:
    lora: rank and targets.
    base: parameters of the model (shapes matter only).
    key: of A.

  Returns:
    {target: {"lora_a": [layers, in, rank], "lora_b": [layers, rank, out]}},
    float32.
  """
  adapters = {}
  for name in lora.targets:
    layers, num_in, num_out = base["blocks"][name]["kernel"].shape
    target_key = jax.random.fold_in(key, TARGETS.index(name))
    a = jax.random.normal(target_key, (layers, num_in, lora.rank))
    adapters[name] = {
      "lora_a": a * num_in**-0.5,
      "lora_b": jnp.zeros((layers, lora.rank, num_out)),
    }
  return adapters


def adapted_policy(lora: LoraConfig) -> Trained:
  """Adapters are trained; `frozen` holds the base in the dtype it computes in.

  Args:
    lora: which matrices, and how A B is scaled.
  """

  def materialize(adapters, base):
    def merge(name, adapter):
      kernel = base["blocks"][name]["kernel"]
      change = jnp.einsum(
        "lir,lro->lio",
        adapter["lora_a"],
        adapter["lora_b"],
        precision=jax.lax.Precision.HIGHEST,
      )
      merged = kernel.astype(jnp.float32) + lora.scale * change
      return merged.astype(kernel.dtype)

    return {name: merge(name, adapter) for name, adapter in adapters.items()}

  def assemble(kernels, base):
    blocks = dict(base["blocks"])
    for name, kernel in kernels.items():
      blocks[name] = {**blocks[name], "kernel": kernel}
    return {**base, "blocks": blocks}

  def depends(names):
    return names[-1] == "kernel" and names[-2] in lora.targets

  def restrict(params):
    return {name: params["blocks"][name]["kernel"] for name in lora.targets}

  return Trained(materialize, assemble, depends, restrict)
