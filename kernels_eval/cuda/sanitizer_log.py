"""What compute-sanitizer prints, as findings at lines of the candidate.

Its reports are lines behind `=========`: a headline, then where, by whom, and
what is wrong with the address. Frames of device functions and headers may stand
between the fault and the candidate's own line.
"""

import re
from collections.abc import Sequence

from kernels_eval import source
from kernels_eval.cpu.translate import SOURCE_NAME
from kernels_eval.schema import Finding

_PREFIX = "========="
_PLACE = re.compile(r" in (?:\S*/)?(?P<file>[^\s/:]+):(?P<line>\d+)")
_BY = re.compile(
  r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)"
)
_MEMORY = re.compile(r"(?:Potential )?[Ii]nvalid __\w+__ \w+ .*")
_ADDRESS = re.compile(r"Address 0x[0-9a-f]+ (?P<what>is .*)")
_RACE = re.compile(r"(?:\w+: )?Race reported between (?P<first>\w+) access at ")
_OTHER = re.compile(r"and (?P<second>\w+) access at ")
_HAZARD = re.compile(
  r"(?:\w+: )?(?:\(.*\) )?Potential (?P<kind>\w+) hazard detected at "
  r"__shared__ .* in block \((\d+),(\d+),(\d+)\)"
)
_ACCESS = re.compile(r"(?P<what>Read|Write) Thread \((\d+),(\d+),(\d+)\) at ")
_KINDS = (  # by what is said of an address
  ("misaligned", "misaligned"),
  ("out of bounds", "out_of_bounds"),
)


def _own_line(texts: Sequence[str]) -> int | None:
  """The first line of the candidate's file that they name."""
  for text in texts:
    place = _PLACE.search(text)
    if place and place["file"] == SOURCE_NAME:
      return int(place["line"])
  return None


def _reports(log):
  """Groups of lines, each with a headline first, without prefix and indent."""
  group = []
  for line in log.splitlines():
    if not line.startswith(_PREFIX):
      continue  # the program's own output
    text = line.removeprefix(_PREFIX)
    if group and not text.startswith("     "):
      yield group
      group = []
    if text.strip():
      group.append(text.strip())
  if group:
    yield group


def _numbers(match, *groups):
  return tuple(int(match[g]) for g in groups)


def _memory(report):
  """Of memcheck: an access that a device refuses."""
  address = next(filter(None, map(_ADDRESS.match, report)), None)
  what = address["what"] if address else ""
  kind = next((k for words, k in _KINDS if words in what), "bad_address")
  by = next(filter(None, map(_BY.search, report)), None)
  text = report[0][0].lower() + report[0][1:]
  return Finding(
    kind,
    f"{text}: the address {what}" if what else text,
    line=_own_line(report[1:]),
    thread=_numbers(by, 1, 2, 3) if by else None,
    block=_numbers(by, 4, 5, 6) if by else None,
  )


def _at(text):
  line = _own_line([text])
  return "" if line is None else f" in line {line}"


def _race(report):
  """Of racecheck's analysis: two places that are not ordered."""
  first = _RACE.match(report[0])
  others = [(m["second"], t) for t in report[1:] if (m := _OTHER.match(t))]
  places = [(first["first"], report[0]), *others]
  text = " and ".join(f"{what.lower()}{_at(t)}" for what, t in places)
  return Finding(
    "data_race",
    f"race in shared memory between {text}",
    line=_own_line(report),
  )


def _hazard(report):
  """Of racecheck's hazards: two threads at one address."""
  head = _HAZARD.match(report[0])
  accesses = [(m, t) for t in report[1:] if (m := _ACCESS.match(t))]
  text = " and ".join(
    f"{m['what'].lower()} of thread {_numbers(m, 2, 3, 4)}{_at(t)}"
    for m, t in accesses
  )
  return Finding(
    "data_race",
    f"race in shared memory ({head['kind']}): {text}",
    line=_own_line(report[1:]),
    thread=_numbers(accesses[0][0], 2, 3, 4) if accesses else None,
    block=_numbers(head, 2, 3, 4),
  )


_READERS = ((_MEMORY, _memory), (_RACE, _race), (_HAZARD, _hazard))


def read(log: str) -> Finding | None:
  """The first finding, rather one that has a line; None where there is none.

  Args:
    log: of memcheck or racecheck.
  """
  found = [
    reader(report)
    for report in _reports(log)
    for headline, reader in _READERS
    if headline.match(report[0])
  ]
  return next((f for f in found if f.line is not None), next(iter(found), None))


def last_words(log: str) -> str:
  """What the tool says in the end, behind a colon, such as its summary; "" of a
  log without words."""
  lines = [
    line.removeprefix(_PREFIX).strip()
    for line in log.splitlines()
    if line.startswith(_PREFIX)
  ]
  words = next(filter(None, reversed(lines)), "")
  return f": {source.one_line(words)}" if words else ""
