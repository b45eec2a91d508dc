"""Conversations to token ids and back.

Byte-level BPE (the `tokenizers` library): any text round-trips. Roles and ends
are special tokens that text can never produce, so that neither a candidate nor
a compiler message can forge the end of a turn.
"""

import dataclasses
import pathlib
from collections.abc import Iterable

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from leap_jax import files
from leap_jax.types import Message

PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
SPECIAL = (PAD, END, USER, ASSISTANT)
_ROLES = {"user": USER, "assistant": ASSISTANT}


@dataclasses.dataclass(frozen=True)
class Tokenizer:
  """A trained vocabulary."""

  inner: tokenizers.Tokenizer

  @property
  def vocab_size(self) -> int:
    """Number of ids."""
    return self.inner.get_vocab_size()

  def id_of(self, special: str) -> int:
    """The id of a special token."""
    return self.inner.token_to_id(special)

  @property
  def stop_tokens(self) -> tuple[int, ...]:
    """Ids that end a completion."""
    return (self.id_of(END),)

  def encode(self, text: str) -> list[int]:
    """Ids of plain text; never a special id."""
    return self.inner.encode(text, add_special_tokens=False).ids

  def decode(self, ids: Iterable[int]) -> str:
    """Text of ids; special tokens vanish."""
    return self.inner.decode(list(ids), skip_special_tokens=True)

  def context(self, message: Message) -> list[int]:
    """Ids of a user's message and of the header of the answer to it."""
    return [
      self.id_of(_ROLES[message.role]),
      *self.encode(message.text),
      self.id_of(END),
      self.id_of(ASSISTANT),
    ]

  def completion(self, text: str) -> list[int]:
    """Ids of an answer as the policy would sample it, with its end."""
    return [*self.encode(text), self.id_of(END)]

  def to_json(self) -> bytes:
    """What `load` reads."""
    return self.inner.to_str(pretty=True).encode()

  def save(self, path: pathlib.Path) -> None:
    """Writes the vocabulary as JSON; the file is whole or not there."""
    files.write_whole(path.parent, {path.name: self.to_json()})


def _finish(inner):
  # Text that looks like a special token is text.
  inner.encode_special_tokens = True
  return Tokenizer(inner)


def load(path: pathlib.Path) -> Tokenizer:
  """Reads what `save` wrote."""
  return _finish(tokenizers.Tokenizer.from_file(str(path)))


def train(texts: Iterable[str], vocab_size: int) -> Tokenizer:
  """Learns a vocabulary.

  Pieces never cross a line's end and digits stand alone, so that common lines
  of code become a few tokens while numbers keep their structure.

  Args:
    texts: the corpus.
    vocab_size: ids in all, special tokens and 256 bytes included.
  """
  inner = tokenizers.Tokenizer(models.BPE())
  inner.pre_tokenizer = pre_tokenizers.Sequence(
    [
      pre_tokenizers.Split(tokenizers.Regex(r"\n|\d|[^\n\d]+"), "isolated"),
      pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
  )
  inner.decoder = decoders.ByteLevel()
  trainer = trainers.BpeTrainer(
    vocab_size=vocab_size,
    special_tokens=list(SPECIAL),
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False,
  )
  inner.train_from_iterator(texts, trainer)
  return _finish(inner)
