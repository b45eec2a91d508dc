"""What a decoder is made of. One record covers every family."""

import dataclasses
from typing import Any

from leap_jax.models.rope import Scaling


@dataclasses.dataclass(frozen=True)
class ModelConfig:
  """Sizes and parts of a decoder. Hashable, so that it can be static.

  Every layer but those in `local_layers` is global: it sees the whole past.
  """

  vocab_size: int  # rows of the embedding
  width: int
  num_layers: int
  num_heads: int
  num_kv_heads: int
  head_size: int
  mlp_width: int
  rope_theta: float = 10_000.0
  norm_eps: float = 1e-6
  has_qk_norm: bool = True  # RMS norm of queries and keys before the rotation
  # The last rows of the embedding, which no token has: they fill it up to a
  # round number and are never sampled.
  padding_ids: int = 0
  tied_head: bool = True  # the head is the embedding
  has_qkv_bias: bool = False
  has_out_bias: bool = False  # of the projection behind attention
  has_post_norms: bool = False  # norms behind attention and MLP too
  norm_offset: float = 0.0  # a norm multiplies by (offset + scale)
  embedding_scale: float = 1.0
  activation: str = "silu"  # a key of ACTIVATIONS
  attention_scale: float | None = None  # of the scores; None = head_size**-0.5
  rope_scaling: Scaling = Scaling()
  # Layers that see only the last `local_window` tokens, and turn by their own
  # unscaled theta where one is given.
  local_layers: tuple[int, ...] = ()
  local_window: int | None = None
  local_rope_theta: float | None = None
  max_context_tokens: int | None = None  # as trained; None = not known

  @property
  def num_ids(self) -> int:
    """Ids that a token has; only these can be sampled."""
    return self.vocab_size - self.padding_ids

  @classmethod
  def from_record(cls, record: dict[str, Any]) -> "ModelConfig":
    """From what JSON makes of `dataclasses.asdict`.

    Raises:
      TypeError: a field is unknown or missing.
    """
    record = dict(record)
    if "rope_scaling" in record:
      record["rope_scaling"] = Scaling(**record["rope_scaling"])
    if "local_layers" in record:
      record["local_layers"] = tuple(record["local_layers"])
    return cls(**record)
