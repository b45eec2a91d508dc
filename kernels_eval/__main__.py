"""Command line of the harness.

python -m kernels_eval list
python -m kernels_eval show PROBLEM
python -m kernels_eval check FILE --problem NAME [--json]
python -m kernels_eval bench [--json]
"""

import argparse
import dataclasses
import difflib
import os
import pathlib
import shutil
import signal
import sys
import tempfile

import msgspec
import tqdm

from kernels_eval import bench, client, judge, problems, report
from kernels_eval.cpu import executor, host, toolchain
from kernels_eval.schema import Request

OK, NOT_PASSED, BAD_REQUEST = 0, 1, 2
INTERRUPTED = 128 + signal.SIGINT
_COMMANDS = ("list", "show", "check", "bench")


class BadRequest(Exception):
  """The request itself is wrong; its text is the one line to print."""


def _problem(name):
  try:
    return problems.get(name)
  except problems.UnknownProblem as error:
    raise BadRequest(str(error)) from None


def _list(arguments):
  del arguments
  for name in sorted(problems.FAMILIES):
    print(name)
  return OK


def _show(arguments):
  problem = _problem(arguments.problem)
  print(f"{problem.name} (level {problem.level})\n")
  print(f"{problem.statement}\n")
  print(f"{problem.signature}\n")
  print(f"// launch: {problem.kernel} {problem.launch}")
  if arguments.solution:
    print(f"\n{problem.canonical.rstrip()}")
  return OK


def _read(path):
  try:
    raw = (
      sys.stdin.buffer.read()
      if path == "-"
      else pathlib.Path(path).read_bytes()
    )
  except OSError as error:
    raise BadRequest(f"cannot read {path}: {error.strerror}") from None
  try:
    return raw.decode("utf-8-sig")
  except UnicodeDecodeError as error:
    raise BadRequest(
      f"{path} is not a text file (byte {error.start} is not UTF-8)"
    ) from None


def _evaluate(arguments, problem, text):
  client.remove_stale_folders()
  root = pathlib.Path(tempfile.mkdtemp(prefix=f"kernels_eval-{os.getpid()}-"))
  try:
    judging, hello, close = judge.make(
      root, arguments.seed, executor.Settings()
    )
    try:
      if not arguments.json:
        print(f"sandbox: {hello.protections}", file=sys.stderr)
      return judging.evaluate(Request(arguments.file, problem.name, text))
    finally:
      close()
  finally:
    shutil.rmtree(root, ignore_errors=True)


def _check(arguments):
  problem = _problem(arguments.problem)
  text = _read(arguments.file)
  try:
    evaluation = _evaluate(arguments, problem, text)
  except (toolchain.ToolchainError, host.HostError, OSError) as error:
    raise BadRequest(f"infrastructure_error: {error}") from None
  if arguments.json:
    print(msgspec.json.encode(evaluation).decode())
  else:
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(report.render(evaluation, text, colour=colour))
  if not evaluation.counts:
    return BAD_REQUEST
  return OK if evaluation.passed else NOT_PASSED


def _bench(arguments):
  if arguments.count < 1:
    raise BadRequest(f"--count={arguments.count}; at least 1")
  if arguments.workers is not None and arguments.workers < 1:
    raise BadRequest(f"--workers={arguments.workers}; at least 1")
  with tqdm.tqdm(total=arguments.count, unit="kernel", file=sys.stderr) as bar:
    try:
      result = bench.run(
        arguments.count, arguments.workers, lambda _: bar.update()
      )
    except (client.HarnessError, OSError) as error:
      raise BadRequest(f"infrastructure_error: {error}") from None
  if not arguments.json:
    print(
      f"{result.num_kernels} unique kernels on {result.num_workers} judges "
      f"({result.executor}, {result.toolchain}): "
      f"{result.kernels_per_second:.1f} kernels/s\n"
      f"per kernel: compile {result.compile_ms:.1f} ms, run "
      f"{result.run_ms:.1f} ms, judge {result.judge_ms:.1f} ms; idle "
      f"{100 * result.idle_fraction:.0f} % of the judges' time\n"
      f"passed: {result.num_passed} of {result.num_kernels}"
    )
  else:
    print(msgspec.json.encode(dataclasses.asdict(result)).decode())
  return OK if result.num_passed == result.num_kernels else NOT_PASSED


class _Parser(argparse.ArgumentParser):
  """One line for an error."""

  def error(self, message):
    self.exit(BAD_REQUEST, f"{self.prog}: {message}\n")


def _check_command(argv):
  """Names the nearest command for a mistyped one."""
  words = [a for a in argv if not a.startswith("-")]
  if words and words[0] not in _COMMANDS:
    near = difflib.get_close_matches(words[0], _COMMANDS, n=1)
    hint = f" (did you mean `{near[0]}`?)" if near else ""
    raise BadRequest(
      f"no command `{words[0]}`{hint}; there are {', '.join(_COMMANDS)}"
    )


def _terminate(number, frame):
  """As an exception, so that processes and folders are cleaned up."""
  raise SystemExit(128 + number)


def _parser():
  parser = _Parser(
    prog="python -m kernels_eval", description="A judge for GPU kernels."
  )
  commands = parser.add_subparsers(dest="command", required=True)
  listing = commands.add_parser("list", help="name every problem")
  listing.set_defaults(run=_list)
  show = commands.add_parser(
    "show", help="statement, signature, default launch"
  )
  show.add_argument("problem")
  show.add_argument(
    "--solution", action="store_true", help="print the canonical kernel too"
  )
  show.set_defaults(run=_show)
  check = commands.add_parser("check", help="judge a kernel")
  check.add_argument("file", help="CUDA C++ text; - for standard input")
  check.add_argument("--problem", required=True, metavar="NAME")
  check.add_argument(
    "--json", action="store_true", help="print the record as one line of JSON"
  )
  check.add_argument("--seed", type=int, default=0, help="of the test inputs")
  check.set_defaults(run=_check)
  benchmark = commands.add_parser("bench", help="kernels per second")
  benchmark.add_argument("--count", type=int, default=200)
  benchmark.add_argument("--workers", type=int, default=None)
  benchmark.add_argument("--json", action="store_true")
  benchmark.set_defaults(run=_bench)
  return parser


def main(argv: list[str]) -> int:
  """Runs one command; returns the exit status."""
  before = signal.signal(signal.SIGTERM, _terminate)
  try:
    _check_command(argv)
    arguments = _parser().parse_args(argv)
    return arguments.run(arguments)
  except KeyboardInterrupt:
    print("kernels_eval: interrupted", file=sys.stderr)
    return INTERRUPTED
  except BadRequest as error:
    print(f"kernels_eval: {error}", file=sys.stderr)
    return BAD_REQUEST
  except BrokenPipeError:  # `... | head`
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return OK
  finally:
    signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
