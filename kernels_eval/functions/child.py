"""Runs one candidate on its inputs, inside of the sandbox. Trusted until it has
confined itself; believed in nothing afterwards.

Copied into the job's folder beside `landlock.py` and `seccomp.py`, which is all
that it imports of ours: the judge's code, with the right answers in it, is not
to be seen from here.

    python -I -S -B child.py PYTHON_FOLDER
"""

import json
import os
import sys
import traceback

SOURCE_NAME = "answer.py"
FUNCTION = "solve"


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


def main():
  """Reads job.json, confines itself, writes result.json."""
  here = os.path.dirname(os.path.abspath(__file__))
  sys.path.insert(0, here)
  import landlock
  import seccomp

  with open("job.json", encoding="utf-8") as file:
    job = json.load(file)
  result = os.open("result.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
  # What a candidate may import is loaded before the door closes.
  for name in job["modules"]:
    __import__(name)
  os.unlink("job.json")
  landlock.restrict((sys.argv[1], "/usr", "/lib", "/lib64"), ("/dev/null",))
  seccomp.confine()
  record = _work(job)
  # Values of other types are the judge's to refuse, not json's to turn into
  # something else.
  payload = json.dumps(record, default=lambda value: {"type": str(type(value))})
  os.write(result, payload.encode("utf-8", "replace"))
  os._exit(0)


if __name__ == "__main__":
  main()
