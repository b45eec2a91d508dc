"""Conversations for the warm start: canonical solutions, mutated ones with the
verdict that the harness really gives them, and the repair.

Only training problems are used; held-out ones stay unseen.
"""

import gzip
import pathlib
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import tqdm

from kernels_eval import client, mutations, problems
from kernels_eval.schema import Request
from leap_jax import feedback, prompts
from leap_jax import problems as splits
from leap_jax.types import Message, StopReason


def _attempt(canonical, right, rng):
  """A solution, or one with one or two mistakes."""
  if rng.random() < right:
    return canonical
  text = canonical
  for _ in range(1 + int(rng.random() < 0.25)):
    mutated = mutations.mutate(text, rng)
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
) -> list[list[Message]]:
  """One conversation for each name.

  Args:
    names: training problems; a name may come several times.
    pool: judges every attempt.
    seed: of mistakes.
    num_turns: T, the most answers of a conversation.
    first_right: probability that a first answer is the canonical solution.
    repair_right: the same for later answers.
    on_result: called for each judged attempt.

  Raises:
    ValueError: a name is not of the training split, or the harness failed.
  """
  for name in names:
    if splits.split_of(name) != "train":
      raise ValueError(f"{name} is held out; the warm start must not see it")
  rng = np.random.default_rng(seed)
  attempts = []
  for name in names:
    canonical = problems.get(name).canonical
    chances = [first_right] + [repair_right] * (num_turns - 2) + [1.0]
    attempts.append(
      [_attempt(canonical, chance, rng) for chance in chances[:num_turns]]
    )
  requests = [
    Request(f"{i}/{t}", name, prompts.answer_message(text).text)
    for i, (name, texts) in enumerate(zip(names, attempts, strict=True))
    for t, text in enumerate(texts)
  ]
  verdicts = pool.evaluate(requests, lambda _: on_result())
  conversations = []
  for i, (name, texts) in enumerate(zip(names, attempts, strict=True)):
    conversation = [prompts.problem_message(client.card(name))]
    for t, text in enumerate(texts):
      verdict = verdicts[i * num_turns + t]
      if not verdict.counts:
        raise ValueError(f"the harness failed on {name}: {verdict.message}")
      conversation.append(prompts.answer_message(text))
      if verdict.passed or t == num_turns - 1:
        break
      told = feedback.render(verdict, StopReason.STOP)
      conversation.append(prompts.feedback_message(told))
    conversations.append(conversation)
  return conversations


def load(workdir: pathlib.Path) -> list[list[Message]] | None:
  """Conversations that an earlier start of this run has made."""
  path = workdir / "conversations.jsonl.gz"
  if not path.exists():
    return None
  with gzip.open(path, "rb") as file:
    return [msgspec.json.decode(line, type=list[Message]) for line in file]


def make_for_run(
  config, workdir: pathlib.Path, names: Sequence[str], pool: client.Pool
) -> list[list[Message]]:
  """Conversations about training problems, each with true feedback."""
  wanted = config.warm_start.num_conversations
  repeated = [names[i % len(names)] for i in range(wanted)]
  attempts = wanted * config.rollout.num_turns
  with tqdm.tqdm(total=attempts, desc="cold start", unit="kernel") as bar:
    made = make_conversations(
      repeated,
      pool,
      seed=config.seed,
      num_turns=config.rollout.num_turns,
      first_right=config.warm_start.first_right,
      repair_right=config.warm_start.repair_right,
      on_result=bar.update,
    )
  path = workdir / "conversations.jsonl.gz"
  temporary = path.with_suffix(".tmp")
  with gzip.open(temporary, "wb") as file:
    for conversation in made:
      file.write(msgspec.json.encode(conversation) + b"\n")
  temporary.rename(path)
  return made
