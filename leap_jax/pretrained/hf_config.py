"""`config.json` of the transformers library to a ModelConfig.

What a field means and its default are those of the library's configuration
classes (transformers 4.40 to 5). A feature that the decoder does not have is
refused by its name.
"""

import math
from collections.abc import Mapping
from typing import Any

from leap_jax.models.config import ModelConfig
from leap_jax.models.rope import Scaling
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import text_part

_ACTIVATIONS = {
  "silu": "silu",
  "gelu_pytorch_tanh": "gelu_tanh",
}


def _refuse(text):
  raise PolicyError(text)


def _supported(config, field, allowed):
  """Refuses a value that changes the mathematics in a way we do not have."""
  value = config.get(field, allowed[0])
  if value not in allowed:
    _refuse(f"config.json: {field}={value!r} is not supported")


_KINDS = ("full_attention", "sliding_attention")  # of layers


def _count(fields, name):
  value = fields[name]
  if isinstance(value, bool) or not isinstance(value, int) or value < 1:
    _refuse(f"config.json: {name}={value!r} must be an integer above 0")
  return value


def _number(fields, name):
  value = fields[name]
  is_number = isinstance(value, int | float) and not isinstance(value, bool)
  if not is_number or not 0 < value < math.inf:
    _refuse(f"config.json: {name}={value!r} must be a number above 0")
  return float(value)


_FIELDS = {  # one that is missing is told where it is read
  "vocab_size": _count,
  "hidden_size": _count,
  "num_hidden_layers": _count,
  "num_attention_heads": _count,
  "intermediate_size": _count,
  "max_position_embeddings": _count,
  "rms_norm_eps": _number,
  "query_pre_attn_scalar": _number,
  "rope_local_base_freq": _number,
}
_NULLABLE = {  # null is as if not there
  "num_key_value_heads": _count,
  "head_dim": _count,
  "rope_theta": _number,
}


def _check_fields(config):
  """Refuses what is there and cannot be what it is called."""
  for name, check in (_FIELDS | _NULLABLE).items():
    is_there = name in config
    if is_there and not (name in _NULLABLE and config[name] is None):
      check(config, name)
  for name in ("rope_parameters", "rope_scaling"):
    if not isinstance(config.get(name), Mapping | None):
      _refuse(f"config.json: {name}={config[name]!r} must be an object or null")
  unlike = config.get("no_rope_layers") or ()
  if not isinstance(unlike, list | tuple) or 0 in unlike:
    _refuse("config.json: no_rope_layers is not supported: all layers rotate")
  types = config.get("layer_types")
  if types is None:
    return
  layers = config.get("num_hidden_layers")
  if not isinstance(types, list | tuple) or len(types) != layers:
    _refuse(f"config.json: layer_types must name each of {layers} layers")
  for kind in types:
    if kind not in _KINDS:
      _refuse(
        f"config.json: layer_types with {kind!r} is not supported; those that "
        f"are: {', '.join(_KINDS)}"
      )


def _yarn(rope, factor):
  for field in ("mscale", "mscale_all_dim"):
    if rope.get(field):
      _refuse(f"config.json: yarn with {field} is not supported")
  if not rope.get("truncate", True):
    _refuse("config.json: yarn with truncate=false is not supported")
  attention = rope.get("attention_factor")
  if attention is None:
    attention = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
  return dict(
    beta_fast=float(rope.get("beta_fast") or 32.0),
    beta_slow=float(rope.get("beta_slow") or 1.0),
    attention_factor=float(attention),
  )


