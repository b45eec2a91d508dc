"""Sizes of decoders by name: our own, and those of published families."""

import math
from typing import Any

from leap_jax.models.config import ModelConfig
from leap_jax.models.rope import Scaling


def _qwen2(**sizes):
  return dict(
    has_qk_norm=False, has_qkv_bias=True, rope_theta=1e6, vocab_size=151936,
    padding_ids=271, max_context_tokens=32768, **sizes,
  )  # fmt: skip


def _qwen3(**sizes):
  return dict(
    head_size=128, num_kv_heads=8, rope_theta=1e6, vocab_size=151936,
    padding_ids=267, max_context_tokens=40960, **sizes,
  )  # fmt: skip


def _smollm2(**sizes):
  return dict(
    has_qk_norm=False, head_size=64, norm_eps=1e-5, vocab_size=49152,
    max_context_tokens=8192, **sizes,
  )  # fmt: skip


def _llama32(**sizes):
  return dict(
    has_qk_norm=False, num_kv_heads=8, mlp_width=8192, norm_eps=1e-5,
    rope_theta=5e5, rope_scaling=Scaling("llama3", 32.0, 8192),
    vocab_size=128256, max_context_tokens=131072, **sizes,
  )  # fmt: skip


def _gemma3(*, width, num_layers, **sizes):
  # Five local layers, then one that sees everything.
  local = tuple(i for i in range(num_layers) if (i + 1) % 6)
  return dict(
    width=width, num_layers=num_layers, num_heads=4, num_kv_heads=1,
    head_size=256, rope_theta=1e6, has_post_norms=True, norm_offset=1.0,
    embedding_scale=math.sqrt(width), activation="gelu_tanh",
    attention_scale=256**-0.5, local_layers=local, local_window=512,
    local_rope_theta=1e4, vocab_size=262144, max_context_tokens=32768, **sizes,
  )  # fmt: skip


SIZES: dict[str, dict[str, Any]] = {  # fields of ModelConfig
  # Our own: the vocabulary is trained with the policy.
  "micro": dict(
    width=64, num_layers=2, num_heads=2, num_kv_heads=1, head_size=32,
    mlp_width=128,
  ),
  "tiny": dict(
    width=192, num_layers=4, num_heads=6, num_kv_heads=2, head_size=32,
    mlp_width=512,
  ),
  # Published: from the `config.json` of each. The ids that no token has are
  # those of the tokenizers that came with them.
  "smollm2-135m": _smollm2(
    width=576, num_layers=30, num_heads=9, num_kv_heads=3, mlp_width=1536,
    rope_theta=1e5,
  ),
  "smollm2-360m": _smollm2(
    width=960, num_layers=32, num_heads=15, num_kv_heads=5, mlp_width=2560,
    rope_theta=1e5,
  ),
  "smollm2-1.7b": _smollm2(
    width=2048, num_layers=24, num_heads=32, num_kv_heads=32, mlp_width=8192,
    rope_theta=1.3e5,
  ),
  "qwen2.5-0.5b": _qwen2(
    width=896, num_layers=24, num_heads=14, num_kv_heads=2, head_size=64,
    mlp_width=4864,
  ),
  "qwen2.5-1.5b": _qwen2(
    width=1536, num_layers=28, num_heads=12, num_kv_heads=2, head_size=128,
    mlp_width=8960,
  ),
  "qwen2.5-7b": _qwen2(
    width=3584, num_layers=28, num_heads=28, num_kv_heads=4, head_size=128,
    mlp_width=18944, tied_head=False,
  ) | dict(vocab_size=152064, padding_ids=399),
  "qwen3-0.6b": _qwen3(
    width=1024, num_layers=28, num_heads=16, mlp_width=3072,
  ),
  "qwen3-1.7b": _qwen3(
    width=2048, num_layers=28, num_heads=16, mlp_width=6144,
  ),
  "qwen3-4b": _qwen3(
    width=2560, num_layers=36, num_heads=32, mlp_width=9728,
  ),
  "qwen3-8b": _qwen3(
    width=4096, num_layers=36, num_heads=32, mlp_width=12288, tied_head=False,
  ),
  "llama3.2-1b": _llama32(
    width=2048, num_layers=16, num_heads=32, head_size=64,
  ),
  "llama3.2-3b": _llama32(
    width=3072, num_layers=28, num_heads=24, head_size=128,
  ),
  "gemma3-270m": _gemma3(width=640, num_layers=18, mlp_width=2048),
  "gemma3-1b": _gemma3(width=1152, num_layers=26, mlp_width=6912),
}  # fmt: skip


def model_config(size: str, vocab_size: int | None = None) -> ModelConfig:
  """A decoder of a named size.

  Args:
    size: a key of SIZES.
    vocab_size: another vocabulary than the published one; needed for the sizes
      that have none.

  Raises:
    ValueError: a size without a vocabulary got none.
  """
  fields = SIZES[size]
  if vocab_size is None:
    if "vocab_size" not in fields:
      raise ValueError(f"{size} has no vocabulary of its own; give vocab_size")
    return ModelConfig(**fields)
  fields = fields | {"vocab_size": vocab_size, "padding_ids": 0}
  return ModelConfig(**fields)
