"""Candidates in files, whose first lines say what a judge must answer.

    // problem: vector_add
    // machine: x86_64              only where it matters
    // expect: wrong_answer         statuses that are allowed; or both of
    // expect cpu: runtime_error    these, where the executors differ
    // expect cuda: wrong_answer

Other `// key: value` lines in the header are for people.
"""

import dataclasses
import pathlib
import platform
import re

from kernels_eval.schema import Status

_LINE = re.compile(r"// (\w+)(?: (\w+))?: (.+)")
_OWN = pathlib.Path(__file__).parent / "kernels"
CHECKOUT = pathlib.Path(__file__).parents[2] / "tests" / "adversarial"


@dataclasses.dataclass(frozen=True)
class Template:
  """One file."""

  name: str
  kind: str
  problem: str
  text: str
  allowed: frozenset[Status]


def parse(name: str, kind: str, text: str, executor: str) -> Template | None:
  """Reads a file; None if it is not for this executor or machine.

  Args:
    name: of the file.
    kind: of the candidate, for the summary.
    text: the whole file.
    executor: cpu or cuda.

  Raises:
    ValueError: the header says nothing that could be expected.
  """
  fields = {}
  for line in text.split("\n"):
    match = _LINE.fullmatch(line)
    if not match:
      break
    fields.setdefault((match[1], match[2]), match[3])
  place = fields.get(("on", None), "both").partition(";")[0].strip()
  machine = fields.get(("machine", None), platform.machine())
  if place not in ("both", executor) or machine != platform.machine():
    return None
  expected = fields.get(("expect", executor), fields.get(("expect", None)))
  if expected is None:
    raise ValueError(f"{name}: no `// expect:` line for {executor}")
  return Template(
    name,
    kind,
    fields.get(("problem", None), "vector_add"),
    text,
    frozenset(Status(word) for word in expected.split()),
  )


def load(
  executor: str, corpus: pathlib.Path | None = CHECKOUT
) -> dict[str, list[Template]]:
  """Templates by kind: the package's, and the hostile corpus of a checkout,
  which counts as malicious, where there is one.

  Args:
    executor: cpu or cuda.
    corpus: its folder; None or a folder that is not there adds nothing.
  """
  paths = [(p.parent.name, p) for p in sorted(_OWN.glob("*/*.cu"))]
  if corpus is not None and corpus.is_dir():
    paths += [("malicious", p) for p in sorted(corpus.glob("**/*.cu"))]
  kinds: dict[str, list[Template]] = {}
  for kind, path in paths:
    template = parse(path.name, kind, path.read_text("utf-8"), executor)
    if template is not None:
      kinds.setdefault(kind, []).append(template)
  return kinds
