"""Tiny models of each family, as configurations of the transformers library.

Weights are a rule, not a file: NumPy numbers seeded by each tensor's name.
"""

import zlib

import numpy as np

_SIZES = dict(
  vocab_size=40,
  hidden_size=16,
  intermediate_size=24,
  num_hidden_layers=3,
  num_attention_heads=4,
  num_key_value_heads=2,
  max_position_embeddings=256,
)

# family -> (configuration class, its arguments)
CONFIGS = {
  "llama": (
    "LlamaConfig",
    dict(
      tie_word_embeddings=False,
      rope_parameters=dict(
        rope_type="llama3",
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=64,
        rope_theta=5e5,
      ),
    ),
  ),
  "llama with biases": (
    "LlamaConfig",
    dict(
      attention_bias=True,
      tie_word_embeddings=True,
      rope_parameters=dict(rope_type="linear", factor=4.0, rope_theta=1e4),
    ),
  ),
  "qwen2": (
    "Qwen2Config",
    dict(
      tie_word_embeddings=True,
      use_sliding_window=True,
      sliding_window=5,
      max_window_layers=1,
      rope_parameters=dict(
        rope_type="yarn",
        factor=4.0,
        original_max_position_embeddings=64,
        rope_theta=1e4,
      ),
    ),
  ),
  "qwen3": (
    "Qwen3Config",
    dict(head_dim=8, tie_word_embeddings=False),
  ),
  "gemma3": (
    "Gemma3TextConfig",
    dict(
      head_dim=8,
      query_pre_attn_scalar=24,
      sliding_window=6,
      layer_types=[
        "sliding_attention",
        "full_attention",
        "sliding_attention",
      ],
    ),
  ),
}
TOKENS = [[5, 9, 30, 2, 39, 5, 5, 11, 0, 17], [1, 1, 8, 3, 26, 12, 7, 33, 4, 9]]


def arguments(family: str) -> dict:
  """Of the configuration class."""
  return _SIZES | CONFIGS[family][1]


def tensor(name: str, shape: tuple[int, ...], family: str) -> np.ndarray:
  """The weights of that name; norms are near what leaves their input alone."""
  rng = np.random.default_rng(zlib.crc32(name.encode()))
  numbers = 0.3 * rng.standard_normal(shape, np.float32)
  around_one = "norm" in name and family != "gemma3"
  return numbers + np.float32(around_one)
