"""Tokenizer, chat template and stop tokens of a Hugging Face folder."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import tokenizers

from leap_jax import tokenizer as tokenizer_lib
from leap_jax.chat_format import ChatOverrides
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import chat_template


def read_json(path: pathlib.Path) -> dict[str, Any]:
  """A JSON object.

  Raises:
    PolicyError: it is not there or is none.
  """
  if not path.is_file():
    raise PolicyError(f"no model in {path.parent}: {path.name} is missing")
  try:
    record = json.loads(path.read_text())
  except ValueError as error:
    raise PolicyError(f"{path} is damaged: {error}") from None
  if not isinstance(record, dict):
    raise PolicyError(f"{path} is damaged: it holds no object")
  return record


def _optional(path):
  return read_json(path) if path.is_file() else {}


def _text_of(token):
  """Of a special token: a string, or an object with its content."""
  return token.get("content") if isinstance(token, Mapping) else token


def _template(folder, settings):
  """The chat template: a file of its own, or a field; None without one."""
  path = folder / "chat_template.jinja"
  if path.is_file():
    try:
      return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
      raise PolicyError(f"{path} is damaged: {error}") from None
  template = settings.get("chat_template")
  if template is None:
    template = _optional(folder / "chat_template.json").get("chat_template")
  if isinstance(template, Sequence) and not isinstance(template, str):
    try:
      named = {entry["name"]: entry["template"] for entry in template}
    except (KeyError, TypeError) as error:
      raise PolicyError(
        f"{folder}: a list of chat templates without {error}: each has a name "
        "and a template"
      ) from None
    template = named.get("default")
  return template


def _stop_tokens(folder, config, inner, settings):
  """Ids that end an answer: of generation_config.json before config.json."""
  found = _optional(folder / "generation_config.json").get("eos_token_id")
  if found is None:
    found = config.get("eos_token_id")
  is_list = isinstance(found, Sequence) and not isinstance(found, str)
  ids = list(found) if is_list else [found]
  own = _text_of(settings.get("eos_token"))
  ids.append(inner.token_to_id(own) if own else None)
  ids = list(dict.fromkeys(i for i in ids if i is not None))
  added = inner.get_added_tokens_decoder()
  for i in ids:
    if not isinstance(i, int) or i < 0:
      raise PolicyError(f"eos_token_id={i!r} must be an id, or a list of ids")
    if inner.id_to_token(i) is None:
      raise PolicyError(
        f"the model ends answers with id {i}, which the tokenizer does not "
        "have; tokenizer.json belongs to another model"
      )
    if i not in added or not added[i].special:
      raise PolicyError(
        f"the model ends answers with id {i}, which is "
        f"{inner.id_to_token(i)!r} for the tokenizer and no special token; "
        "tokenizer.json belongs to another model"
      )
  if not ids:
    raise PolicyError("no file names an eos_token_id: answers would never end")
  return ids


def load(
  folder: pathlib.Path,
  config: Mapping[str, Any],
  overrides: ChatOverrides,
) -> tokenizer_lib.Tokenizer:
  """The tokenizer with the format of the folder's chat template.

  Args:
    folder: with tokenizer.json, tokenizer_config.json, generation_config.json.
    config: of config.json.
    overrides: of the run.

  Raises:
    PolicyError: a file is missing or damaged, or the template cannot be used.
  """
  path = folder / "tokenizer.json"
  if not path.is_file():
    raise PolicyError(f"no tokenizer in {folder}: tokenizer.json is missing")
  try:
    inner = tokenizers.Tokenizer.from_file(str(path))
  except Exception as error:  # the library raises bare Exception
    raise PolicyError(f"{path} is damaged: {error}") from None
  settings = _optional(folder / "tokenizer_config.json")
  template = overrides.template or _template(folder, settings)
  if template is None:
    raise PolicyError(
      f"{folder} holds no chat template (chat_template.jinja or a field of "
      "tokenizer_config.json): it is no instruction-tuned model; "
      "give one with config.policy.chat_template"
    )
  special = _optional(folder / "special_tokens_map.json")
  variables = {
    name: _text_of(settings.get(name, special.get(name))) or ""
    for name in ("bos_token", "eos_token", "pad_token", "unk_token")
  }
  try:
    chat = chat_template.derive(
      inner,
      template,
      stop_tokens=_stop_tokens(folder, config, inner, settings),
      variables=variables | overrides.variables,
      system_prompt=overrides.system_prompt,
    )
  except PolicyError as error:
    raise PolicyError(f"{folder}: {error}") from None
  return tokenizer_lib.quoting(inner, chat)
