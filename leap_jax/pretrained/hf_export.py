"""Writes a policy as a Hugging Face folder that the transformers library loads.

config.json, model.safetensors (in shards above a limit), tokenizer.json,
tokenizer_config.json with the chat template, generation_config.json.
"""

import functools
import json
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from leap_jax import files
from leap_jax.models.config import ModelConfig
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import hf_config, safetensors_writer, tensor_names
from leap_jax.tokenizer import Tokenizer

_UNKNOWN_CONTEXT = 32768  # tokens: the field may not be left out
MAX_SHARD_BYTES = 4 * 10**9
_ACTIVATIONS = {"silu": "silu", "gelu_tanh": "gelu_pytorch_tanh"}
DTYPES = ("bfloat16", "float16", "float32")


def _architecture(config) -> tuple[str, str]:
  """The transformers class and model type with the parts of this decoder."""
  if config.has_post_norms:
    return "Gemma3ForCausalLM", "gemma3_text"
  if config.has_qk_norm:
    return "Qwen3ForCausalLM", "qwen3"
  if config.has_qkv_bias and not config.has_out_bias:
    return "Qwen2ForCausalLM", "qwen2"
  return "LlamaForCausalLM", "llama"


def _rope_scaling(scaling):
  if scaling.kind == "none":
    return None
  record = {"rope_type": scaling.kind, "factor": scaling.factor}
  if scaling.kind != "linear":
    record["original_max_position_embeddings"] = scaling.original_context
  if scaling.kind == "llama3":
    record["low_freq_factor"] = scaling.low_frequency_factor
    record["high_freq_factor"] = scaling.high_frequency_factor
  if scaling.kind == "yarn":
    record["beta_fast"] = scaling.beta_fast
    record["beta_slow"] = scaling.beta_slow
    record["attention_factor"] = scaling.attention_factor
  return record


def _layer_types(config):
  local = "sliding_attention"
  return [
    local if i in config.local_layers else "full_attention"
    for i in range(config.num_layers)
  ]


def config_record(
  config: ModelConfig, stop_tokens: Sequence[int], dtype: str
) -> dict[str, Any]:
  """`config.json` of a decoder.

  Args:
    config: sizes and parts.
    stop_tokens: ids that end an answer.
    dtype: of the stored weights.

  Raises:
    PolicyError: no architecture of the library has all of these parts.
  """
  name, model_type = _architecture(config)
  record = {
    "architectures": [name],
    "model_type": model_type,
    "vocab_size": config.vocab_size,
    "hidden_size": config.width,
    "num_hidden_layers": config.num_layers,
    "num_attention_heads": config.num_heads,
    "num_key_value_heads": config.num_kv_heads,
    "head_dim": config.head_size,
    "intermediate_size": config.mlp_width,
    "rms_norm_eps": config.norm_eps,
    "rope_theta": config.rope_theta,
    "rope_scaling": _rope_scaling(config.rope_scaling),
    "max_position_embeddings": config.max_context_tokens or _UNKNOWN_CONTEXT,
    "tie_word_embeddings": config.tied_head,
    "attention_bias": config.has_qkv_bias,
    "attention_dropout": 0.0,
    "use_cache": True,
    "eos_token_id": list(stop_tokens),
    "bos_token_id": None,
    "torch_dtype": dtype,
  }
  if name == "Gemma3ForCausalLM":
    record |= {
      "hidden_activation": _ACTIVATIONS[config.activation],
      "rope_local_base_freq": config.local_rope_theta,
      "query_pre_attn_scalar": _whole((config.attention_scale or 1) ** -2),
      "sliding_window": config.local_window,
      "layer_types": _layer_types(config),
    }
  else:
    record["hidden_act"] = _ACTIVATIONS[config.activation]
  if name.startswith("Qwen") and config.local_layers:
    record |= {
      "use_sliding_window": True,
      "sliding_window": config.local_window,
      "max_window_layers": min(config.local_layers),
      "layer_types": _layer_types(config),
    }
  _check_readable(record, config)
  return record


def _whole(value):
  """256.0000001 -> 256: the field is a whole number in published models."""
  return round(value) if math.isclose(value, round(value)) else value


