"""Canonical solutions of every pipeline, as the text of a Python function.

Written apart from the reference (`pipelines.STEPS`), a line for each step; the
tests hold one against the other through the judge.
"""

from kernels_eval.functions import pipelines

_INDENT = " " * 4

# What a step makes of `xs`.
STEPS = {
  "even": "[x for x in xs if x % 2 == 0]",
  "odd": "[x for x in xs if x % 2 != 0]",
  "positive": "[x for x in xs if x > 0]",
  "threes": "[x for x in xs if x % 3 == 0]",
  "large": "[x for x in xs if abs(x) > 10]",
  "square": "[x * x for x in xs]",
  "double": "[2 * x for x in xs]",
  "negate": "[-x for x in xs]",
  "abs": "[abs(x) for x in xs]",
  "mod7": "[x % 7 for x in xs]",
  "half": "[x // 2 for x in xs]",
  "index": "[x + i for i, x in enumerate(xs)]",
  "reverse": "xs[::-1]",
  "sort": "sorted(xs)",
  "distinct": "list(dict.fromkeys(xs))",
  "runs": "[x for i, x in enumerate(xs) if i == 0 or x != xs[i - 1]]",
  "cumsum": "[sum(xs[:i + 1]) for i in range(len(xs))]",
  "pairs": "[xs[i] + xs[i + 1] for i in range(len(xs) - 1)]",
  "diffs": "[xs[i + 1] - xs[i] for i in range(len(xs) - 1)]",
  "peaks": "[b for a, b, c in zip(xs, xs[1:], xs[2:]) if a < b > c]",
  "others": "xs[::2]",
  "tail": "xs[1:]",
}

# The last lines, by result; None = the list itself.
RESULTS = {
  None: ("return xs",),
  "sum": ("return sum(xs)",),
  "count": ("return len(xs)",),
  "max": ("return max(xs, default=0)",),
  "min": ("return min(xs, default=0)",),
  "range": ("return max(xs, default=0) - min(xs, default=0)",),
  "rise": (
    "best = length = 0",
    "for i in range(len(xs)):",
    _INDENT + "length = length + 1 if i > 0 and xs[i] > xs[i - 1] else 1",
    _INDENT + "best = max(best, length)",
    "return best",
  ),
  "mode": ("return min(xs, key=lambda x: (-xs.count(x), x), default=0)",),
}


def canonical(name: str) -> str:
  """A right function for a problem.

  Args:
    name: of the problem.

  Raises:
    PipelineError: there is no such problem.
  """
  steps, result = pipelines.split_name(name)
  body = [f"xs = {STEPS[step]}" for step in steps] + list(RESULTS[result])
  lines = [pipelines.SIGNATURE[result is not None]]
  return "\n".join(lines + [_INDENT + line for line in body]) + "\n"
