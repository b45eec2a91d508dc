"""Speaks a judge's protocol, for the tests of a pool with several GPUs: what it
does stands in the candidate's text, and its GPU in its answers."""

import argparse
import os
import pathlib
import sys
import time

import msgspec

from kernels_eval import frames
from kernels_eval.judge import Hello
from kernels_eval.schema import (
  HARNESS_VERSION,
  Evaluation,
  Phase,
  Request,
  Status,
)


def main(argv):
  parser = argparse.ArgumentParser()
  parser.add_argument("--folder", type=pathlib.Path)  # the test's
  parser.add_argument("--root", type=pathlib.Path)
  parser.add_argument("--settings")
  parser.add_argument("--server")
  parser.add_argument("--device", type=int)
  parser.add_argument("--cuda-settings")
  arguments = parser.parse_args(argv)
  requests, answers = sys.stdin.buffer, os.fdopen(1, "wb", buffering=0)
  frames.read(requests)  # the seed
  device = arguments.device
  lost = arguments.folder / f"lost {device}"
  other = arguments.folder / f"other kind {device}"
  if (arguments.folder / f"mute {device}").exists():
    return 1
  if lost.exists():
    frames.write(answers, msgspec.msgpack.encode(f"GPU {device} is lost"))
    return 1
  kind = "another GPU" if other.exists() else "a GPU"
  hello = Hello("cuda", kind, "no sandbox")
  frames.write(answers, msgspec.msgpack.encode(hello))
  while (frame := frames.read(requests)) is not None:
    request = msgspec.msgpack.decode(frame, type=Request)
    words = request.text.split()
    status = Status.PASSED
    if words[0] == f"fail{device}":
      status = Status.INFRASTRUCTURE_ERROR
    if words[0] in (f"lose{device}", "lose"):
      spared = arguments.folder / f"spare {device}"
      if not spared.exists():  # a GPU that stays while its judges go
        lost.touch()
      return 1
    time.sleep(0.02)  # or one judge has done all before the next one begins
    evaluation = Evaluation(
      id=request.id,
      problem=request.problem,
      status=status,
      phase=Phase.RUN,
      message=f"GPU {device}",
      executor="cuda",
      harness_version=HARNESS_VERSION,
    )
    frames.write(answers, msgspec.msgpack.encode(evaluation))
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