def _check_readable(record, config):
  """Read back, the record gives the same decoder."""
  got = hf_config.model_config(record)
  for field in ModelConfig.__dataclass_fields__:
    if field in ("padding_ids", "max_context_tokens"):
      continue
    mine, theirs = getattr(config, field), getattr(got, field)
    is_near = isinstance(mine, float) and math.isclose(mine, theirs or 0.0)
    if mine != theirs and not is_near:
      raise PolicyError(
        f"no architecture of transformers is this decoder: {field}={mine} "
        f"cannot be said of {record['architectures'][0]} ({theirs})"
      )


def _tensors(config, params):
  """Entries of the weight files, in the order of the layers."""
  naming = tensor_names.hugging_face(config)
  tensors = []
  for leaf in tensor_names.leaves(config, naming):
    value = functools.reduce(lambda tree, key: tree[key], leaf.path, params)
    shape = leaf.shape[1:] if leaf.is_stacked else leaf.shape
    shape = shape[::-1] if leaf.is_transposed else shape
    for i, name in enumerate(leaf.names):

      def make(value=value, i=i, leaf=leaf):
        part = np.asarray(
          jax.device_get(value[i] if leaf.is_stacked else value)
        )
        return part.T if leaf.is_transposed else part

      tensors.append(safetensors_writer.Tensor(name, shape, make))
  return tensors


def _shards(tensors, dtype, max_bytes):
  """Consecutive tensors, together no larger than the limit (or one alone)."""
  shards, size = [[]], 0
  for tensor in tensors:
    grown = size + safetensors_writer.num_bytes(tensor, dtype)
    if grown > max_bytes and shards[-1]:
      shards.append([])
      grown = safetensors_writer.num_bytes(tensor, dtype)
    shards[-1].append(tensor)
    size = grown
  return shards


def _weight_files(tensors, dtype, max_bytes):
  """File name -> what writes it, and the index where there are several."""
  shards = _shards(tensors, dtype, max_bytes)
  names = ["model.safetensors"]
  if len(shards) > 1:
    names = [
      f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
      for i in range(len(shards))
    ]
  contents = {
    name: functools.partial(_write, shard, dtype)
    for name, shard in zip(names, shards, strict=True)
  }
  if len(shards) > 1:
    index = {
      "metadata": {
        "total_size": sum(
          safetensors_writer.num_bytes(t, dtype) for t in tensors
        )
      },
      "weight_map": {
        tensor.name: name
        for name, shard in zip(names, shards, strict=True)
        for tensor in shard
      },
    }
    contents["model.safetensors.index.json"] = _json(index)
  return contents


def _write(shard, dtype, path):
  safetensors_writer.write(path, shard, dtype)


def _json(record):
  return (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()


def _tokenizer_config(tokenizer: Tokenizer, config):
  chat = tokenizer.chat
  end = tokenizer.inner.id_to_token(chat.stop_tokens[0])
  return {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": chat.bos_token or None,
    "eos_token": end,
    "pad_token": end,
    "clean_up_tokenization_spaces": False,
    "model_input_names": ["input_ids", "attention_mask"],
    "model_max_length": config.max_context_tokens,
    "chat_template": chat.template,
  }


def export(
  folder: pathlib.Path,
  config: ModelConfig,
  params: Any,
  tokenizer: Tokenizer,
  *,
  dtype: str,
  max_shard_bytes: int = MAX_SHARD_BYTES,
) -> None:
  """Writes the folder; files of a model that stood there are replaced.

  Args:
    folder: made if it does not exist.
    config: sizes and parts.
    params: of the model; adapters merged.
    tokenizer: of the policy.
    dtype: one of DTYPES, of all weights.
    max_shard_bytes: of one weight file.

  Raises:
    PolicyError: the decoder is none that transformers has, or a weight is
      beyond `dtype`; nothing has been replaced.
    OSError: of the file system; nothing has been replaced.
  """
  record = config_record(config, tokenizer.stop_tokens, dtype)
  folder.mkdir(parents=True, exist_ok=True)
  weights = _weight_files(
    _tensors(config, params), jax.numpy.dtype(dtype), max_shard_bytes
  )
  stale = {p.name for p in folder.glob("model*.safetensors*")} - set(weights)
  files.write_whole(
    folder,
    {
      **weights,
      "tokenizer.json": tokenizer.to_json(),
      "tokenizer_config.json": _json(_tokenizer_config(tokenizer, config)),
      "generation_config.json": _json(
        {
          "eos_token_id": list(tokenizer.stop_tokens),
          "pad_token_id": tokenizer.stop_tokens[0],
        }
      ),
      "config.json": _json(record),
    },
  )
  for name in stale:
    (folder / name).unlink()
