"""Conversations to token ids and back.

Roles and ends are special tokens that text can never produce, so that neither
a candidate nor a compiler message can forge the end of a turn. Our own
vocabulary is byte-level BPE (the `tokenizers` library): any text round-trips.
One that came with published weights has the same interface and its ChatFormat.
"""

import dataclasses
import pathlib
from collections.abc import Iterable

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from leap_jax import files
from leap_jax.chat_format import ChatFormat
from leap_jax.types import Message

PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
SPECIAL = (PAD, END, USER, ASSISTANT)
_TEMPLATE = (
  "{% for message in messages %}"
  "{{ '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' }}"
  "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


@dataclasses.dataclass(frozen=True)
class Tokenizer:
  """A vocabulary and the way conversations are written with it."""

  inner: tokenizers.Tokenizer
  chat: ChatFormat

  @property
  def vocab_size(self) -> int:
    """Number of ids: one more than the largest."""
    return max(self.inner.get_vocab(with_added_tokens=True).values()) + 1

  @property
  def stop_tokens(self) -> tuple[int, ...]:
    """Ids that end a completion; the first closes one that was cut."""
    return self.chat.stop_tokens

  def encode(self, text: str) -> list[int]:
    """Ids of plain text; never a special id."""
    return self.inner.encode(text, add_special_tokens=False).ids

  def decode(self, ids: Iterable[int]) -> str:
    """Text of ids; special tokens vanish."""
    return self.inner.decode(list(ids), skip_special_tokens=True)

  def opening(self, message: Message) -> list[int]:
    """Ids that open a conversation, and of the header of the first answer."""
    c = self.chat
    text = self.encode(c.opening_text + message.text + c.answer_text)
    return [*c.opening_ids, *text, *c.answer_ids]

  def framed(self, message: Message) -> tuple[list[int], list[int], list[int]]:
    """A later message of the user: what opens it, its text, what closes it.

    The last part ends with the header of the answer to it.
    """
    c = self.chat
    text = self.encode(c.user_text + message.text + c.answer_text)
    return list(c.user_ids), text, list(c.answer_ids)

  def context(self, message: Message) -> list[int]:
    """Ids of a later message and of the header of the answer to it."""
    head, text, tail = self.framed(message)
    return head + text + tail

  def completion(self, text: str) -> list[int]:
    """Ids of an answer as the policy would sample it, with its end."""
    return [*self.encode(text), self.stop_tokens[0]]

  def to_json(self) -> bytes:
    """What `load` reads."""
    return self.inner.to_str(pretty=True).encode()

  def save(self, path: pathlib.Path) -> None:
    """Writes the vocabulary as JSON; the file is whole or not there."""
    files.write_whole(path.parent, {path.name: self.to_json()})


def quoting(inner: tokenizers.Tokenizer, chat: ChatFormat) -> Tokenizer:
  """A tokenizer for which text that looks like a special token is text."""
  inner.encode_special_tokens = True
  return Tokenizer(inner, chat)


def _own(inner):
  """With the roles and ends of SPECIAL."""
  _, end, user, assistant = (inner.token_to_id(name) for name in SPECIAL)
  if None in (end, user, assistant):
    raise ValueError(f"the vocabulary lacks one of {', '.join(SPECIAL)}")
  chat = ChatFormat(
    opening_ids=(user,),
    opening_text="",
    user_ids=(user,),
    user_text="",
    answer_text="",
    answer_ids=(end, assistant),
    stop_tokens=(end,),
    template=_TEMPLATE,
    bos_token="",
  )
  return quoting(inner, chat)


def load(path: pathlib.Path) -> Tokenizer:
  """Reads what `save` wrote of a vocabulary of our own."""
  return _own(tokenizers.Tokenizer.from_file(str(path)))


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
  return _own(inner)


def is_own(tokenizer: Tokenizer) -> bool:
  """Whether the format is ours: then the vocabulary says it all."""
  return tokenizer.chat.template == _TEMPLATE
