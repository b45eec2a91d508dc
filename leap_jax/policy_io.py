"""A policy as a folder: sizes, vocabulary, weights.

policy.json          ModelConfig, but for how it is executed
tokenizer.json       vocabulary
weights.safetensors  parameters, named by their path, as float16 or float32
"""

import dataclasses
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from leap_jax import files
from leap_jax import tokenizer as tokenizer_lib
from leap_jax.models import transformer

SHIPPED = pathlib.Path(__file__).parent / "data" / "tiny"
"""The warm-started policy of the quickstart."""

_SETTINGS, _VOCABULARY = "policy.json", "tokenizer.json"
_WEIGHTS = "weights.safetensors"
# Fields of ModelConfig that are a choice of each run and no property of the
# weights. Older folders hold them; what they say is ignored.
_EXECUTION = ("remat",)


class PolicyError(Exception):
  """The folder holds no usable policy; one line says why."""


def _flatten(params):
  return {
    "/".join(key.key for key in path): leaf
    for path, leaf in jax.tree_util.tree_leaves_with_path(params)
  }


def _without_execution(settings):
  return {k: v for k, v in settings.items() if k not in _EXECUTION}


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
  sizes = _without_execution(dataclasses.asdict(config))
  settings = json.dumps(sizes, indent=2)
  arrays = {
    name: np.asarray(jax.device_get(leaf)).astype(dtype)
    for name, leaf in _flatten(params).items()
  }
  files.write_whole(
    folder,
    {
      _WEIGHTS: safetensors.numpy.save(arrays),
      _VOCABULARY: tokenizer.to_json(),
      _SETTINGS: (settings + "\n").encode(),
    },
  )


def load(
  folder: pathlib.Path,
) -> tuple[transformer.ModelConfig, Any, tokenizer_lib.Tokenizer]:
  """Reads a policy; parameters are float32, `remat` is the default.

  Raises:
    PolicyError: a file is missing or damaged, or a shape is not the model's.
  """
  for name in (_SETTINGS, _VOCABULARY, _WEIGHTS):
    if not (folder / name).is_file():
      raise PolicyError(f"no policy in {folder}: {name} is missing")
  try:
    settings = json.loads((folder / _SETTINGS).read_text())
    config = transformer.ModelConfig.from_record(_without_execution(settings))
    arrays = safetensors.numpy.load_file(str(folder / _WEIGHTS))
    tokenizer = tokenizer_lib.load(folder / _VOCABULARY)
  except Exception as error:  # the tokenizers library raises bare Exception
    raise PolicyError(f"damaged policy in {folder}: {error}") from None
  wanted = jax.eval_shape(
    lambda key: transformer.init(config, key), jax.random.key(0)
  )
  names = _flatten(wanted)
  if extra := sorted(set(arrays) - set(names)):
    raise PolicyError(f"{folder / _WEIGHTS}: unknown tensor {extra[0]}")
  for name, leaf in names.items():
    if name not in arrays:
      raise PolicyError(f"{folder / _WEIGHTS}: tensor {name} is missing")
    if arrays[name].shape != leaf.shape:
      raise PolicyError(
        f"{folder / _WEIGHTS}: {name} has shape {arrays[name].shape}, the "
        f"model's is {leaf.shape}"
      )
  if tokenizer.vocab_size > config.vocab_size:
    raise PolicyError(
      f"{folder}: the tokenizer has {tokenizer.vocab_size} ids, the model "
      f"{config.vocab_size}"
    )
  params = jax.tree_util.tree_map_with_path(
    lambda path, _: jnp.asarray(
      arrays["/".join(key.key for key in path)], jnp.float32
    ),
    wanted,
  )
  return config, params, tokenizer
