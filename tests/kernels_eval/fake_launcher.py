"""Speaks a launcher's protocol without a GPU, for the tests of the server: what
it does with a job stands in the name of the job's kernel."""

import argparse
import os
import socket
import sys
import time

import msgspec

from kernels_eval.cuda import jobs

HELLO = jobs.Hello("stand-in", (9, 0), "0", 1, 1, 1.0, 2**30)


def _report(outcome, message=""):
  return msgspec.msgpack.encode(jobs.Report(outcome, message))


def main(argv):
  parser = argparse.ArgumentParser()
  parser.add_argument("--socket", type=int)
  parser.add_argument("--journal")
  parser.add_argument("--start", default="well")
  arguments = parser.parse_args(argv)
  connection = socket.socket(fileno=arguments.socket)
  if arguments.start == "badly":
    message = jobs.StartFailed("no memory on the device")
    connection.send(msgspec.msgpack.encode(message))
    return 1
  connection.send(msgspec.msgpack.encode(HELLO))
  while True:
    message, descriptors, _, _ = socket.recv_fds(
      connection, jobs.MAX_MESSAGE_BYTES, 1
    )
    if not message:
      return 0
    os.close(descriptors[0])
    job = msgspec.msgpack.decode(message, type=jobs.Run | jobs.Timing)
    if isinstance(job, jobs.Timing):
      what, kind = "sleep", "timing"
    else:
      what, kind = job.cases[0][0].entry, "run"
    with open(arguments.journal, "a") as journal:
      journal.write(f"start {kind} {os.getpid()} {time.monotonic()}\n")
    if what == "die":
      os._exit(3)
    if what == "hang":
      time.sleep(600)
    if what == "sleep":
      time.sleep(0.3)
    if what == "half a second":
      time.sleep(0.5)
    with open(arguments.journal, "a") as journal:
      journal.write(f"end {kind} {os.getpid()} {time.monotonic()}\n")
    outcome = {
      "fail": jobs.Outcome.KERNEL_FAILED,
      "broken": jobs.Outcome.MACHINE_FAILED,
    }.get(what, jobs.Outcome.DONE)
    connection.send(_report(outcome, what))


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