def _scaling(rope: Mapping[str, Any] | None, max_context: int) -> Scaling:
  """Of a `rope_scaling` or `rope_parameters` entry."""
  rope = rope or {}
  kind = rope.get("rope_type", rope.get("type", "default"))
  if rope.get("partial_rotary_factor", 1.0) != 1.0:
    _refuse("config.json: partial_rotary_factor is not supported")
  if kind == "default":
    return Scaling()
  if kind not in ("linear", "llama3", "yarn"):
    _refuse(
      f"config.json: rope scaling {kind!r} is not supported; those that are: "
      "default, linear, llama3, yarn"
    )
  factor = _number(rope, "factor")
  if kind == "linear":
    return Scaling("linear", factor)
  original = int(rope.get("original_max_position_embeddings") or max_context)
  if kind == "llama3":
    low, high = (
      _number(rope, "low_freq_factor"),
      _number(rope, "high_freq_factor"),
    )
    if not low < high:
      _refuse(
        f"config.json: low_freq_factor={low:g} must be below "
        f"high_freq_factor={high:g}"
      )
    return Scaling(
      "llama3",
      factor,
      original,
      low_frequency_factor=low,
      high_frequency_factor=high,
    )
  return Scaling("yarn", factor, original, **_yarn(rope, factor))


def _rope(config, default_theta=10_000.0):
  """theta and scaling, from the field of today or the two of before."""
  rope = config.get("rope_parameters")
  if rope is None:
    rope = config.get("rope_scaling")
  theta = (rope or {}).get("rope_theta", config.get("rope_theta"))
  rotated = config.get("partial_rotary_factor")
  if rotated is not None and rotated != 1.0:
    _refuse("config.json: partial_rotary_factor is not supported")
  if theta is not None:
    theta = _number({"rope_theta": theta}, "rope_theta")
  return dict(
    rope_theta=default_theta if theta is None else theta,
    rope_scaling=_scaling(rope, config["max_position_embeddings"]),
  )


def _sizes(config, head_size, tied):
  head_size = config.get("head_dim") or head_size
  eps = config.get("rms_norm_eps", 1e-6)
  return dict(
    vocab_size=config["vocab_size"],
    width=config["hidden_size"],
    num_layers=config["num_hidden_layers"],
    num_heads=config["num_attention_heads"],
    num_kv_heads=config.get("num_key_value_heads")
    or config["num_attention_heads"],
    head_size=head_size,
    mlp_width=config["intermediate_size"],
    norm_eps=float(eps),
    tied_head=bool(config.get("tie_word_embeddings", tied)),
    max_context_tokens=config["max_position_embeddings"],
  )


def _even_head(config):
  return config["hidden_size"] // config["num_attention_heads"]


def _activation(config, field, default):
  name = config.get(field) or default
  if name not in _ACTIVATIONS:
    _refuse(
      f"config.json: {field}={name!r} is not supported; those that are: "
      f"{', '.join(_ACTIVATIONS)}"
    )
  return _ACTIVATIONS[name]


def _llama(config):
  _supported(config, "mlp_bias", (False, None))
  has_bias = bool(config.get("attention_bias", False))
  return ModelConfig(
    **_sizes(config, _even_head(config), False),
    **_rope(config),
    activation=_activation(config, "hidden_act", "silu"),
    has_qk_norm=False,
    has_qkv_bias=has_bias,
    has_out_bias=has_bias,
  )


def _windows(config):
  """Layers with a sliding window, where the switch is on (Qwen)."""
  if not config.get("use_sliding_window", False):
    return {}
  types = config.get("layer_types")
  if types is None:
    first = config.get("max_window_layers", 28)
    local = range(min(first, _layers(config)), _layers(config))
  else:
    local = [i for i, kind in enumerate(types) if kind == "sliding_attention"]
  return dict(local_layers=tuple(local), local_window=_window(config, local))


def _window(config, local, default=None):
  """Tokens that local layers see."""
  window = config.get("sliding_window", default)
  if local and (not isinstance(window, int) or window < 1):
    _refuse(
      f"config.json: sliding_window={window!r} must be a number of tokens, "
      f"since layer {local[0]} has a window"
    )
  return window


def _layers(config):
  return config["num_hidden_layers"]


def _qwen2(config):
  return ModelConfig(
    **_sizes(config, _even_head(config), False),
    **_rope(config),
    **_windows(config),
    activation=_activation(config, "hidden_act", "silu"),
    has_qk_norm=False,
    has_qkv_bias=True,
  )


