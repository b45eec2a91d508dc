"""Problems and turns to conversations; text only."""

import functools
import importlib.resources

from kernels_eval.schema import ProblemCard
from leap_jax.types import Message


@functools.cache
def template(name: str) -> str:
  """The literal text of a template, without its last newline."""
  folder = importlib.resources.files("leap_jax") / "templates"
  return (folder / f"{name}.txt").read_text().rstrip("\n")


def problem_message(problem: ProblemCard) -> Message:
  """What opens a conversation."""
  text = template("problem").format(
    statement=problem.statement, signature=problem.signature
  )
  return Message("user", text)


def feedback_message(verdict: str) -> Message:
  """What follows a failed turn; `verdict` comes from `feedback.render`."""
  return Message("user", template("feedback").format(verdict=verdict))


def answer_message(source: str) -> Message:
  """An answer that holds one kernel, as the warm start writes it."""
  return Message("assistant", f"```cuda\n{source.rstrip()}\n```")
