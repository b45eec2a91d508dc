"""The corpus of hostile candidates: one file each, with what it must get.

A file is submitted as it is, header included. The header is its first lines:

    // row: 15 33               of the catalogue; `-`: a finding of our own
    // problem: vector_add
    // on: both                 or `cpu; REASON`, or `cuda; REASON`
    // machine: x86_64          only where it matters
    // expect: wrong_answer     statuses that are allowed, mostly one; or both
    // expect cpu: ...          of these two, where the executors differ
    // expect cuda: ...
    // untimed: passed          also allowed on a GPU where nothing is timed
    // why: One line.

A Numba candidate has `#` for `//`. Files under `honest/` are the other half:
kernels that a naive judge would
refuse. They must pass.
"""

import dataclasses
import pathlib
import re

from kernels_eval import catalogue, problems
from kernels_eval.executors import DEVICES
from kernels_eval.schema import Status

_SUFFIXES = (".cu", ".py", ".txt")  # source (Python: Numba), whole answers
_LINE = re.compile(
  r"(?://|#) (row|problem|on|machine|expect|untimed|why)(?: (\w+))?: (.+)"
)
_MAX_WHY = 80


class CorpusError(Exception):
  """The corpus is not what it should be; one line says where and how."""


@dataclasses.dataclass(frozen=True)
class Specimen:
  """One file of the corpus."""

  name: str  # path within the corpus
  text: str
  rows: tuple[int, ...]  # of the catalogue; empty: a finding of our own
  problem: str
  allowed: dict[str, tuple[Status, ...]]  # for each executor that it is for
  reason: str  # why it is for one executor only; "" if it is for both
  machine: str | None  # processor that it needs
  untimed: tuple[Status, ...]  # allowed too on a GPU where nothing is timed
  why: str

  @property
  def is_honest(self) -> bool:
    """Whether it must pass, rather than be caught."""
    return self.name.startswith("honest/")

  @property
  def allowed_untimed(self) -> dict[str, tuple[Status, ...]]:
    """`allowed` where nothing is timed. The CPU executor never times."""
    more = {"cuda": self.untimed}
    return {e: (*s, *more.get(e, ())) for e, s in self.allowed.items()}


def default_folder() -> pathlib.Path:
  """The corpus of the checkout that holds this package.

  Raises:
    CorpusError: the package was installed without its tests.
  """
  folder = pathlib.Path(__file__).parents[1] / "tests" / "adversarial"
  if not folder.is_dir():
    raise CorpusError(
      f"no corpus at {folder}: the package is installed without its tests; "
      "give a checkout's folder with --corpus=DIR"
    )
  return folder


def _fields(name, text):
  """Header lines as {(key, executor or None): value}, in strict order."""
  fields = {}
  for number, line in enumerate(text.split("\n"), 1):
    match = _LINE.fullmatch(line)
    if not match:
      raise CorpusError(
        f"{name}:{number}: got `{line[:60]}` in the header; expected `// row:`,"
        " `problem:`, `on:`, `machine:`, `expect:`, `untimed:` or `why:`, the "
        "last one `// why:`"
      )
    key = (match[1], match[2])
    if key in fields:
      raise CorpusError(f"{name}:{number}: `{match[1]}` twice in the header")
    fields[key] = match[3].strip()
    if match[1] == "why":
      return fields
  raise CorpusError(f"{name}: the header has no `// why:` line")


def _rows(name, value):
  if value == "-":
    return ()
  known = {row.number for row in catalogue.ROWS}
  rows = tuple(int(x) if x.isdigit() else -1 for x in value.split())
  if not rows or not known.issuperset(rows) or list(rows) != sorted(set(rows)):
    raise CorpusError(
      f"{name}: got `row: {value}`; expected `-` or rows of the catalogue, "
      f"1 to {len(known)}, in order"
    )
  return rows


