"""What may be known of problems outside of the harness, and draws of composed
ones. Nothing here starts a process."""

import numpy as np

from kernels_eval import problems
from kernels_eval.functions import pipelines
from kernels_eval.problems import composer
from kernels_eval.schema import ProblemCard


def card(name: str) -> ProblemCard:
  """What a policy may know of a problem; UnknownProblem if there is none."""
  if pipelines.is_name(name):
    function = _function(name)
    return ProblemCard(
      name, function.level, function.statement, function.signature, "", "python"
    )
  problem = problems.get(name)
  return ProblemCard(
    problem.name,
    problem.level,
    problem.statement,
    problem.signature,
    problem.launch,
  )


def _function(name):
  try:
    return pipelines.get(name)
  except pipelines.PipelineError as error:
    raise problems.UnknownProblem(f"no problem `{name}`: {error}") from None


def function_key(name: str) -> str:
  """The same for problems that ask for the same function.

  Raises:
    UnknownProblem: there is no such problem.
  """
  if pipelines.is_name(name):
    return pipelines.function_key(_function(name).name)
  if problems.get(name).name.startswith(composer.PREFIX):
    return composer.function_key(name)
  return name


def compositions(
  seed: int, count: int, num_operators: tuple[int, int], reduced: float
) -> list[str]:
  """Names of composed problems, no two of the same function; the same ones for
  the same arguments.

  Args:
    seed: of the draw.
    count: how many.
    num_operators: shortest and longest chain.
    reduced: fraction that ends in a reduction.
  """
  return _distinct(seed, count, num_operators, reduced, composer)


def functions(
  seed: int, count: int, num_steps: tuple[int, int], with_result: float
) -> list[str]:
  """The same for Python functions of lists (functions/pipelines.py).

  Args:
    seed: of the draw.
    count: how many.
    num_steps: fewest and most steps.
    with_result: fraction that ends in one number.
  """
  return _distinct(seed, count, num_steps, with_result, pipelines)


def _distinct(seed, count, lengths, reduced, source):
  """Names of `source` (composer or pipelines), each of another function."""
  rng = np.random.default_rng(seed)
  names: dict[str, str] = {}  # by function
  seen = set()
  for _ in range(100 * count):
    length = int(rng.integers(lengths[0], lengths[1] + 1))
    name = source.sample(rng, length, reduced)
    if name in seen or not source.is_sound(name):
      continue
    seen.add(name)
    names.setdefault(source.function_key(name), name)
    if len(names) == count:
      return list(names.values())
  raise ValueError(
    f"{count} distinct compositions of {lengths[0]} to {lengths[1]} operators "
    f"do not exist ({len(names)} found)"
  )
