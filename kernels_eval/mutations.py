"""Plausible mistakes: one change to a correct kernel's text.

They make the warm start's first attempts (with their true verdicts) and test
cases for the judge. What a mutation does is for the judge to say: some are
harmless.
"""

import re
from typing import NamedTuple

import numpy as np


class Rule(NamedTuple):
  """A kind of mistake: every match of `pattern` is a place for it.

  `replacement` is a template for `re.Match.expand`.
  """

  name: str
  pattern: re.Pattern
  replacement: str


def _rule(name, pattern, replacement):
  return Rule(name, re.compile(pattern, re.M), replacement)


RULES = (
  # Indexing and bounds.
  _rule("no_bounds_check", r"if \(i < n\) ", ""),
  _rule("bound_off_by_one", r"(\bi|\bj) < (n|cols|rows)\b", r"\1 <= \2"),
  _rule("bound_too_small", r"(\bi|\bj) < (n|cols|rows)\b", r"\1 < \2 - 1"),
  _rule(
    "no_block_offset",
    r"blockIdx\.x \* blockDim\.x \+ threadIdx\.x",
    "threadIdx.x",
  ),
  _rule(
    "block_not_scaled",
    r"blockIdx\.x \* blockDim\.x \+ threadIdx\.x",
    "blockIdx.x + threadIdx.x",
  ),
  _rule("wrong_row_stride", r"row \* cols \+ j", "row * rows + j"),
  _rule("swapped_index", r"row \* cols \+ j", "j * cols + row"),
  _rule("constant_index", r"\b([xy])\[i\]", r"\1[0]"),
  _rule("wrong_input", r"\by\[(i|row \* cols \+ j)\]", r"x[\1]"),
  # Arithmetic.
  _rule("plus_to_minus", r"(v|a|s\[t\]) \+ ", r"\1 - "),
  _rule("minus_to_plus", r"\bv - ", "v + "),
  _rule("times_to_plus", r"\bv \* ", "v + "),
  _rule("max_to_min", r"\bfmaxf\b", "fminf"),
  _rule("min_to_max", r"\bfminf\b", "fmaxf"),
  _rule("lost_sign", r"= -v;", "= v;"),
  _rule("gained_sign", r"expf\(-v\)", "expf(v)"),
  _rule("lost_abs", r"fabsf\(v\)", "v"),
  _rule("wrong_constant", r"\b1\.0f\b", "2.0f"),
  _rule("wrong_factor", r"\b(0\.5f|2\.0f|0\.1f)\b", "1.0f"),
  _rule("no_mean", r" / cols\b", ""),
  _rule("integer_division", r"1\.0f / ", "1 / (int)"),
  # Steps.
  _rule("lost_step", r"^ *v = [^\n]*;\n", ""),
  _rule("swapped_steps", r"^( *v = [^\n]*;\n)( *v = [^\n]*;\n)", r"\2\1"),
  _rule("repeated_step", r"^( *v = [^\n]*;\n)", r"\1\1"),
  # Blocks.
  _rule("no_barrier", r"^ *__syncthreads\(\);\n", ""),
  _rule("wrong_start", r"float a = [^\n]*;", "float a = 1.0f;"),
  _rule("start_at_zero", r"float a = -?INFINITY;", "float a = 0.0f;"),
  _rule("short_tree", r"int k = 64;", "int k = 32;"),
  _rule("tree_off_by_one", r"\bt < k\b", "t <= k"),
  _rule("small_shared", r"s\[128\]", "s[64]"),
  _rule("wrong_stride", r"j \+= 128", "j += 64"),
  _rule("only_first_row", r"\bout\[row\]", "out[0]"),
  _rule("not_written", r"^ *out\[\w+\] = [^\n]*;\n", ""),
  # Syntax and names.
  _rule("no_semicolon", r"^( *v = [^\n]*);", r"\1"),
  _rule("undeclared", r"\bout\[", "output["),
  _rule("unknown_function", r"\b(fmaxf|fminf|expf|tanhf)\(", r"\1f("),
  _rule("no_declaration", r"\bfloat v = ", "v = "),
  _rule("open_brace", r"\}\n\Z", ""),
)


def applicable(source: str) -> list[tuple[Rule, re.Match]]:
  """Every (rule, place) for a text."""
  return [(rule, m) for rule in RULES for m in rule.pattern.finditer(source)]


def mutate(source: str, rng: np.random.Generator) -> tuple[str, str] | None:
  """One random mistake: first a rule, then a place.

  Returns:
    (rule's name, changed text), or None if no rule applies.
  """
  places = applicable(source)
  if not places:
    return None
  names = sorted({rule.name for rule, _ in places})
  name = names[int(rng.integers(len(names)))]
  matches = [(r, m) for r, m in places if r.name == name]
  rule, match = matches[int(rng.integers(len(matches)))]
  changed = match.expand(rule.replacement)
  return name, source[: match.start()] + changed + source[match.end() :]
