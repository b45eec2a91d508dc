"""The tokenizer that a GGUF file holds."""

from typing import Any

import tokenizers
from tokenizers import (
  AddedToken,
  Regex,
  decoders,
  models,
  normalizers,
  pre_tokenizers,
)

from leap_jax import tokenizer as tokenizer_lib
from leap_jax.chat_format import ChatOverrides
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import chat_template
from leap_jax.pretrained.gguf_file import GgufFile

# `tokenizer.ggml.token_type`
_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5

# Where a word ends, by `tokenizer.ggml.pre`. The two expressions differ in how
# many digits stand together.
_WORDS = (
  r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}"
  r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _by_words(digits):
  return [
    pre_tokenizers.Split(Regex(_WORDS.format(digits=digits)), "isolated"),
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
  ]


_PRE = {
  "qwen2": lambda: _by_words(r"\p{N}"),
  "llama-bpe": lambda: _by_words(r"\p{N}{1,3}"),
  "smollm": lambda: [
    pre_tokenizers.Digits(individual_digits=True),
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
  ],
}
# Tokens that end an answer, beside the one that the metadata names: published
# models end with either, and llama.cpp stops at them by name.
_ENDS = (
  "<|im_end|>",
  "<|endoftext|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<|end_of_text|>",
  "<end_of_turn>",
  "<eos>",
)


def _byte_level(file, vocabulary):
  """Byte-level BPE with the file's merges (Llama 3, Qwen, SmolLM2)."""
  pre = file.metadata.get("tokenizer.ggml.pre", "default")
  if pre not in _PRE:
    raise PolicyError(
      f"{file.path}: pre-tokenizer {pre!r} is not supported; those that are: "
      f"{', '.join(_PRE)}"
    )
  merges = file.metadata.get("tokenizer.ggml.merges", ())
  try:
    model = models.BPE(
      vocab=vocabulary,
      merges=[tuple(merge.split(" ")) for merge in merges],
      # Llama 3: a word that is a token is one, whatever the merges say.
      ignore_merges=pre == "llama-bpe",
    )
  except Exception as error:  # the library raises bare Exception
    raise PolicyError(f"{file.path}: damaged merges: {error}") from None
  inner = tokenizers.Tokenizer(model)
  # No normalizer: any text comes back as it was.
  inner.pre_tokenizer = pre_tokenizers.Sequence(_PRE[pre]())
  inner.decoder = decoders.ByteLevel()
  return inner


def _merges_by_score(vocabulary, tokens, scores, types):
  """SentencePiece joins the pair whose piece has the best score.

  So every way to cut a piece in two is a merge, ranked by the piece's score;
  the file holds no merges (Gemma).
  """
  ranked = []
  for i, token in enumerate(tokens):
    if types[i] not in (_NORMAL, _USER_DEFINED) or len(token) < 2:
      continue
    cuts = [(token[:j], token[j:]) for j in range(1, len(token))]
    pairs = [(a, b) for a, b in cuts if a in vocabulary and b in vocabulary]
    pairs.sort(key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
    ranked += [(-scores[i], i, pair) for pair in pairs]
  ranked.sort(key=lambda entry: entry[:2])
  return [pair for _, _, pair in ranked]


def _sentence_pieces(file, vocabulary, tokens, types):
  """SentencePiece BPE with byte fallback (Gemma)."""
  if file.metadata.get("tokenizer.ggml.add_space_prefix", True):
    raise PolicyError(
      f"{file.path}: a SentencePiece vocabulary that puts a space before a "
      "text (as Llama 2 has) is not supported"
    )
  scores = file.metadata["tokenizer.ggml.scores"]
  inner = tokenizers.Tokenizer(
    models.BPE(
      vocab=vocabulary,
      merges=_merges_by_score(vocabulary, tokens, scores, types),
      unk_token="<unk>",
      fuse_unk=True,
      byte_fallback=True,
    )
  )
  inner.normalizer = normalizers.Replace(" ", "\u2581")
  inner.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
  inner.decoder = decoders.Sequence(
    [
      decoders.Replace("\u2581", " "),
      decoders.ByteFallback(),
      decoders.Fuse(),
    ]
  )
  return inner


def vocabulary_of(file: GgufFile) -> tokenizers.Tokenizer:
  """The vocabulary without a format; unused ids at its end are left out.

  Raises:
    PolicyError: the file holds none, or one of an unknown kind.
  """
  metadata: dict[str, Any] = file.metadata
  tokens = metadata.get("tokenizer.ggml.tokens")
  kind = metadata.get("tokenizer.ggml.model", "none")
  if tokens is None or kind not in ("gpt2", "llama"):
    raise PolicyError(
      f"{file.path}: tokenizer {kind!r} is not supported; those that are: gpt2 "
      "(byte-level BPE), llama (SentencePiece)"
    )
  types = metadata.get("tokenizer.ggml.token_type", [_NORMAL] * len(tokens))
  count = len(tokens)
  while count and types[count - 1] == _UNUSED:
    count -= 1
  tokens, types = tokens[:count], types[:count]
  vocabulary = {token: i for i, token in enumerate(tokens)}
  if kind == "gpt2":
    inner = _byte_level(file, vocabulary)
  else:
    inner = _sentence_pieces(file, vocabulary, tokens, types)
  add = lambda wanted, special: [
    AddedToken(token, special=special, normalized=False)
    for token, kind in zip(tokens, types, strict=True)
    if kind == wanted
  ]
  inner.add_special_tokens(add(_CONTROL, True))
  inner.add_tokens(add(_USER_DEFINED, False))
  return inner


def _text(file, name):
  """Of a token that the metadata names by its id; empty without one."""
  i = file.metadata.get(f"tokenizer.ggml.{name}_token_id")
  return "" if i is None else file.metadata["tokenizer.ggml.tokens"][i]


def load(file: GgufFile, overrides: ChatOverrides) -> tokenizer_lib.Tokenizer:
  """The tokenizer with the format of the file's chat template.

  Raises:
    PolicyError: see `vocabulary_of` and `chat_template.derive`; or the file
      holds no template.
  """
  template = overrides.template or file.metadata.get("tokenizer.chat_template")
  if template is None:
    raise PolicyError(
      f"{file.path} holds no chat template: it is no instruction-tuned model; "
      "give one with config.policy.chat_template"
    )
  inner = vocabulary_of(file)
  named = file.metadata.get("tokenizer.ggml.eos_token_id")
  control = {
    token.content for token in inner.get_added_tokens_decoder().values()
  }
  ends = [inner.token_to_id(name) for name in _ENDS if name in control]
  stop_tokens = list(
    dict.fromkeys([i for i in (named, *ends) if i is not None])
  )
  try:
    chat = chat_template.derive(
      inner,
      template,
      stop_tokens=stop_tokens,
      variables={
        "bos_token": _text(file, "bos"),
        "eos_token": _text(file, "eos"),
      }
      | overrides.variables,
      system_prompt=overrides.system_prompt,
    )
  except PolicyError as error:
    raise PolicyError(f"{file.path}: {error}") from None
  return tokenizer_lib.quoting(inner, chat)
