"""Splits of problems and the order in which a run meets them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kernels_eval import problem_cards
from kernels_eval.schema import ProblemCard

SPLITS = ("train", "validation", "test")

# GRESO (arXiv 2506.02177): a problem whose last z visits had no spread is taken
# with probability max(p^z, floor).
_REVISIT, _REVISIT_FLOOR = 0.5, 0.01


def split_of(name: str) -> str:
  """The split of a problem, by what it computes: 8 parts of 10 train, 1 each.

  Two names of one function (`relu` and `relu-relu`) fall into the same split,
  in every run and for every seed: a held-out problem is a function that no
  training problem asks for.

  Raises:
    UnknownProblem: there is no such problem.
  """
  key = problem_cards.function_key(name)
  digest = hashlib.sha256(f"split/{key}".encode()).digest()
  part = int.from_bytes(digest[:8]) % 10
  return "train" if part < 8 else SPLITS[part - 7]


def of_split(names: Iterable[str], split: str, count: int) -> list[str]:
  """The first `count` names of a split.

  Raises:
    ValueError: there are fewer.
  """
  if split not in SPLITS:
    raise ValueError(f"no split `{split}`; there are {', '.join(SPLITS)}")
  found = [name for name in names if split_of(name) == split]
  if len(found) < count:
    raise ValueError(
      f"{count} {split} problems asked for, {len(found)} there are"
    )
  return found[:count]


def in_order(
  problems: Sequence[ProblemCard], seed: int, cursor: int, count: int
) -> list[ProblemCard]:
  """The next problems: epoch after epoch, each in a new order.

  A pure function of its arguments: a resumed run meets the same problems, also
  across the border of an epoch.

  Args:
    problems: the training split.
    seed: of the orders.
    cursor: places of the order that have been met.
    count: problems to draw.
  """
  chosen = []
  for k in range(cursor, cursor + count):
    epoch, place = divmod(k, len(problems))
    order = np.random.default_rng((seed, epoch)).permutation(len(problems))
    chosen.append(problems[int(order[place])])
  return chosen


def predicted(
  problems: Sequence[ProblemCard],
  seed: int,
  cursor: int,
  count: int,
  uniform_visits: Mapping[str, int],
) -> tuple[list[ProblemCard], int]:
  """The next problems, those that lately taught nothing drawn less.

  The order is that of `in_order`; a problem is passed over with
  probability 1 - max(.5^z, .01), z = visits in a row in which all samples
  came to the same (GRESO, arXiv 2506.02177; SPEED-RL, arXiv 2506.09016, does it
  by a few trial samples). A pure function of its arguments.

  Args:
    problems: the training split.
    seed: of orders and lots.
    cursor: places of the order that have been looked at.
    count: problems to draw.
    uniform_visits: z by problem name; 0 for one that is not there.

  Returns:
    The problems, and the new cursor.
  """
  chosen = []
  size = len(problems)
  epoch, order, lots = -1, None, None
  while len(chosen) < count:
    if cursor // size != epoch:
      epoch = cursor // size
      order = np.random.default_rng((seed, epoch)).permutation(size)
      lots = np.random.default_rng((seed, epoch, 1)).random(size)
    place = cursor % size
    card = problems[int(order[place])]
    z = uniform_visits.get(card.name, 0)
    if lots[place] < max(_REVISIT**z, _REVISIT_FLOOR):
      chosen.append(card)
    cursor += 1
  return chosen, cursor