def _qwen3(config):
  has_bias = bool(config.get("attention_bias", False))
  return ModelConfig(
    **_sizes(config, 128, False),
    **_rope(config),
    **_windows(config),
    activation=_activation(config, "hidden_act", "silu"),
    has_qkv_bias=has_bias,
    has_out_bias=has_bias,
  )


def _turns_by_kind(config):
  """theta and scaling of global layers; theta of sliding ones."""
  kinds = config.get("rope_parameters") or {}
  local_theta = config.get("rope_local_base_freq", 10_000.0)
  local = {}
  if kinds.keys() & {*_KINDS}:  # transformers 5: an entry for each kind
    local = kinds.get("sliding_attention") or {}
    full = kinds.get("full_attention") or {}
    config = config | {"rope_parameters": full}
  own = _rope(config | {"rope_parameters": local, "rope_theta": local_theta})
  if own["rope_scaling"].kind != "none":
    _refuse("config.json: rope scaling of sliding layers is not supported")
  return _rope(config, 1e6), own["rope_theta"]


def _gemma3(config):
  for field in ("attn_logit_softcapping", "final_logit_softcapping"):
    _supported(config, field, (None,))
  _supported(config, "use_bidirectional_attention", (False, None))
  has_bias = bool(config.get("attention_bias", False))
  types = config.get("layer_types")
  if types is None:
    every = _count(
      {"sliding_window_pattern": 6} | config, "sliding_window_pattern"
    )
    local = [i for i in range(_layers(config)) if (i + 1) % every]
  else:
    local = [i for i, kind in enumerate(types) if kind == "sliding_attention"]
  whole, local_theta = _turns_by_kind(config)
  if whole["rope_scaling"].kind == "yarn":
    _refuse("config.json: yarn is not supported for Gemma 3")
  return ModelConfig(
    **_sizes(config, 256, True),
    **whole,
    activation=_activation(config, "hidden_activation", "gelu_pytorch_tanh"),
    has_qkv_bias=has_bias,
    has_out_bias=has_bias,
    has_post_norms=True,
    norm_offset=1.0,
    embedding_scale=math.sqrt(config["hidden_size"]),
    attention_scale=float(config.get("query_pre_attn_scalar", 256)) ** -0.5,
    local_layers=tuple(local),
    local_window=_window(config, local, 4096),
    local_rope_theta=local_theta,
  )


FAMILIES = {
  "LlamaForCausalLM": _llama,
  "Qwen2ForCausalLM": _qwen2,
  "Qwen3ForCausalLM": _qwen3,
  "Gemma3ForCausalLM": _gemma3,
}


def _family_of(config):
  """The architecture; a key of FAMILIES."""
  names = config.get("architectures") or ["none"]
  names = [names] if isinstance(names, str) else names
  if names[0] not in FAMILIES:
    raise PolicyError(
      f"config.json: architecture {names[0]} is not supported; those that "
      f"are: {', '.join([*FAMILIES, *text_part.WITH_IMAGES])}"
    )
  return names[0]


def model_config(config: dict[str, Any]) -> ModelConfig:
  """The decoder that a `config.json` describes.

  Of a model that sees images too, its language model.

  Raises:
    PolicyError: an architecture or feature that the decoder does not have, or
      a field is missing.
  """
  config = text_part.of(config).record
  make = FAMILIES[_family_of(config)]
  quantization = config.get("quantization_config")
  if quantization:
    method = quantization
    if isinstance(quantization, Mapping):
      method = quantization.get("quant_method", "unknown")
    raise PolicyError(
      f"config.json: weights quantized by {method!r} are not supported; use "
      "BF16, FP16 or FP32 weights, or a GGUF file"
    )
  _check_fields(config)
  try:
    return make(config)
  except KeyError as error:
    raise PolicyError(f"config.json: field {error} is missing") from None
  except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
    raise PolicyError(f"config.json: {error}") from None
