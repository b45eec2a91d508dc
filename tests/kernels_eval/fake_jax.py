"""Stands for the process of the JAX baseline: the problem's name says what it
does; the journal counts its starts."""

import argparse
import os
import sys
import time

import msgspec

from kernels_eval.cuda.jax_reference import Report

_ANSWERS = {
  "well": Report(times_ms=(1.0, 3.0, 2.0), version="0"),
  "short": Report(times_ms=(-1.0, 0.0, 0.0), version="0"),
  "memory": Report(reason="JAX failed: out of memory"),
  "absent": Report(reason="JAX is not installed", is_lasting=True),
}


def main(argv):
  parser = argparse.ArgumentParser()
  parser.add_argument("--journal")
  parser.add_argument("--problem")
  parser.add_argument("--dims")
  parser.add_argument("--device")
  arguments = parser.parse_args(argv)
  with open(arguments.journal, "a") as journal:
    journal.write(f"{arguments.problem}\n")
  if arguments.problem == "hang":
    time.sleep(600)
  if arguments.problem == "die":
    os.abort()
  print(msgspec.json.encode(_ANSWERS[arguments.problem]).decode())


if __name__ == "__main__":
  main(sys.argv[1:])
