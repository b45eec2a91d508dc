"""Device memory that a run needs, by arithmetic, before anything is loaded.

What is held for the whole run (masters, moments), what an update adds (copies
in the dtype of computation, gradients, activations, logits) and what sampling
adds (weights, caches). The larger of the two phases counts. Activations are an
estimate: what the compiler really uses is known, and printed, when the update
has been compiled.

All bytes are those of one device.
"""

import dataclasses
import functools

import jax
import numpy as np

from leap_jax.models import transformer
from leap_jax.models.config import ModelConfig

_FLOAT32 = 4


@dataclasses.dataclass(frozen=True)
class Plan:
  """The sizes that memory depends on. Tokens and rows are of all devices."""

  dtype: str  # of the update's computation
  remat: str  # a key of whole_rows.REMAT
  micro_tokens: int  # of one micro-batch
  head: str  # a key of head.HEADS
  head_tokens: int
  lora_rank: int
  lora_targets: tuple[str, ...]
  sampler_dtype: str
  cache_rows: int
  cache_tokens: int  # of each row
  data_devices: int  # that the rows and all parameters are split over
  model_devices: int  # that heads and parameters are split over


@dataclasses.dataclass(frozen=True)
class Needs:
  """Bytes by what they are for."""

  held: dict[str, int]
  update: dict[str, int]
  sampling: dict[str, int]

  @property
  def peak(self) -> int:
    """Bytes of the larger phase."""
    phases = (self.update, self.sampling)
    return sum(self.held.values()) + max(sum(p.values()) for p in phases)


@functools.cache
def num_params(config: ModelConfig) -> int:
  """Parameters of a model; none is made."""
  shapes = jax.eval_shape(
    lambda key: transformer.init(config, key), jax.random.key(0)
  )
  return sum(int(np.prod(x.shape)) for x in jax.tree.leaves(shapes))


def num_adapter_params(
  config: ModelConfig, rank: int, targets: tuple[str, ...]
) -> int:
  """Parameters of low-rank adapters."""
  queries = config.num_heads * config.head_size
  keys = config.num_kv_heads * config.head_size
  sides = {  # in + out
    "query": config.width + queries,
    "key": config.width + keys,
    "value": config.width + keys,
    "out": queries + config.width,
    "gate": config.width + config.mlp_width,
    "up": config.width + config.mlp_width,
    "down": config.mlp_width + config.width,
  }
  return config.num_layers * rank * sum(sides[name] for name in targets)


def _layer_numbers(config):
  """Numbers of one token in one layer: (all that autodiff keeps, the results of
  matrix products that the backward pass needs).

  The first is fitted to what XLA has used for three published sizes (within 4
  %); the second is a count.
  """
  d, f = config.width, config.mlp_width
  heads = (config.num_heads + config.num_kv_heads) * config.head_size
  return 14 * d + 4 * heads + 6 * f, 2 * d + 2 * heads + 2 * f


def _activation_bytes(config, plan, itemsize):
  """(kept for the backward pass, while one layer or the head is computed)."""
  everything, products = _layer_numbers(config)
  kept = {"none": everything, "dots": products, "block": config.width}
  tokens = plan.micro_tokens / plan.data_devices
  statistics = _FLOAT32 * config.num_heads  # of attention
  bytes_kept = config.num_layers * (kept[plan.remat] * itemsize + statistics)
  # Logits in float32, and their gradient in the dtype of computation; held at
  # once when no layer is.
  positions = {"whole": plan.micro_tokens, "chunked": plan.head_tokens}
  positions = positions[plan.head] / plan.data_devices
  each = {"whole": 3 * _FLOAT32, "chunked": _FLOAT32 + itemsize}[plan.head]
  logits = positions * config.vocab_size * each / plan.model_devices
  return int(tokens * bytes_kept), int(
    max(logits, tokens * everything * itemsize)
  )


def needs(config: ModelConfig, plan: Plan) -> Needs:
  """What a run needs on each device.

  Args:
    config: of the model.
    plan: sizes of the run.
  """
  itemsize = np.dtype(jax.numpy.dtype(plan.dtype)).itemsize
  sampler_itemsize = np.dtype(jax.numpy.dtype(plan.sampler_dtype)).itemsize
  devices = plan.data_devices * plan.model_devices
  whole = num_params(config)
  trained, frozen = whole, 0
  if plan.lora_rank:
    trained = num_adapter_params(config, plan.lora_rank, plan.lora_targets)
    frozen = whole
  # In float32 nothing is cast, and the masters themselves are used.
  copies = 0 if plan.dtype == "float32" and not frozen else whole
  cache = 2 * config.num_layers * config.num_kv_heads * config.head_size
  cached_tokens = plan.cache_rows * plan.cache_tokens
  activations, working = _activation_bytes(config, plan, itemsize)
  return Needs(
    held={
      "parameters": _FLOAT32 * trained // devices
      + itemsize * frozen // devices,
      "moments": 2 * _FLOAT32 * trained // devices,
    },
    update={
      # Of two micro-batches: the sum so far and what is added to it.
      "gradients": (_FLOAT32 + itemsize) * trained // devices,
      "weights": itemsize * copies // plan.model_devices,
      "activations": activations,
      "logits or one layer": working,
    },
    sampling={
      "weights": itemsize * copies // devices
      + sampler_itemsize * whole // plan.model_devices,
      "caches": cached_tokens * cache * sampler_itemsize // plan.data_devices,
      "logits": plan.cache_rows * config.vocab_size * 2 * _FLOAT32,
    },
  )
