"""Opens published weights: a Hugging Face folder or a GGUF file.

Everything that can be said without reading weights is checked when a policy is
opened; its parameters are read afterwards, tensor by tensor.
"""

import dataclasses
import functools
import pathlib

from leap_jax.chat_format import ChatOverrides
from leap_jax.models.config import ModelConfig
from leap_jax.policy_error import PolicyError
from leap_jax.policy_source import OpenPolicy, padding_ids
from leap_jax.pretrained import (
  assemble,
  gguf_config,
  gguf_file,
  gguf_tokenizer,
  hf_config,
  hf_tokenizer,
  safetensors_file,
  tensor_names,
  text_part,
)
from leap_jax.pretrained.tensor_source import TensorSource
from leap_jax.tokenizer import Tokenizer


def _padded(where, config, tokenizer) -> ModelConfig:
  """Says how many rows of the embedding no token has."""
  padding = padding_ids(where, tokenizer, config.vocab_size)
  return dataclasses.replace(config, padding_ids=padding)


def _drop_copy_of_embedding(source, config, layout):
  """A tied model may store its embedding once more, as its head."""
  name = f"{layout.head}.weight"
  if not config.tied_head or name not in source.shapes:
    return ()
  embedding = source.read(f"{layout.root}embed_tokens.weight")
  head = source.read(name)
  if head.shape != embedding.shape or (head != embedding).any():
    raise PolicyError(
      f"{source.where}: {name} is there and differs from the "
      "embedding, but config.json says tie_word_embeddings=true"
    )
  return (name,)


def _note_aside(folder, aside):
  """One line about the parts of a model that are not read, if there are any."""
  if not aside:
    return ()
  parts = " and ".join(sorted(set(aside.values())))
  return (
    f"{folder}: text only; its {parts} ({len(aside)} tensors) are left aside",
  )


def open_folder(folder: pathlib.Path, overrides: ChatOverrides) -> OpenPolicy:
  """A folder as the transformers library writes it.

  Raises:
    PolicyError: a file is missing or damaged, an architecture or feature is not
      supported, or the tokenizer belongs to another model.
  """
  record = hf_tokenizer.read_json(folder / "config.json")
  try:
    config = hf_config.model_config(record)
    text = text_part.of(record)
  except PolicyError as error:
    raise PolicyError(f"{folder}: {error}") from None
  source = safetensors_file.open_folder(folder)
  layout = text_part.layout_of(text.layouts, source.shapes)
  aside = text_part.left_aside(layout, source.shapes)
  tokenizer = hf_tokenizer.load(folder, text.record, overrides)
  config = _padded(folder, config, tokenizer)

  def read(**options):
    return assemble.assemble(
      tensor_names.leaves(config, tensor_names.hugging_face(config, layout)),
      source,
      ignored=(*aside, *_drop_copy_of_embedding(source, config, layout)),
      **options,
    )

  notes = source.notes + _note_aside(folder, aside)
  return OpenPolicy(config, tokenizer, read, notes)


def _undo_pairs(array, num_heads):
  """Rows of a rotated projection from (2i, 2i + 1) pairs back to halves.

  llama.cpp turns neighbours where we turn the two halves of a head; its files
  of the llama architecture have their rows in that order.
  """
  half = array.shape[0] // num_heads // 2
  pairs = array.reshape(num_heads, half, 2, *array.shape[1:])
  return pairs.swapaxes(1, 2).reshape(array.shape)


def _gguf_source(file, config, architecture):
  def read(name):
    array = gguf_file.read(file, name)
    part = name.rsplit(".", 2)[-2]
    if architecture == "llama" and part in ("attn_q", "attn_k"):
      heads = config.num_heads if part == "attn_q" else config.num_kv_heads
      array = _undo_pairs(array, heads)
    if config.norm_offset and part.endswith("norm"):
      array = array - config.norm_offset  # stored with the offset added
    return array

  shapes = {name: stored.shape for name, stored in file.tensors.items()}
  return TensorSource(str(file.path), shapes, read)


def open_gguf(path: pathlib.Path, overrides: ChatOverrides) -> OpenPolicy:
  """A GGUF file; what is quantized becomes float32.

  Raises:
    PolicyError: as for `open_folder`, or the `gguf` package is missing.
  """
  file = gguf_file.open_file(path)
  architecture = gguf_config.architecture(file)
  try:
    config = gguf_config.model_config(file)
  except (TypeError, ValueError, ArithmeticError) as error:
    raise PolicyError(f"{path} is damaged: {error}") from None
  tokenizer: Tokenizer = gguf_tokenizer.load(file, overrides)
  config = _padded(path, config, tokenizer)
  read = functools.partial(
    assemble.assemble,
    tensor_names.leaves(config, tensor_names.GGUF),
    _gguf_source(file, config, architecture),
    ignored=(gguf_config.ROPE_FACTORS,),
  )
  return OpenPolicy(config, tokenizer, read)
