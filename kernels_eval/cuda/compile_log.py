"""What NVRTC has printed, sorted as `cpu/compile_log.py` sorts g++'s."""

import re

from kernels_eval import diagnostics as diagnostics_lib
from kernels_eval.cpu import translate
from kernels_eval.cpu.compile_log import Messages, cut
from kernels_eval.schema import Diagnostic

# kernel.cu(3): error: text, and #pragma-controlled ones: error #20-D: text
_MESSAGE = re.compile(
  r"(?P<file>[^()\n]+)\((?P<line>\d+)\): (?P<severity>catastrophic error|error"
  r"|warning|remark|note)(?: #[\w-]+)?: (?P<message>.*)"
)
# Behind an error inside of a template or a header, indented.
_LED_HERE = re.compile(r"\s+.*\bat line (?P<line>\d+) of (?P<file>\S+)")
_MARKER = re.compile(r"KE_(COUNT|TYPE|VOID) (\d+)(?: (\d+))?")
# ptxas has no lines: "ptxas error   : Entry function `k` uses too much ..."
_ASSEMBLER = re.compile(r"ptxas (?:error|fatal)\s*: (?P<message>.*)")


def read(log: str) -> Messages:
  """Sorts the messages, each kept once, warnings left out."""
  found, markers = [], []
  trailer_error = None
  elsewhere = None  # the message of an error in a header, until its place
  for text in log.splitlines():
    match = _MESSAGE.match(text)
    if match is None:
      led = _LED_HERE.match(text)
      if led and elsewhere:
        if led["file"] == translate.SOURCE_NAME:
          found.append(Diagnostic("error", elsewhere, int(led["line"]), None))
          elsewhere = None
        elif led["file"] == translate.TRAILER_NAME:
          trailer_error, elsewhere = trailer_error or elsewhere, None
      assembler = _ASSEMBLER.match(text)
      if assembler:
        found.append(Diagnostic("error", cut(assembler["message"]), None, None))
      continue
    if match["severity"] in ("warning", "remark", "note"):
      continue
    message, line = cut(match["message"]), int(match["line"])
    if match["file"] == translate.TRAILER_NAME:
      marker = _MARKER.search(match["message"])
      if marker:
        markers.append(marker)
      elif trailer_error is None:
        trailer_error = message
    elif match["file"] != translate.SOURCE_NAME:
      if elsewhere:
        found.append(Diagnostic("error", elsewhere, None, None))
      elsewhere = message
    else:
      found.append(Diagnostic("error", message, line, None))
  if elsewhere:
    found.append(Diagnostic("error", elsewhere, None, None))
  return Messages(diagnostics_lib.merge(found), tuple(markers), trailer_error)
