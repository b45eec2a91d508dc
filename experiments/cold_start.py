"""Conversations for the warm start: canonical solutions, mutated ones with the
verdict that the harness really gives them, and the repair.

Only training problems are used; held-out ones stay unseen.
"""

import gzip
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import tqdm

from kernels_eval import client, mutations, problem_cards, problems
from kernels_eval.functions import mistakes, solutions
from kernels_eval.schema import Request
from leap_jax import feedback, hosts, prompts
from leap_jax import problems as splits
from leap_jax.types import Message, StopReason

MAX_LOST = 0.1
"""Fraction of conversations that the harness may lose; more is a broken one."""


class Texts(NamedTuple):
  """Where answers of a language come from."""

  canonical: Callable[[str], str]  # of a problem's name
  # One mistake in a text: (its name, the changed text); None = no place for it.
  mutate: Callable[[str, np.random.Generator], tuple[str, str] | None]


TEXTS = {
  "cuda": Texts(lambda name: problems.get(name).canonical, mutations.mutate),
  "python": Texts(solutions.canonical, mistakes.mutate),
}
"""By `ProblemCard.language`."""


def _attempt(canonical, mutate, right, rng):
  """A solution, or one with one or two mistakes."""
  if rng.random() < right:
    return canonical
  text = canonical
  for _ in range(1 + int(rng.random() < 0.25)):
    mutated = mutate(text, rng)
    if mutated is not None:
      text = mutated[1]
  return text


def make_conversations(
  names: Sequence[str],
  pool: client.Pool,
  *,
  seed: int,
  num_turns: int,
  first_right: float,
  repair_right: float,
  on_result: Callable[[], None] = lambda: None,
) -> tuple[list[list[Message]], int]:
  """One conversation for each name, but for those that the harness lost.

  Args:
    names: training problems; a name may come several times.
    pool: judges every attempt.
    seed: of mistakes.
    num_turns: T, the most answers of a conversation.
    first_right: probability that a first answer is the canonical solution.
    repair_right: the same for later answers.
    on_result: called for each judged attempt.

  Returns:
    The conversations, and how many are missing because the harness failed on
    one of their attempts.

  Raises:
    ValueError: a name is not of the training split.
    HarnessError: more than `MAX_LOST` of them are missing.
  """
  for name in names:
    if splits.split_of(name) != "train":
      raise ValueError(f"{name} is held out; the warm start must not see it")
  rng = np.random.default_rng(seed)
  cards = [problem_cards.card(name) for name in names]
  attempts = []
  for card in cards:
    texts = TEXTS[card.language]
    canonical = texts.canonical(card.name)
    chances = [first_right] + [repair_right] * (num_turns - 2) + [1.0]
    attempts.append(
      [
        prompts.answer_message(
          _attempt(canonical, texts.mutate, chance, rng), card.language
        )
        for chance in chances[:num_turns]
      ]
    )
  requests = [
    Request(f"{i}/{t}", card.name, answer.text)
    for i, (card, answers) in enumerate(zip(cards, attempts, strict=True))
    for t, answer in enumerate(answers)
  ]
  verdicts = pool.evaluate(requests, lambda _: on_result())
  conversations, lost = [], []
  for i, (card, answers) in enumerate(zip(cards, attempts, strict=True)):
    conversation = [prompts.problem_message(card)]
    for t, answer in enumerate(answers):
      verdict = verdicts[i * num_turns + t]
      if not verdict.counts:
        lost.append(f"{card.name}: {verdict.message}")
        break
      conversation.append(answer)
      if verdict.passed or t == num_turns - 1:
        conversations.append(conversation)
        break
      told = feedback.render(verdict, StopReason.STOP)
      conversation.append(prompts.feedback_message(told, card.language))
  if len(lost) > MAX_LOST * len(names):
    raise client.HarnessError(
      f"{len(lost)} of {len(names)} warm-start conversations were lost, the "
      f"last one to {lost[-1]}"
    )
  return conversations, len(lost)


def _load(path):
  with gzip.open(path, "rb") as file:
    return [msgspec.json.decode(line, type=list[Message]) for line in file]


def for_run(
  config, folder: pathlib.Path, names: Sequence[str], pool: client.Pool
) -> list[list[Message]]:
  """Conversations about training problems, each with true feedback.

  Those that an earlier start of this run has made, if there are any. All
  processes of a run call this, with the folder that all of them see.

  Args:
    config: all settings.
    folder: of the run; the first process writes them there.
    names: training problems.
    pool: judges every attempt.
  """
  path = folder / "conversations.jsonl.gz"
  # One process decides: the others may see a new file late.
  if hosts.from_first(hosts.is_first() and path.exists()):
    return _load(path)
  made = _make(config, names, pool)
  if hosts.is_first():
    temporary = path.with_suffix(".tmp")
    with gzip.open(temporary, "wb") as file:
      for conversation in made:
        file.write(msgspec.json.encode(conversation) + b"\n")
    temporary.rename(path)
  return made


def _make(config, names, pool):
  wanted = config.warm_start.num_conversations
  repeated = [names[i % len(names)] for i in range(wanted)]
  attempts = wanted * config.rollout.num_turns
  with tqdm.tqdm(total=attempts, desc="cold start", unit="answer") as bar:
    made, num_lost = make_conversations(
      repeated,
      pool,
      seed=config.seed,
      num_turns=config.rollout.num_turns,
      first_right=config.warm_start.first_right,
      repair_right=config.warm_start.repair_right,
      on_result=bar.update,
    )
  if num_lost:
    tqdm.tqdm.write(
      f"cold start: {num_lost} conversations lost to faults of the harness",
      file=sys.stderr,
    )
  return made
