"""The soak's own candidates in files, and the hostile corpus of a checkout.

Both have the headers of `corpus.py`, which say what a judge must answer.
"""

import dataclasses
import pathlib
import platform
from collections.abc import Collection

from kernels_eval import corpus
from kernels_eval.schema import Status

_OWN = pathlib.Path(__file__).parent / "kernels"  # one folder for each kind
SUFFIXES = (".cu", ".py", ".txt")  # Python: Numba
CHECKOUT = pathlib.Path(__file__).parents[2] / "tests" / "adversarial"


@dataclasses.dataclass(frozen=True)
class Template:
  """One file."""

  name: str
  problem: str
  text: str
  comment: str  # what begins one, in its language
  allowed: frozenset[Status]


def _templates(specimens, executor, suffixes):
  """(specimen's name, template) of those for this executor and machine."""
  for s in specimens:
    if not s.name.endswith(tuple(suffixes)):
      continue
    if executor in s.allowed and s.machine in (None, platform.machine()):
      allowed = frozenset(s.allowed_untimed[executor])
      comment = "#" if s.name.endswith(".py") else "//"
      yield s.name, Template(s.name, s.problem, s.text, comment, allowed)


def load(
  executor: str,
  suffixes: Collection[str] = SUFFIXES,
  folder: pathlib.Path | None = CHECKOUT,
) -> dict[str, list[Template]]:
  """Templates by kind. Those of the corpus count as malicious.

  Args:
    executor: cpu or cuda.
    suffixes: of the files that this machine can judge.
    folder: of the corpus; None or a folder that is not there adds nothing.

  Raises:
    corpus.CorpusError: a header is not as it should be.
  """
  kinds: dict[str, list[Template]] = {}
  for name, template in _templates(corpus.load(_OWN), executor, suffixes):
    kinds.setdefault(name.partition("/")[0], []).append(template)
  if folder is not None and folder.is_dir():
    more = _templates(corpus.load(folder), executor, suffixes)
    kinds.setdefault("malicious", []).extend(t for _, t in more)
  return kinds
