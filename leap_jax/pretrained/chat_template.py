"""A model's chat template to a ChatFormat.

The template is a program of whoever made the weights: it runs in jinja2's
immutable sandbox, as it does in the transformers library, and only here, on
messages that mark places. What stands between the places is the format.

Some templates put a block of thought behind the role when an answer is to come
and leave it out of earlier answers. Here it stays where it was: what the policy
read or wrote is never taken back.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox
import tokenizers

from leap_jax import tokenizer as tokenizer_lib
from leap_jax.chat_format import ChatFormat
from leap_jax.policy_error import PolicyError
from leap_jax.types import Message

_QUESTIONS = ("QUESTIONONE", "QUESTIONTWO", "QUESTIONTHREE")
_ANSWERS = ("ANSWERONE", "ANSWERTWO")


def _raise(message):
  raise jinja2.TemplateError(message)


def _to_json(value, **options):
  return json.dumps(value, ensure_ascii=False, **options)


def _compiled(template):
  environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
  )
  environment.filters["tojson"] = _to_json
  # No clock: the same template gives the same ids on every day.
  environment.globals["raise_exception"] = _raise
  return environment.from_string(template)


def render(
  template: str,
  messages: Sequence[Mapping[str, str]],
  variables: Mapping[str, Any],
) -> str:
  """The text of a conversation, up to where the next answer begins.

  Args:
    template: Jinja source.
    messages: each with `role` and `content`.
    variables: others that the template reads, such as `bos_token`.

  Raises:
    PolicyError: the template is broken or refuses the messages.
  """
  try:
    return _compiled(template).render(
      messages=messages,
      add_generation_prompt=True,
      tools=None,
      documents=None,
      **variables,
    )
  except (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    ArithmeticError,  # the sandbox's: a range that is too long
    RecursionError,
  ) as error:
    line = str(error).split("\n")[0]
    raise PolicyError(f"the chat template cannot be used: {line}") from None


def _conversation(turns, system_prompt):
  messages = []
  if system_prompt is not None:
    messages.append({"role": "system", "content": system_prompt})
  for i in range(turns):
    messages.append({"role": "user", "content": _QUESTIONS[i]})
    if i + 1 < turns:
      messages.append({"role": "assistant", "content": _ANSWERS[i]})
  return messages


def _split(text, place):
  """What stands before and behind a place that occurs once."""
  before, _, behind = text.partition(place)
  if text.count(place) != 1:
    raise PolicyError(
      "the chat template changes or repeats what a message says; contexts "
      "must be append-only"
    )
  return before, behind


def _behind_answer(text, start, closing, answer):
  """What follows an answer in a longer conversation.

  Args:
    text: of the conversation.
    start: of it, up to the question that is answered.
    closing: what stood behind that question before there was an answer; the
      template may keep all of it or its first part.
    answer: the mark.
  """
  header, is_there, rest = text.removeprefix(start).partition(answer)
  if (
    not text.startswith(start) or not is_there or not closing.startswith(header)
  ):
    raise PolicyError(
      "the chat template writes earlier turns anew when later ones come; "
      "contexts must be append-only"
    )
  return rest


def _with_special(inner, text):
  """Ids of a text in which special tokens count as such."""
  inner.encode_special_tokens = False
  try:
    return inner.encode(text, add_special_tokens=False).ids
  finally:
    inner.encode_special_tokens = True


def _specials(inner):
  added = inner.get_added_tokens_decoder().values()
  return [token.content for token in added if token.special]


def _last_special(inner, text):
  """Splits behind the last special token."""
  ends = [text.rfind(s) + len(s) for s in _specials(inner) if s in text]
  at = max(ends, default=0)
  return text[:at], text[at:]


def _first_special(inner, text):
  """Splits before the first special token."""
  at = min([text.find(s) for s in _specials(inner) if s in text], default=None)
  return (text, "") if at is None else (text[:at], text[at:])


def derive(
  inner: tokenizers.Tokenizer,
  template: str,
  *,
  stop_tokens: Sequence[int],
  variables: Mapping[str, Any],
  system_prompt: str | None,
) -> ChatFormat:
  """The format that a template gives to conversations.

  Args:
    inner: the vocabulary; reads special tokens as text from now on.
    template: Jinja source.
    stop_tokens: ids that end an answer, by the model's own account.
    variables: what the template reads beside the messages.
    system_prompt: None leaves it to the template.

  Raises:
    PolicyError: contexts would not be append-only, an answer does not end with
      a stop token, or text can produce one.
  """
  one, two, three = (
    render(template, _conversation(n, system_prompt), variables)
    for n in (1, 2, 3)
  )
  opening, closing = _split(one, _QUESTIONS[0])
  between, closing_of_two = _split(
    _behind_answer(two, opening + _QUESTIONS[0], closing, _ANSWERS[0]),
    _QUESTIONS[1],
  )
  start = two.removesuffix(closing_of_two)
  again, closing_of_three = _split(
    _behind_answer(three, start, closing, _ANSWERS[1]), _QUESTIONS[2]
  )
  if again != between or {closing_of_two, closing_of_three} != {closing}:
    raise PolicyError(
      "the chat template frames later turns differently; contexts must be "
      "append-only"
    )
  ends = [
    (i, inner.id_to_token(i))
    for i in stop_tokens
    if between.startswith(inner.id_to_token(i))
  ]
  if not ends:
    known = ", ".join(repr(inner.id_to_token(i)) for i in stop_tokens)
    raise PolicyError(
      f"the chat template ends an answer with {between[:20]!r}, the model with "
      f"{known}: an answer would never end"
    )
  end, end_text = max(ends, key=lambda pair: len(pair[1]))
  opening_ids, opening_text = _last_special(inner, opening)
  user_ids, user_text = _last_special(inner, between[len(end_text) :])
  answer_text, answer_ids = _first_special(inner, closing)
  ids = lambda text: tuple(_with_special(inner, text))
  chat = ChatFormat(
    opening_ids=ids(opening_ids),
    opening_text=opening_text,
    user_ids=ids(user_ids),
    user_text=user_text,
    answer_text=answer_text,
    answer_ids=ids(answer_ids),
    stop_tokens=(end, *(i for i in stop_tokens if i != end)),
    template=template,
    bos_token=variables.get("bos_token", ""),
  )
  _check_quoting(inner, chat)
  longer = one + _ANSWERS[0] + between + _QUESTIONS[1] + closing
  _check_borders(inner, chat, longer)
  return chat


def _check_borders(inner, chat, text):
  """Parts that are encoded one by one are what the whole text is."""
  v = tokenizer_lib.quoting(inner, chat)
  parts = v.opening(Message("user", _QUESTIONS[0]))
  parts += v.completion(_ANSWERS[0])
  parts += v.context(Message("user", _QUESTIONS[1]))
  if parts != _with_special(inner, text):
    raise PolicyError(
      "the tokenizer reads the parts of a conversation differently from the "
      "whole (does it put a space before a text?)"
    )


def _check_quoting(inner, chat):
  """No text gives an id that ends or frames a message."""
  special = set(_specials(inner))
  frame = {*chat.stop_tokens}
  for i in (*chat.opening_ids, *chat.user_ids, *chat.answer_ids):
    if inner.id_to_token(i) in special:
      frame.add(i)
  inner.encode_special_tokens = True
  for i in sorted(frame):
    text = inner.id_to_token(i)
    if i in inner.encode(text, add_special_tokens=False).ids:
      raise PolicyError(
        f"the text {text!r} gives the id {i} that ends or frames a message; "
        "the tokenizer does not mark it as special"
      )
