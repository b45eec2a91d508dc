"""The language model in a folder of the transformers library, alone or as a
part of a model that sees images.

Gemma 3 from 4B on is a language model beside a vision tower and a projector.
Its `config.json` holds the language model's under `text_config`, where
published ones leave out what is a default of the library's class.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from leap_jax.policy_error import PolicyError


class Layout(NamedTuple):
  """Where the tensors of a language model are, and what lies beside them."""

  root: str = "model."  # prefix of all but the head
  head: str = "lm_head"
  # Prefix of tensors that text does not need -> the part they belong to.
  aside: Mapping[str, str] = {}


PLAIN = Layout()  # a language model alone
_GEMMA3 = (
  # As published, and as the library writes it.
  Layout(
    "language_model.model.",
    "language_model.lm_head",
    {"vision_tower.": "vision tower", "multi_modal_projector.": "projector"},
  ),
  # As the library names its modules since 4.52: what is written around it.
  Layout(
    "model.language_model.",
    "lm_head",
    {
      "model.vision_tower.": "vision tower",
      "model.multi_modal_projector.": "projector",
    },
  ),
)

# Of Gemma3TextConfig (transformers 4.50 to 5.24), where a text-only model has
# the field in its file; hf_config knows the others.
_GEMMA3_DEFAULTS = {
  "vocab_size": 262_208,
  "hidden_size": 2304,
  "intermediate_size": 9216,
  "num_hidden_layers": 26,
  "num_attention_heads": 8,
  "num_key_value_heads": 4,
  "head_dim": 256,
  "max_position_embeddings": 131_072,
  "eos_token_id": 1,
}
# Of the whole model: they hold for its language model too.
_OF_THE_WHOLE = ("eos_token_id", "quantization_config")


class TextPart(NamedTuple):
  """What a folder says of its language model."""

  record: Mapping[str, Any]  # `config.json` of that model alone
  layouts: Sequence[Layout]  # one of these


def _gemma3(config):
  text = config.get("text_config")
  if not isinstance(text, Mapping):
    raise PolicyError(f"config.json: text_config={text!r} must be an object")
  kind = text.get("model_type", "gemma3_text")
  if kind != "gemma3_text":
    raise PolicyError(
      f"config.json: text_config.model_type={kind!r} is not supported in "
      "Gemma3ForConditionalGeneration; it must be 'gemma3_text'"
    )
  whole = config.get("tie_word_embeddings", True)
  tied = text.get("tie_word_embeddings", whole)
  if tied != whole:
    raise PolicyError(
      f"config.json: text_config.tie_word_embeddings={tied!r}, but "
      f"{whole!r} of the whole model; set both to what the weights are"
    )
  return TextPart(
    _GEMMA3_DEFAULTS
    | dict(text)
    | {name: config[name] for name in _OF_THE_WHOLE if config.get(name)}
    | {"architectures": ["Gemma3ForCausalLM"], "tie_word_embeddings": whole},
    _GEMMA3,
  )


WITH_IMAGES = {"Gemma3ForConditionalGeneration": _gemma3}


def of(config: Mapping[str, Any]) -> TextPart:
  """The language model that a `config.json` describes.

  Args:
    config: of any architecture; one that is not in WITH_IMAGES is taken for a
      language model.

  Raises:
    PolicyError: the parts of the record contradict each other.
  """
  names = config.get("architectures")
  name = names[0] if isinstance(names, list) and names else names
  if isinstance(name, str) and name in WITH_IMAGES:
    return WITH_IMAGES[name](config)
  return TextPart(config, (PLAIN,))


def layout_of(layouts: Sequence[Layout], names: Mapping[str, Any]) -> Layout:
  """That of the tensors that are there, or the first one."""
  for layout in layouts:
    if f"{layout.root}embed_tokens.weight" in names:
      return layout
  return layouts[0]


def left_aside(layout: Layout, names: Mapping[str, Any]) -> dict[str, str]:
  """Tensor -> the part it belongs to, of what text does not need."""
  return {
    name: part
    for name in names
    for prefix, part in layout.aside.items()
    if name.startswith(prefix)
  }
