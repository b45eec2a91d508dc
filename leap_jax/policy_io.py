"""A policy as a folder of ours, and every other place that one can come from.

policy.json          ModelConfig, but for how it is executed
tokenizer.json       vocabulary
chat.json            ChatFormat; not there for a vocabulary of our own
weights.safetensors  parameters, named by their path, as float16 or float32
"""

import dataclasses
import functools
import json
import pathlib
from typing import Any

import jax
import tokenizers

from leap_jax import files, hosts
from leap_jax import tokenizer as tokenizer_lib
from leap_jax.chat_format import AS_PUBLISHED, ChatFormat, ChatOverrides
from leap_jax.models import transformer
from leap_jax.policy_error import PolicyError
from leap_jax.policy_source import OpenPolicy, padding_ids
from leap_jax.pretrained import (
  assemble,
  safetensors_file,
  safetensors_writer,
  tensor_names,
)

SHIPPED = pathlib.Path(__file__).parent / "data" / "tiny"
"""The warm-started policy of the quickstart."""

_SETTINGS, _VOCABULARY = "policy.json", "tokenizer.json"
_CHAT, _WEIGHTS = "chat.json", "weights.safetensors"
# A choice of each run that older folders hold; what they say is ignored.
_OLDER = ("remat",)


def _json(record):
  return (json.dumps(record, indent=2) + "\n").encode()


def save(
  folder: pathlib.Path,
  config: transformer.ModelConfig,
  params: Any,
  tokenizer: tokenizer_lib.Tokenizer,
  dtype: type,
) -> None:
  """Writes a policy; one that stood there is replaced as a whole.

  Args:
    folder: made if it does not exist.
    config: sizes.
    params: of the model.
    tokenizer: of the policy.
    dtype: np.float32, or np.float16 for half the bytes.
  """
  folder.mkdir(parents=True, exist_ok=True)
  tensors = []
  for path, leaf in jax.tree_util.tree_leaves_with_path(params):
    name = "/".join(key.key for key in path)
    make = functools.partial(hosts.to_host, leaf)
    tensors.append(safetensors_writer.Tensor(name, leaf.shape, make))
  contents = {
    _WEIGHTS: lambda path: safetensors_writer.write(path, tensors, dtype),
    _VOCABULARY: tokenizer.to_json(),
    _SETTINGS: _json(dataclasses.asdict(config)),
  }
  if not tokenizer_lib.is_own(tokenizer):
    contents[_CHAT] = _json(dataclasses.asdict(tokenizer.chat))
  files.write_whole(folder, contents)


def _open_own(folder):
  """A folder that `save` has written."""
  for name in (_SETTINGS, _VOCABULARY, _WEIGHTS):
    if not (folder / name).is_file():
      raise PolicyError(f"no policy in {folder}: {name} is missing")
  try:
    settings = json.loads((folder / _SETTINGS).read_text())
    sizes = {k: v for k, v in settings.items() if k not in _OLDER}
    config = transformer.ModelConfig.from_record(sizes)
    if (folder / _CHAT).is_file():
      chat = ChatFormat.from_record(json.loads((folder / _CHAT).read_text()))
      inner = tokenizers.Tokenizer.from_file(str(folder / _VOCABULARY))
      tokenizer = tokenizer_lib.quoting(inner, chat)
    else:
      tokenizer = tokenizer_lib.load(folder / _VOCABULARY)
  except Exception as error:  # the tokenizers library raises bare Exception
    raise PolicyError(f"damaged policy in {folder}: {error}") from None
  padding_ids(folder, tokenizer, config.vocab_size)  # that it belongs here
  source = safetensors_file.open_file(folder / _WEIGHTS)
  leaves = tensor_names.own_leaves(config)
  return OpenPolicy(
    config, tokenizer, functools.partial(assemble.assemble, leaves, source)
  )


def open_policy(
  path: pathlib.Path, overrides: ChatOverrides = AS_PUBLISHED
) -> OpenPolicy:
  """Opens a policy without reading its weights.

  Args:
    path: a folder that a run has written, a Hugging Face folder, or a GGUF
      file.
    overrides: for published weights; a folder of ours holds the format that it
      was trained with.

  Raises:
    PolicyError: nothing of these, or it cannot be used.
  """
  if path.is_dir() and not (path / "config.json").is_file():
    if overrides != AS_PUBLISHED:
      raise PolicyError(
        f"{path} holds the chat format that it was trained with; unset "
        "config.policy.system_prompt, chat_template and thinking"
      )
    if not (path / "policy.json").is_file():
      raise PolicyError(
        f"no policy in {path}: policy.json is missing, which a run writes, and "
        "so is config.json of a Hugging Face folder"
      )
    return _open_own(path)
  # Needed for published weights alone, as is jinja2, which it loads.
  from leap_jax.pretrained import published

  if path.is_file():
    return published.open_gguf(path, overrides)
  if path.is_dir():
    return published.open_folder(path, overrides)
  raise PolicyError(
    f"no policy in {path}: no folder of a run, no Hugging Face folder and no "
    "GGUF file is there"
  )


def load(
  path: pathlib.Path, overrides: ChatOverrides = AS_PUBLISHED
) -> tuple[transformer.ModelConfig, Any, tokenizer_lib.Tokenizer]:
  """Reads a policy from wherever `open_policy` can; parameters are float32.

  Raises:
    PolicyError: a file is missing or damaged, a shape is not the model's, or a
      value is not finite.
  """
  policy = open_policy(path, overrides)
  return policy.config, policy.read(), policy.tokenizer
