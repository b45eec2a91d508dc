"""The problems of a run, by its config."""

from collections.abc import Sequence
from typing import NamedTuple

from experiments.settings import UsageError
from kernels_eval import problem_cards
from kernels_eval.schema import ProblemCard
from leap_jax import problems as splits
from leap_jax import rollout
from leap_jax.tokenizer import Tokenizer
from leap_jax.types import RolloutShape

_SOURCES = {
  "kernels": problem_cards.compositions,
  "functions": problem_cards.functions,
}
"""Of the names: (seed, count, (shortest, longest), reduced) -> names."""


def names(config) -> tuple[list[str], list[str]]:
  """Names of training and held-out problems."""
  p = config.problems
  # Twice what is needed: a split is a fixed part of all names.
  wanted = 2 * p.num_train + 20 * p.num_heldout
  try:
    drawn = _SOURCES[p.source](
      p.seed, wanted, (p.min_operators, p.max_operators), p.reduced
    )
    return (
      splits.of_split(drawn, "train", p.num_train),
      splits.of_split(drawn, p.heldout_split, p.num_heldout),
    )
  except ValueError as error:
    raise UsageError(
      f"{error}: fewer problems (config.problems.num_train, num_heldout) or "
      "longer ones (max_operators)"
    ) from None


class Cards(NamedTuple):
  """Problems of a run whose first prompt fits."""

  train: list[ProblemCard]
  heldout: list[ProblemCard]
  num_skipped: int  # of both splits


def cards(
  names_of_split: Sequence[str],
  tokenizer: Tokenizer,
  shape: RolloutShape,
  long_prompts: str,
) -> tuple[list[ProblemCard], int]:
  """Cards whose first prompt fits, and how many were skipped.

  Args:
    names_of_split: of one split.
    tokenizer: of the policy.
    shape: sizes of the rollout.
    long_prompts: "skip" or "refuse".

  Raises:
    UsageError: a prompt does not fit and the policy is to refuse, or nothing
      is left.
  """
  fitting, skipped = [], []
  for name in names_of_split:
    card = problem_cards.card(name)
    if rollout.fits(tokenizer, card, shape):
      fitting.append(card)
    else:
      skipped.append(name)
  if skipped and long_prompts == "refuse":
    raise UsageError(
      f"the prompt of {skipped[0]} (and {len(skipped) - 1} more) is longer "
      f"than config.rollout.max_prompt_tokens={shape.max_prompt_tokens}"
    )
  if not fitting:
    raise UsageError(
      "no problem's prompt fits into config.rollout.max_prompt_tokens="
      f"{shape.max_prompt_tokens}"
    )
  return fitting, len(skipped)


def for_run(
  config,
  names_of_run: tuple[Sequence[str], Sequence[str]],
  tokenizer: Tokenizer,
  shape: RolloutShape,
) -> Cards:
  """The cards of both splits.

  Args:
    config: all settings.
    names_of_run: of `names`, which takes seconds.
    tokenizer: of the policy.
    shape: sizes of the rollout.

  Raises:
    UsageError: of `cards`.
  """
  policy = config.problems.long_prompts
  (train, skipped), (heldout, skipped_too) = (
    cards(split, tokenizer, shape, policy) for split in names_of_run
  )
  return Cards(train, heldout, skipped + skipped_too)
