"""Plausible mistakes: one change to a correct function's text.

What `mutations` is for kernels. What a mistake does is for the judge to say:
some are harmless.
"""

import re

import numpy as np

from kernels_eval.mutations import Rule


def _rule(name, pattern, replacement):
  return Rule(name, re.compile(pattern, re.M), replacement)


_STEP = r"^ +xs = [^\n]*\n"

RULES = (
  # Comparisons.
  _rule("bound_included", r" > (0|10)\b", r" >= \1"),
  _rule("wrong_direction", r" > (\w)", r" < \1"),
  _rule("equal_for_unequal", r" != ", " == "),
  _rule("unequal_for_equal", r" == ", " != "),
  _rule("and_for_or", r" or ", " and "),
  # Arithmetic.
  _rule("plus_to_minus", r" \+ ", " - "),
  _rule("minus_to_plus", r"([\])]) - ", r"\1 + "),
  _rule("times_to_plus", r" \* ", " + "),
  _rule("double_for_square", r"\bx \* x\b", "2 * x"),
  _rule("true_division", r" // ", " / "),
  _rule("quotient_for_remainder", r" % ", " // "),
  _rule("wrong_divisor", r" (%|//) [237]\b", r" \1 5"),
  _rule("wrong_bound", r" > 10\b", " > 5"),
  _rule("lost_sign", r"-(x|xs\.count\(x\))(?=[ ,])", r"\1"),
  _rule("lost_abs", r"\babs\(x\)", "x"),
  _rule("max_to_min", r"\bmax\(", "min("),
  _rule("min_to_max", r"\bmin\(", "max("),
  _rule("count_for_sum", r"\bsum\(", "len("),
  _rule("sum_for_count", r"return len\(", "return sum("),
  # Places and ends.
  _rule("lost_offset", r"\bi [+-] 1\b", "i"),
  _rule("ends_too_late", r"len\(xs\) - 1\)", "len(xs))"),
  _rule("ends_too_early", r"range\(len\(xs\)\)", "range(len(xs) - 1)"),
  _rule("begins_too_late", r"range\(len", "range(1, len"),
  _rule("counted_from_one", r"enumerate\(xs\)", "enumerate(xs, 1)"),
  _rule("drops_last", r"\bxs\[1:\]", "xs[:-1]"),
  _rule("begins_with_second", r"\[::2\]", "[1::2]"),
  _rule("not_reversed", r"\[::-1\]", "[:-1]"),
  # Lists.
  _rule("descending", r"sorted\(xs\)", "sorted(xs, reverse=True)"),
  _rule("sorts_in_place", r"sorted\(xs\)", "xs.sort()"),
  _rule("loses_order", r"list\(dict\.fromkeys\(xs\)\)", "list(set(xs))"),
  _rule("no_list", r"list\((dict\.fromkeys\(xs\))\)", r"\1"),
  _rule("no_default", r", default=0", ""),
  _rule("wrong_default", r"default=0", "default=1"),
  _rule("wrong_start", r"length = 0", "length = 1"),
  _rule("restarts_at_zero", r"else 1\b", "else 0"),
  # Steps.
  _rule("lost_step", _STEP, ""),
  _rule("swapped_steps", rf"({_STEP})(?!\1)({_STEP})", r"\2\1"),
  _rule("repeated_step", rf"({_STEP})", r"\1\1"),
  _rule("step_not_kept", r"^( +)xs = ", r"\1ys = "),
  _rule("no_result", r"^ +return [^\n]*\n\Z", ""),
  _rule("list_for_number", r"return (?!xs|best)[^\n]*", "return xs"),
  # Syntax and names.
  _rule("no_colon", r":\n", "\n"),
  _rule("open_bracket", r"[\])]\n", "\n"),
  _rule("undeclared", r"\bin xs\b", "in ys"),
  _rule("unknown_function", r"\b(sum|sorted|enumerate)\(", r"\1s("),
)


def mutate(source: str, rng: np.random.Generator) -> tuple[str, str] | None:
  """One random mistake: first a rule, then a place.

  Returns:
    (rule's name, changed text), or None if no rule applies.
  """
  places = {rule: list(rule.pattern.finditer(source)) for rule in RULES}
  fitting = [rule for rule in RULES if places[rule]]
  if not fitting:
    return None
  rule = fitting[int(rng.integers(len(fitting)))]
  match = places[rule][int(rng.integers(len(places[rule])))]
  changed = match.expand(rule.replacement)
  return rule.name, source[: match.start()] + changed + source[match.end() :]
