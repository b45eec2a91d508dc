"""What stands around the messages of a conversation.

Contexts are append-only: the ids of turn t are a prefix of those of turn t + 1,
and what was sampled is never encoded again. So a format is only what comes
before a user's message and between it and the answer. Where plain text stands
beside a message it is encoded together with it, as it would be in one string.
"""

import dataclasses
from typing import NamedTuple


@dataclasses.dataclass(frozen=True)
class ChatFormat:
  """Ids and texts, in the order of a conversation:

      opening_ids (opening_text message answer_text) answer_ids  ANSWER end
      user_ids (user_text message answer_text) answer_ids  ANSWER end ...

  with brackets around what is encoded as one text.
  """

  opening_ids: tuple[int, ...]  # before the first message: system prompt, role
  opening_text: str
  user_ids: tuple[int, ...]  # before a later message, behind the answer's end
  user_text: str
  answer_text: str
  answer_ids: tuple[int, ...]  # behind a message: its end, the answer's role
  # Ids that end an answer when they are sampled; the first is the format's own.
  stop_tokens: tuple[int, ...]
  # For whoever renders conversations as text, outside of this project:
  template: str  # Jinja source of the same format
  bos_token: str  # what the template calls by this name; may be empty

  @property
  def frame_tokens(self) -> int:
    """Ids around a later message, with the end of an answer that was cut.

    Text beside the message is left out: it may be cut with the message.
    """
    return 1 + len(self.user_ids) + len(self.answer_ids)

  @classmethod
  def from_record(cls, record: dict) -> "ChatFormat":
    """From what JSON makes of `dataclasses.asdict`.

    Raises:
      TypeError: a field is unknown or missing.
    """
    return cls(
      **{k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    )


class ChatOverrides(NamedTuple):
  """What a run says about conversations; None leaves it to the model."""

  system_prompt: str | None = None
  template: str | None = None  # Jinja source; a base model has none of its own
  thinking: bool | None = None  # the `enable_thinking` of templates (Qwen3)

  @property
  def variables(self) -> dict[str, bool]:
    """What the template reads beside messages and special tokens."""
    return {} if self.thinking is None else {"enable_thinking": self.thinking}


AS_PUBLISHED = ChatOverrides()
