"""Metadata of a GGUF file to a ModelConfig.

Fields are those of ggml's `gguf.md`; what they leave open (Gemma's pattern of
layers, Llama 3's scaling) is what llama.cpp does.
"""

import math
from typing import Any

import numpy as np

from leap_jax.models import rope
from leap_jax.models.config import ModelConfig
from leap_jax.models.rope import Scaling
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained.gguf_file import GgufFile, read

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")
ROPE_FACTORS = "rope_freqs.weight"  # Llama 3: what frequencies are divided by


def architecture(file: GgufFile) -> str:
  """One of ARCHITECTURES.

  Raises:
    PolicyError: it is another one.
  """
  name = file.metadata.get("general.architecture", "none")
  if name not in ARCHITECTURES:
    raise PolicyError(
      f"{file.path}: architecture {name} is not supported; those that are: "
      f"{', '.join(ARCHITECTURES)}"
    )
  return name


def _llama3_scaling(file, head_size, theta):
  """Finds the factor from the divisors that the file holds.

  The other three numbers of the scaling are the same in all published models
  (1, 4 and 8192 tokens); whether they are is checked on all divisors.
  """
  stored = read(file, ROPE_FACTORS)
  scaling = Scaling("llama3", float(stored.max()), 8192)
  plain = rope.frequencies(head_size, theta, Scaling())
  wanted = plain / rope.frequencies(head_size, theta, scaling)
  if stored.shape != wanted.shape or not np.allclose(stored, wanted, rtol=1e-3):
    raise PolicyError(
      f"{file.path}: {ROPE_FACTORS} does not follow Llama 3's rule; other rope "
      "scalings by divisors are not supported"
    )
  return scaling


def _yarn(file, field, factor):
  attention = 0.1 * math.log(factor) + 1.0
  # What of a scaling has one value here -> that value.
  fixed = {
    "yarn_attn_factor": attention,
    "yarn_ext_factor": 1.0,
    "yarn_log_multiplier": 0.0,
  }
  for name, value in fixed.items():
    got = field(f"rope.scaling.{name}", value)
    if not math.isclose(got, value, rel_tol=1e-5):
      raise PolicyError(
        f"{file.path}: rope.scaling.{name}={got:g} is not supported; it must "
        f"be {value:g}"
      )
  original = field(
    "rope.scaling.original_context_length", field("context_length")
  )
  return Scaling(
    "yarn",
    factor,
    original,
    beta_fast=float(field("rope.scaling.yarn_beta_fast", 32.0)),
    beta_slow=float(field("rope.scaling.yarn_beta_slow", 1.0)),
    attention_factor=attention,
  )


def _scaling(file, field, head_size, theta):
  if ROPE_FACTORS in file.tensors:
    return _llama3_scaling(file, head_size, theta)
  if field("rope.scaling.attn_factor", 1.0) != 1.0:
    raise PolicyError(f"{file.path}: rope.scaling.attn_factor is not supported")
  # llama.cpp: a factor without a kind is linear; older files name it otherwise.
  kind = field("rope.scaling.type", "linear")
  factor = float(field("rope.scaling.factor", field("rope.scale_linear", 0.0)))
  if kind == "none" or (kind == "linear" and factor in (0.0, 1.0)):
    return Scaling()
  if kind == "linear":
    return Scaling("linear", factor)
  if kind == "yarn":
    return _yarn(file, field, factor)
  raise PolicyError(
    f"{file.path}: rope scaling {kind!r} is not supported; those that are: "
    "none, linear, yarn"
  )


def _gemma3(field, num_layers, width, num_heads, head_size):
  # llama.cpp: every sixth layer is global; only the largest model (62 layers)
  # scales scores by width / heads instead of the head's size.
  pattern = field("attention.sliding_window_pattern", 6)
  if not isinstance(pattern, list):
    pattern = [(i + 1) % pattern for i in range(num_layers)]
  if len(pattern) != num_layers:
    raise ValueError(
      f"attention.sliding_window_pattern has {len(pattern)} of {num_layers} "
      "layers"
    )
  scaled_by = width / num_heads if num_layers == 62 else head_size
  return dict(
    has_post_norms=True,
    norm_offset=1.0,
    embedding_scale=math.sqrt(width),
    activation="gelu_tanh",
    attention_scale=scaled_by**-0.5,
    local_layers=tuple(i for i, is_local in enumerate(pattern) if is_local),
    local_window=field("attention.sliding_window"),
    local_rope_theta=float(field("rope.freq_base_swa", 10_000.0)),
  )


def model_config(file: GgufFile) -> ModelConfig:
  """The decoder that a file describes.

  Raises:
    PolicyError: an architecture or feature that the decoder does not have, or
      a field is missing.
  """
  name = architecture(file)

  def field(key: str, *default: Any) -> Any:
    full = f"{name}.{key}"
    if full not in file.metadata and not default:
      raise PolicyError(f"{file.path}: field {full} is missing")
    return file.metadata.get(full, *default)

  heads = field("attention.head_count")
  kv_heads = field("attention.head_count_kv", heads)
  width, num_layers = field("embedding_length"), field("block_count")
  if isinstance(heads, list) or isinstance(kv_heads, list):
    raise PolicyError(
      f"{file.path}: layers with unlike heads are not supported"
    )
  if not isinstance(heads, int) or heads < 1:
    raise PolicyError(
      f"{file.path}: {name}.attention.head_count={heads!r} must be an integer "
      "above 0"
    )
  head_size = field("attention.key_length", width // heads)
  refused = (
    (field("expert_count", 0) > 0, "experts"),
    (field("rope.dimension_count", head_size) != head_size, "partial rotation"),
    (
      field("attention.value_length", head_size) != head_size,
      "values of another size than keys",
    ),
    (bool(field("final_logit_softcapping", 0.0)), "final_logit_softcapping"),
    (bool(field("attn_logit_softcapping", 0.0)), "attn_logit_softcapping"),
  )
  for is_there, what in refused:
    if is_there:
      raise PolicyError(f"{file.path}: {what} is not supported")
  if "token_embd.weight" not in file.tensors:
    raise PolicyError(f"{file.path}: tensor token_embd.weight is missing")
  theta = float(field("rope.freq_base", 10_000.0))
  parts = {}
  if name == "gemma3":
    parts = _gemma3(field, num_layers, width, heads, head_size)
  return ModelConfig(
    vocab_size=file.tensors["token_embd.weight"].shape[0],
    width=width,
    num_layers=num_layers,
    num_heads=heads,
    num_kv_heads=kv_heads,
    head_size=head_size,
    mlp_width=field("feed_forward_length"),
    rope_theta=theta,
    rope_scaling=_scaling(file, field, head_size, theta),
    # Stored as float32: 1e-6 comes as 9.99999997e-7.
    norm_eps=float(f"{field('attention.layer_norm_rms_epsilon'):.7g}"),
    has_qk_norm=name in ("qwen3", "gemma3"),
    tied_head="output.weight" not in file.tensors,
    has_qkv_bias="blk.0.attn_q.bias" in file.tensors,
    has_out_bias="blk.0.attn_output.bias" in file.tensors,
    max_context_tokens=field("context_length"),
    **parts,
  )
