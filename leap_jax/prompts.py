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


# By what is to be written: the templates of a problem and of feedback.
_PROBLEM = {"cuda": "problem", "python": "problem_python"}
_FEEDBACK = {"cuda": "feedback", "python": "feedback_python"}


def problem_message(problem: ProblemCard) -> Message:
  """What opens a conversation."""
  text = template(_PROBLEM[problem.language]).format(
    statement=problem.statement, signature=problem.signature
  )
  return Message("user", text)


def feedback_message(verdict: str, language: str = "cuda") -> Message:
  """What follows a failed turn; `verdict` comes from `feedback.render`."""
  text = template(_FEEDBACK[language]).format(verdict=verdict)
  return Message("user", text)


def answer_message(source: str, language: str = "cuda") -> Message:
  """An answer of one kernel or function, as the warm start writes it."""
  return Message("assistant", f"```{language}\n{source.rstrip()}\n```")
