"""Our parameters' paths and what others call them."""

from collections.abc import Mapping
from typing import NamedTuple

import jax

from leap_jax.models import transformer
from leap_jax.models.config import ModelConfig
from leap_jax.pretrained.text_part import PLAIN, Layout


class Naming(NamedTuple):
  """Names of one storage format; `{}` stands for a layer's number."""

  layer: str  # prefix of what belongs to a layer
  parts: Mapping[str, str]  # our path -> name without ".weight" or ".bias"


_HF_BLOCK = {
  "attention_norm": "input_layernorm",
  "query": "self_attn.q_proj",
  "key": "self_attn.k_proj",
  "value": "self_attn.v_proj",
  "out": "self_attn.o_proj",
  "query_norm": "self_attn.q_norm",
  "key_norm": "self_attn.k_norm",
  "gate": "mlp.gate_proj",
  "up": "mlp.up_proj",
  "down": "mlp.down_proj",
}
_GGUF_BLOCK = {
  "attention_norm": "attn_norm",
  "query": "attn_q",
  "key": "attn_k",
  "value": "attn_v",
  "out": "attn_output",
  "query_norm": "attn_q_norm",
  "key_norm": "attn_k_norm",
  "post_attention_norm": "post_attention_norm",
  "mlp_norm": "ffn_norm",
  "gate": "ffn_gate",
  "up": "ffn_up",
  "down": "ffn_down",
  "post_mlp_norm": "post_ffw_norm",
}

GGUF = Naming(
  "blk.{}.",
  {
    **_GGUF_BLOCK,
    "embedding": "token_embd",
    "final_norm": "output_norm",
    "head": "output",
  },
)


def hugging_face(config: ModelConfig, layout: Layout = PLAIN) -> Naming:
  """Names in a safetensors file of the `transformers` library.

  What is `post_attention_layernorm` depends on the family: the norm before the
  MLP, or, where there are norms behind both parts, that behind attention.

  Args:
    config: of the model.
    layout: where the language model is among other parts.
  """
  norms = {"mlp_norm": "post_attention_layernorm"}
  if config.has_post_norms:
    norms = {
      "mlp_norm": "pre_feedforward_layernorm",
      "post_attention_norm": "post_attention_layernorm",
      "post_mlp_norm": "post_feedforward_layernorm",
    }
  return Naming(
    layout.root + "layers.{}.",
    {
      **_HF_BLOCK,
      **norms,
      "embedding": layout.root + "embed_tokens",
      "final_norm": layout.root + "norm",
      "head": layout.head,
    },
  )


class Leaf(NamedTuple):
  """One of our parameters and where its parts are stored."""

  path: tuple[str, ...]  # in the tree
  shape: tuple[int, ...]  # ours: [L, ...] for a layer's
  names: tuple[str, ...]  # one, or one for each layer
  is_stacked: bool  # over layers
  is_transposed: bool  # stored [out, in], kept [in, out]


def _paths(config):
  """(path, shape) of every parameter."""
  tree = jax.eval_shape(
    lambda key: transformer.init(config, key), jax.random.key(0)
  )
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    yield tuple(key.key for key in path), leaf.shape


def leaves(config: ModelConfig, naming: Naming) -> list[Leaf]:
  """Every parameter of a model, with its stored names."""
  out = []
  for path, shape in _paths(config):
    is_stacked = path[0] == "blocks"
    *_, part, kind = path
    name = naming.parts[part] + (".bias" if kind == "bias" else ".weight")
    names = (name,)
    if is_stacked:
      layers = range(config.num_layers)
      names = tuple(naming.layer.format(i) + name for i in layers)
    out.append(Leaf(path, shape, names, is_stacked, kind == "kernel"))
  return out


def own_leaves(config: ModelConfig) -> list[Leaf]:
  """Every parameter as a run writes it: under its path, layers stacked."""
  return [
    Leaf(path, shape, ("/".join(path),), False, False)
    for path, shape in _paths(config)
  ]
