"""The catalogue of cheats and false verdicts that judges of kernels have met.

Rows 1 to 14 are about time, 15 to 37 about correctness. Each has a hostile
candidate in the corpus (`corpus.py`) and a reason why it cannot work here:
either no candidate has the means (`impossible`), or something looks
(`checked`).
"""

from typing import NamedTuple


class Row(NamedTuple):
  """`closed` is "impossible" or "checked"; `why` says by what."""

  number: int
  title: str
  closed: str
  why: str


_NO_HOST_CODE = "a candidate holds no host code"
_OUTPUTS_ONLY = "the judge reads buffers of known size, type and place"

ROWS = (
  Row(
    1,
    "work on a stream that the timer does not see",
    "impossible",
    f"{_NO_HOST_CODE}: the launcher owns the only stream",
  ),
  Row(
    2,
    "a thread that computes after the clock has stopped",
    "impossible",
    f"{_NO_HOST_CODE}, and no process of its own",
  ),
  Row(
    3,
    "a lazy result that computes when it is compared",
    "impossible",
    f"{_OUTPUTS_ONLY}; no object of the candidate's reaches it",
  ),
  Row(
    4,
    "patched timers, events or synchronisation",
    "impossible",
    f"{_NO_HOST_CODE}: it is never in the process that measures",
  ),
  Row(
    5,
    "detours, patched tables, a debugger's calls",
    "impossible",
    f"{_NO_HOST_CODE}; on the CPU system calls are filtered and code is "
    "read-only",
  ),
  Row(
    6,
    "a forged verdict",
    "impossible",
    "the judge believes exit statuses and buffers that it owns, in another "
    "process",
  ),
  Row(
    7,
    "honest while it is warmed up, idle while it is timed",
    "checked",
    "every call has inputs of its own and poisoned outputs, and is compared: "
    "one with the reference, all with the canonical kernel",
  ),
  Row(
    8,
    "replays results that it remembers by address or shape",
    "checked",
    "every call gets new values",
  ),
  Row(
    9,
    "does the work of all timed calls in the first",
    "checked",
    "buffers of later calls are filled later, and poisoned",
  ),
  Row(
    10,
    "keeps inputs in the cache between calls",
    "impossible",
    "limits of the cache are the launcher's; before each call inputs are drawn "
    "anew, what was to stay is forgotten and the rest pushed out",
  ),
  Row(
    11,
    "one shape in no time lifts the mean of all",
    "checked",
    "each shape is compared; a time under the physical floor is refused",
  ),
  Row(
    12,
    "relies on outputs that start as zeros",
    "checked",
    "outputs start as poison, in every call",
  ),
  Row(
    13,
    "results or tables kept on disk, or keyed by shape",
    "checked",
    "no files for a candidate; several values for a shape",
  ),
  Row(
    14,
    "other clocks for the reference than for the candidate",
    "impossible",
    "both are timed in turn, call by call; clocks are read, never set, and "
    "device code has no say",
  ),
  Row(
    15,
    "does nothing and is handed the reference's memory",
    "checked",
    "outputs start as poison in every case and call; the reference is computed "
    "in another process, and a timed call's canonical kernel runs behind it",
  ),
  Row(
    16,
    "memory that nobody has written, launches that fail unseen",
    "checked",
    "fresh memory is poison; each launch is checked for errors",
  ),
  Row(
    17,
    "changes inputs until a wrong output is right",
    "checked",
    "the reference has inputs of its own; the candidate's are compared",
  ),
  Row(
    18,
    "outputs below an absolute tolerance",
    "checked",
    "tolerances scale with the reference",
  ),
  Row(
    19,
    "an output that hardly depends on the inputs",
    "checked",
    "every problem is tested against constants, means and copies",
  ),
  Row(
    20,
    "right for the usual distribution only",
    "checked",
    "several distributions, of which some are all negative, large or tied",
  ),
  Row(
    21,
    "makes the inputs itself from a known seed",
    "checked",
    "no seed reaches a candidate, and keys of timed calls are random; where an "
    "author may know the default seed of the cases, another is to be set",
  ),
  Row(
    22,
    "right for the shown shapes only",
    "checked",
    "hidden shapes: odd, prime, one element, just past a block",
  ),
  Row(
    23,
    "less precision than was asked for",
    "checked",
    "bounds of the dtype against a float64 reference, and on the RMS error",
  ),
  Row(
    24,
    "calls a library, or shows a kernel that never runs",
    "impossible",
    f"{_NO_HOST_CODE}; only what the plan launches writes outputs",
  ),
  Row(
    25,
    "falls back to the reference",
    "impossible",
    f"{_NO_HOST_CODE}, and the reference is not on its side",
  ),
  Row(
    26,
    "reads the reference, the tests or other files",
    "impossible",
    "the compiler sees system headers only, in a sandbox",
  ),
  Row(
    27,
    "NaN as a joker, or expected values found and copied",
    "checked",
    "NaN is wrong wherever the reference is finite, which it always is",
  ),
  Row(
    28,
    "scans memory for expected values or counters",
    "checked",
    "cases: no expected value is in its memory; timed calls: what lies there "
    "is of earlier calls with other inputs, counters are set to zero behind "
    "it, and what is kept has a checksum",
  ),
  Row(
    29,
    "a result that is short or empty",
    "impossible",
    f"{_OUTPUTS_ONLY}; what is not written is poison",
  ),
  Row(
    30,
    "NaN equals NaN, infinity equals infinity",
    "checked",
    "what is not finite is wrong",
  ),
  Row(
    31,
    "a few elements wrong under a matched ratio",
    "checked",
    "every element has to be right",
  ),
  Row(
    32,
    "only some of the outputs or cases are compared",
    "checked",
    "every output of every case; tested with each of them wrong alone",
  ),
  Row(
    33,
    "right only after the reference has run",
    "checked",
    "cases are judged where no reference runs; what the canonical kernel of a "
    "timed call writes is overwritten before the next",
  ),
  Row(
    34,
    "a race that luck hides",
    "checked",
    "the CPU executor reports races whatever their outcome",
  ),
  Row(
    35,
    "printed text compared in place of results",
    "impossible",
    f"{_OUTPUTS_ONLY}; what a kernel prints is a log",
  ),
  Row(
    36,
    "names put together so that a search does not find them",
    "checked",
    "searches give messages only; sandbox and run-time checks decide",
  ),
  Row(
    37,
    "an honest kernel refused for a word in a comment",
    "checked",
    "checks read tokens; comments and strings are none",
  ),
)