def _place(name, value):
  """Executors that the file is for, and why not for the others."""
  where, _, reason = (part.strip() for part in value.partition(";"))
  if where == "both" and not reason:
    return DEVICES, ""
  if where in DEVICES and reason:
    return (where,), reason
  raise CorpusError(
    f"{name}: got `on: {value}`; expected `both`, `cpu; REASON` or "
    "`cuda; REASON`"
  )


def _statuses(name, value, key="expect"):
  known = {s.value for s in Status} - {Status.INFRASTRUCTURE_ERROR.value}
  words = value.split()
  if not words or not known.issuperset(words) or len(set(words)) < len(words):
    raise CorpusError(
      f"{name}: got `{key}: {value}`; expected some of "
      f"{', '.join(sorted(known))}"
    )
  return tuple(Status(word) for word in words)


def _allowed(name, fields, executors):
  given = {k[1]: v for k, v in fields.items() if k[0] == "expect"}
  wanted = {None} if None in given else set(executors)
  if set(given) != wanted:
    raise CorpusError(
      f"{name}: expected one `// expect:` line, or one for each of "
      f"{', '.join(executors)}"
    )
  return {e: _statuses(name, given.get(e, given.get(None))) for e in executors}


def _untimed(name, fields, executors):
  value = fields.get(("untimed", None))
  if value is None:
    return ()
  if "cuda" not in executors:
    raise CorpusError(f"{name}: `untimed` is for a GPU, and this file is not")
  return _statuses(name, value, "untimed")


def parse(name: str, text: str) -> Specimen:
  """Reads one file's header.

  Args:
    name: path within the corpus, with `/`.
    text: the file.

  Raises:
    CorpusError: the header is not exactly as it should be.
  """
  fields = _fields(name, text)
  for key, executor in fields:
    if executor is not None and (key != "expect" or executor not in DEVICES):
      raise CorpusError(
        f"{name}: got `// {key} {executor}:`; only `expect` has an executor, "
        f"{' or '.join(DEVICES)}"
      )
  for key in ("row", "problem", "on"):
    if (key, None) not in fields:
      raise CorpusError(f"{name}: the header has no `// {key}:` line")
  executors, reason = _place(name, fields["on", None])
  why = fields["why", None]
  if len(why) > _MAX_WHY:
    raise CorpusError(
      f"{name}: `why` has {len(why)} characters; at most {_MAX_WHY}"
    )
  problem = fields["problem", None]
  try:
    problems.get(problem)
  except problems.UnknownProblem as error:
    raise CorpusError(f"{name}: {error}") from None
  specimen = Specimen(
    name=name,
    text=text,
    rows=_rows(name, fields["row", None]),
    problem=problem,
    allowed=_allowed(name, fields, executors),
    reason=reason,
    machine=fields.get(("machine", None)),
    untimed=_untimed(name, fields, executors),
    why=why,
  )
  if specimen.is_honest:
    if any(s != (Status.PASSED,) for s in specimen.allowed.values()):
      raise CorpusError(f"{name}: an honest kernel can only expect `passed`")
  return specimen


def load(folder: pathlib.Path) -> list[Specimen]:
  """Every file of a corpus, hostile ones first, by name.

  Raises:
    CorpusError: no folder, no files, a file that is none of the corpus.
  """
  if not folder.is_dir():
    raise CorpusError(f"no corpus: {folder} is not a folder")
  specimens = []
  for path in sorted(folder.rglob("*")):
    if path.is_dir() or path.name == "README.md":
      continue
    name = path.relative_to(folder).as_posix()
    if path.suffix not in _SUFFIXES:
      raise CorpusError(
        f"{name}: not a file of a corpus; those end in {', '.join(_SUFFIXES)}"
      )
    try:
      text = path.read_bytes().decode("utf-8")
    except OSError as error:
      raise CorpusError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError as error:
      raise CorpusError(f"{name}: byte {error.start} is not UTF-8") from None
    specimens.append(parse(name, text))
  if not specimens:
    raise CorpusError(f"no corpus: {folder} holds no candidates")
  return sorted(specimens, key=lambda s: (s.is_honest, s.name))
