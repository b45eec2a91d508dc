"""Runs one candidate on its inputs, inside of the sandbox. Trusted until it has
confined itself; believed in nothing afterwards.

Copied into the job's folder beside `landlock.py` and `seccomp.py`, which is all
that it imports of ours: the judge's code, with the right answers in it, is not
to be seen from here. Once it is confined, no file at all is.

    python -I -S -B child.py
"""

import json
import os
import sys
import traceback

SOURCE_NAME = "answer.py"
FUNCTION = "solve"
# What the modules that a candidate may import load later, at a call.
LOADED_LATER = ("copy", "inspect", "unicodedata", "weakref")


def _line(error):
  """The candidate's line of an exception."""
  if isinstance(error, SyntaxError) and error.filename == SOURCE_NAME:
    return error.lineno
  frames = traceback.extract_tb(error.__traceback__)
  lines = [f.lineno for f in frames if f.filename == SOURCE_NAME]
  return lines[-1] if lines else None


def _failure(kind, error):
  text = "".join(traceback.format_exception_only(error)).strip()
  return {
    "kind": kind,
    "text": text.splitlines()[-1][:500],
    "line": _line(error),
  }


def _work(job):
  """The record that becomes result.json."""
  try:
    program = compile(job["source"], SOURCE_NAME, "exec", dont_inherit=True)
  except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
    return _failure("compile", error)
  names = {"__name__": "answer"}
  try:
    exec(program, names)
    solve = names[FUNCTION]
  except BaseException as error:
    return _failure("load", error)
  values = []
  for xs in job["inputs"]:
    try:
      values.append(solve(list(xs)))
    except BaseException as error:
      return _failure("run", error) | {"values": values}
  return {"kind": "values", "values": values}


def _confine():
  """After this nothing can be opened, read or waited for."""
  import landlock
  import seccomp

  if not seccomp.is_available():
    sys.exit("this machine grants no system-call filter (seccomp)")
  # Printing would wait for the host to read.
  os.dup2(0, 1)
  os.dup2(0, 2)
  landlock.restrict((), ())  # a second lock on one door: it may be missing
  seccomp.confine(seccomp.COMPUTING)


def main():
  """Reads job.json, confines itself, writes result.json."""
  sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
  with open("job.json", encoding="utf-8") as file:
    job = json.load(file)
  result = os.open("result.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
  # What a candidate may import is loaded before the door closes.
  for name in (*job["modules"], *LOADED_LATER):
    __import__(name)
  _confine()
  # The sign that the candidate has begun. It cannot be taken back: seeking and
  # truncating are among what is refused.
  os.write(result, b"\n")
  record = _work(job)
  # Values of other types are the judge's to refuse, not json's to turn into
  # something else.
  payload = json.dumps(record, default=lambda value: {"type": str(type(value))})
  os.write(result, payload.encode("utf-8", "replace"))
  os._exit(0)


if __name__ == "__main__":
  main()
