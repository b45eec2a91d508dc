"""A policy before its weights are read."""

from collections.abc import Callable
from typing import Any, NamedTuple

from leap_jax.models.config import ModelConfig
from leap_jax.policy_error import PolicyError
from leap_jax.tokenizer import Tokenizer

# Published embeddings are filled up to a round number: Qwen2.5's 151,665 ids to
# 151,936 or 152,064 rows.
_MOST_UNUSED = 1024


class OpenPolicy(NamedTuple):
  """Sizes and tokenizer, and how to get the parameters."""

  config: ModelConfig
  tokenizer: Tokenizer
  # read(dtype=jnp.float32, place=...) -> tree of parameters, where
  # `place(path, array)` puts each array on the devices as soon as it is whole.
  read: Callable[..., Any]
  notes: tuple[str, ...] = ()  # lines about what was chosen, for the user


def padding_ids(where: object, tokenizer: Tokenizer, rows: int) -> int:
  """How many of the embedding's last rows no token has.

  A tokenizer may have special tokens behind the embedding (Gemma 3's names an
  image): no text gives them and no policy samples them.

  Args:
    where: folder or file, for the message.
    tokenizer: of the policy.
    rows: of the embedding.

  Raises:
    PolicyError: the tokenizer can give an id that has no row.
  """
  chat = tokenizer.chat
  added = tokenizer.inner.get_added_tokens_decoder()
  vocabulary = tokenizer.inner.get_vocab(with_added_tokens=True).values()
  framing = {*chat.opening_ids, *chat.user_ids, *chat.answer_ids}
  used = framing | {*chat.stop_tokens}
  for i in (i for i in vocabulary if i >= rows):
    if i in used or i not in added or not added[i].special:
      raise PolicyError(
        f"{where}: the tokenizer has {tokenizer.vocab_size} ids, the model "
        f"{rows}; it belongs to another model"
      )
  unused = max(rows - tokenizer.vocab_size, 0)
  if unused > max(_MOST_UNUSED, rows // 20):
    raise PolicyError(
      f"{where}: the model has {rows} ids, the tokenizer only "
      f"{tokenizer.vocab_size}; it belongs to another model"
    )
  return unused
