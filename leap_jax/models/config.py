"""What a decoder is made of. One record covers every family."""

import dataclasses
from typing import Any

from leap_jax.models.rope import Scaling

_SIZES = (
  "vocab_size",
  "width",
  "num_layers",
  "num_heads",
  "num_kv_heads",
  "head_size",
  "mlp_width",
)


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

  def __post_init__(self):
    """Refuses what no decoder of ours computes.

    Raises:
      ValueError: with what does not go together.
    """
    for name in _SIZES:
      value = getattr(self, name)
      if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} must be an integer above 0")
    if self.num_heads % self.num_kv_heads:
      raise ValueError(
        f"num_kv_heads={self.num_kv_heads} must divide "
        f"num_heads={self.num_heads}"
      )
    if self.head_size % 2:
      raise ValueError(
        f"head_size={self.head_size} must be even: its halves are rotated"
      )
    if self.local_layers and not (self.local_window or 0) > 0:
      raise ValueError(
        f"local_window={self.local_window}: layers {self.local_layers} see "
        "only so many tokens; it must be above 0"
      )
    # The factor would reach the local layers too, whose turns are unscaled.
    own_turns = self.local_layers and self.local_rope_theta is not None
    if own_turns and self.rope_scaling.attention_factor != 1.0:
      raise ValueError(
        "rope_scaling.attention_factor="
        f"{self.rope_scaling.attention_factor:g} cannot be with layers of "
        "their own local_rope_theta"
      )

  @property
  def num_ids(self) -> int:
    """Ids that a token has; only these can be sampled."""
    return self.vocab_size - self.padding_ids

  @classmethod
  def from_record(cls, record: dict[str, Any]) -> "ModelConfig":
    """From what JSON makes of `dataclasses.asdict`.

    Raises:
      TypeError: a field is unknown or missing.
      ValueError: fields do not go together.
    """
    record = dict(record)
    if "rope_scaling" in record:
      record["rope_scaling"] = Scaling(**record["rope_scaling"])
    if "local_layers" in record:
      record["local_layers"] = tuple(record["local_layers"])
    return cls(**record)
