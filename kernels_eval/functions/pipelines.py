"""Problems: functions of a list of whole numbers, composed without end.

A name is `fn-STEP-...-STEP` or `fn-STEP-...-STEP-RESULT`: steps turn a list
into a list, a result turns it into one number. Expected values are computed
here, by the judge; a candidate's process sees inputs alone.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable

import numpy as np

PREFIX = "fn-"
MAX_STEPS = 6
NUM_TESTS = 24
_MAX_LENGTH = 12
_LARGEST = 50
_NUM_PROBES = 64


class PipelineError(ValueError):
  """No such problem; one line says what there is."""


@dataclasses.dataclass(frozen=True)
class Step:
  """List to list. `text` says it to the policy."""

  text: str
  apply: Callable[[list[int]], list[int]]


@dataclasses.dataclass(frozen=True)
class Result:
  """List to number, of an empty list too."""

  text: str
  apply: Callable[[list[int]], int]


def _running_sum(xs):
  total, out = 0, []
  for x in xs:
    total += x
    out.append(total)
  return out


def _runs_removed(xs):
  return [x for i, x in enumerate(xs) if i == 0 or x != xs[i - 1]]


def _pair_sums(xs):
  return [a + b for a, b in zip(xs, xs[1:], strict=False)]


def _local_maxima(xs):
  middle = range(1, len(xs) - 1)
  return [xs[i] for i in middle if xs[i] > xs[i - 1] and xs[i] > xs[i + 1]]


def _distinct(xs):
  return list(dict.fromkeys(xs))


def _longest_rise(xs):
  best = length = 0
  for i, x in enumerate(xs):
    length = length + 1 if i and x > xs[i - 1] else 1
    best = max(best, length)
  return best


def _most_common(xs):
  return min(xs, key=lambda x: (-xs.count(x), x), default=0)


STEPS = {
  "even": Step("keep the even numbers",
               lambda xs: [x for x in xs if x % 2 == 0]),
  "odd": Step("keep the odd numbers", lambda xs: [x for x in xs if x % 2]),
  "positive": Step("keep the numbers above 0",
                   lambda xs: [x for x in xs if x > 0]),
  "threes": Step(
    "keep the multiples of 3", lambda xs: [x for x in xs if x % 3 == 0]
  ),
  "large": Step(
    "keep the numbers whose absolute value is above 10",
    lambda xs: [x for x in xs if abs(x) > 10],
  ),
  "square": Step("square each number", lambda xs: [x * x for x in xs]),
  "double": Step("double each number", lambda xs: [2 * x for x in xs]),
  "negate": Step("negate each number", lambda xs: [-x for x in xs]),
  "abs": Step("take absolute values", lambda xs: [abs(x) for x in xs]),
  "mod7": Step("replace each number by its remainder modulo 7 (0 to 6)",
               lambda xs: [x % 7 for x in xs]),
  "half": Step("divide each number by 2, rounding down",
               lambda xs: [x // 2 for x in xs]),
  "index": Step("add to each number its position, counted from 0",
                lambda xs: [x + i for i, x in enumerate(xs)]),
  "reverse": Step("reverse the order", lambda xs: xs[::-1]),
  "sort": Step("sort in ascending order", sorted),
  "distinct": Step("drop repeats, keeping the first of each", _distinct),
  "runs": Step("collapse each run of equal neighbours to one", _runs_removed),
  "cumsum": Step("replace each number by the sum up to and including it",
                 _running_sum),
  "pairs": Step("take the sums of neighbours", _pair_sums),
  "diffs": Step("take the differences of neighbours, later minus earlier",
                lambda xs: [b - a for a, b in zip(xs, xs[1:], strict=False)]),
  "peaks": Step("keep the numbers larger than both of their neighbours; the "
                "ends have only one and are dropped", _local_maxima),
  "others": Step("keep every second number, beginning with the first",
                 lambda xs: xs[::2]),
  "tail": Step("drop the first number", lambda xs: xs[1:]),
}  # fmt: skip

RESULTS = {
  "sum": Result("the sum (0 for none)", sum),
  "count": Result("how many numbers are left", len),
  "max": Result("the largest number (0 for none)",
                lambda xs: max(xs, default=0)),
  "min": Result("the smallest number (0 for none)",
                lambda xs: min(xs, default=0)),
  "range": Result("the largest minus the smallest number (0 for none)",
                  lambda xs: max(xs, default=0) - min(xs, default=0)),
  "rise": Result("the length of the longest strictly rising stretch of "
                 "neighbours (0 for none)", _longest_rise),
  "mode": Result("the most frequent number, the smallest one of several (0 for "
                 "none)", _most_common),
}  # fmt: skip

SIGNATURE = {
  False: "def solve(xs: list[int]) -> list[int]:",
  True: "def solve(xs: list[int]) -> int:",
}
"""By whether the name ends in a result."""


@dataclasses.dataclass(frozen=True)
class Problem:
  """One function to write."""

  name: str
  level: int  # steps, and one for a result
  statement: str
  signature: str

  def expected(self, xs: list[int]) -> list[int] | int:
    """The right value."""
    return _apply(*split_name(self.name), xs)


def _apply(steps, result, xs):
  for step in steps:
    xs = STEPS[step].apply(list(xs))
  return xs if result is None else RESULTS[result].apply(list(xs))


def is_name(name: str) -> bool:
  """Whether a problem is of this domain."""
  return name.startswith(PREFIX)


def split_name(name: str) -> tuple[list[str], str | None]:
  """Steps and result (or None).

  Raises:
    PipelineError: no such problem.
  """
  parts = name.removeprefix(PREFIX).split("-")
  result = parts.pop() if parts[-1] in RESULTS else None
  unknown = [part for part in parts if part not in STEPS]
  if not is_name(name) or unknown or not 1 <= len(parts) <= MAX_STEPS:
    raise PipelineError(
      f"`{(unknown or [name])[0]}` is no step; a function is "
      f"{PREFIX}STEP-...[-RESULT] with 1 to {MAX_STEPS} steps of "
      f"{', '.join(STEPS)} and results {', '.join(RESULTS)}"
    )
  return parts, result


@functools.cache
def get(name: str) -> Problem:
  """The problem of this name.

  Raises:
    PipelineError: there is none.
  """
  steps, result = split_name(name)
  said = "; then ".join(STEPS[step].text for step in steps)
  end = "the list" if result is None else RESULTS[result].text
  return Problem(
    name,
    len(steps) + (result is not None),
    f"Given a list xs of whole numbers: {said}. Return {end}.",
    SIGNATURE[result is not None],
  )


def _lists(rng: np.random.Generator, count: int) -> list[list[int]]:
  """Lists of all lengths, with and without repeats; the empty one first."""
  out: list[list[int]] = [[]]
  while len(out) < count:
    length = int(rng.integers(1, _MAX_LENGTH + 1))
    bound = (3, _LARGEST)[int(rng.integers(2))]
    out.append([int(x) for x in rng.integers(-bound, bound + 1, length)])
  return out


def tests(name: str, seed: int) -> list[tuple[list[int], list[int] | int]]:
  """Hidden inputs and what is expected of them.

  Args:
    name: of the problem.
    seed: the judge's secret.
  """
  problem = get(name)
  digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
  rng = np.random.default_rng(int.from_bytes(digest[:8]))
  return [(xs, problem.expected(xs)) for xs in _lists(rng, NUM_TESTS)]


@functools.cache
def _probes():
  return tuple(
    tuple(xs) for xs in _lists(np.random.default_rng(0), _NUM_PROBES)
  )


def _on_probes(steps, result):
  return [_apply(steps, result, list(xs)) for xs in _probes()]


@functools.cache
def function_key(name: str) -> str:
  """The same for names that ask for the same function, as far as fixed probe
  inputs can tell."""
  values = _on_probes(*split_name(name))
  return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def is_sound(name: str) -> bool:
  """Whether a problem's answer depends on its input, and every step matters."""
  steps, result = split_name(name)
  values = _on_probes(steps, result)
  if max(values.count(value) for value in values) > len(values) // 2:
    return False
  return all(
    _on_probes(steps[:i] + steps[i + 1 :], result) != values
    for i in range(len(steps))
  )


def sample(rng: np.random.Generator, num_steps: int, with_result: float) -> str:
  """A random name; it need not be sound.

  Args:
    rng: of the draw.
    num_steps: steps.
    with_result: probability of a result at the end.
  """
  parts = [str(x) for x in rng.choice(list(STEPS), num_steps)]
  if rng.random() < with_result:
    parts.append(str(rng.choice(list(RESULTS))))
  return PREFIX + "-".join(parts)
