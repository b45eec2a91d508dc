"""Device memory that a run needs, by arithmetic, before anything is loaded.

What is held for the whole run (masters, moments), what an update adds (copies
in the dtype of computation, gradients, activations, logits) and what sampling
adds (weights, caches). The larger of the two phases counts. The sampler's
arrays are those of its own code, by their shapes alone. Activations and working
memory are estimates: what the compiler really uses is known, and printed, when
the update has been compiled.

All bytes are those of one device.
"""

import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from leap_jax import program_sizes, sampler_programs, sampling
from leap_jax.models import attention, transformer
from leap_jax.models.config import ModelConfig
from leap_jax.types import RolloutShape

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
  shape: RolloutShape
  sampler: sampling.Settings
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
def _params(config):
  """Shapes of a model's parameters; none is made."""
  return jax.eval_shape(
    lambda key: transformer.init(config, key), jax.random.key(0)
  )


def num_params(config: ModelConfig) -> int:
  """Parameters of a model; none is made."""
  return transformer.num_params(_params(config))


def _bytes(tree: Any) -> int:
  """Of arrays or shapes."""
  return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


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


def _one_layer(config, settings, rows, tokens, keys, gathered=0):
  """Bytes while the sampler reads `tokens` new ones of each row: those of
  attention or of the MLP, whichever needs more."""
  itemsize = jax.numpy.dtype(settings.dtype).itemsize
  heads = (config.num_heads + 2 * config.num_kv_heads) * config.head_size
  scores = 0
  if settings.implementation == attention.XLA:  # and their softmax
    scores = 2 * _FLOAT32 * config.num_heads * keys
  attended = (config.width + heads) * itemsize + scores
  mlp = (2 * config.width + 3 * config.mlp_width) * itemsize
  return max(rows * tokens * attended + gathered, rows * tokens * mlp)


def _working(config, share, settings, caches):
  """Bytes of the sampler's largest temporary, `caches` being the bytes of its
  caches: a layer of what is read, or copies of the rows that decode."""
  prompts = sampler_programs.prompts_per_call(share, settings)
  length = share.max_prompt_tokens
  decode, more = program_sizes.all_sizes(share, settings)
  room = sampling.room(share, settings)
  largest = [_one_layer(config, settings, prompts, length, length)]
  layer = caches / config.num_layers / (room * share.num_rows)
  for width, rows in more:
    largest.append(
      _one_layer(
        config,
        settings,
        rows,
        share.max_feedback_tokens,
        width,
        layer * rows * width,
      )
    )
  if settings.implementation == attention.XLA:
    largest += [
      layer * config.num_layers * rows * width
      for width, rows in decode
      if (width, rows) != (room, share.num_rows)
    ]
  return int(max(largest))


def _sampling_needs(config, plan):
  """What a device's share of the sampler holds while it samples."""
  settings = plan.sampler
  share = sampler_programs.share_of(plan.shape, plan.data_devices)
  state = jax.eval_shape(lambda: sampling.empty_state(config, share, settings))
  weights = jax.eval_shape(
    functools.partial(sampling.weights_of, config, settings), _params(config)
  )
  rest = state._replace(prompts=None, caches=(), logits=None)
  return {
    "weights": _bytes(weights),  # every device has all of them
    "caches": _bytes((state.prompts, state.caches)),
    # Of the last step and of the next one.
    "logits": 2 * _bytes(state.logits),
    "answers": _bytes(rest),
    "working memory": _working(config, share, settings, _bytes(state.caches)),
  }


def needs(config: ModelConfig, plan: Plan) -> Needs:
  """What a run needs on each device.

  Args:
    config: of the model.
    plan: sizes of the run.
  """
  itemsize = np.dtype(jax.numpy.dtype(plan.dtype)).itemsize
  devices = plan.data_devices * plan.model_devices
  whole = num_params(config)
  trained, frozen = whole, 0
  if plan.lora_rank:
    trained = num_adapter_params(config, plan.lora_rank, plan.lora_targets)
    frozen = whole
  # In float32 nothing is cast, and the masters themselves are used.
  copies = 0 if plan.dtype == "float32" and not frozen else whole
  sampling_needs = _sampling_needs(config, plan)
  # The policy in the dtype of computation, which the sampler's is made from.
  sampling_needs["weights"] += itemsize * copies // devices
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
    sampling=sampling_needs,
  )
