"""Command line of the harness.

python -m kernels_eval list
python -m kernels_eval show PROBLEM [--solution] [--language=numba]
python -m kernels_eval check FILE --problem NAME [--json] [--no-cache]
python -m kernels_eval bench [--language=numba] [--json]
python -m kernels_eval timing [--json]
python -m kernels_eval soak [--count=N] [--seed=S] [--json] [--out=FILE]
python -m kernels_eval audit [--corpus=DIR] [--json]
python -m kernels_eval agreement [--count=N] [--seed=S] [--json]
"""

import argparse
import contextlib
import dataclasses
import difflib
import os
import pathlib
import signal
import sys

import msgspec
import tqdm

from kernels_eval import (
  agreement,
  audit,
  bench,
  candidate,
  client,
  corpus,
  problems,
  report,
  verdict_cache,
  verdict_store,
)
from kernels_eval.numba import signature
from kernels_eval.schema import Request
from kernels_eval.soak import mix, summary
from kernels_eval.soak import run as soak

OK, NOT_PASSED, BAD_REQUEST = 0, 1, 2
INTERRUPTED = 128 + signal.SIGINT
_COMMANDS = (
  "list",
  "show",
  "check",
  "bench",
  "timing",
  "soak",
  "audit",
  "agreement",
)


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
  if arguments.language == candidate.NUMBA:
    declaration, mark = signature.declaration(problem), "#"
  else:
    declaration, mark = problem.signature, "//"
  print(f"{declaration}\n")
  print(f"{mark} launch: {problem.kernel} {problem.launch}")
  if arguments.solution:
    print(f"\n{_canonical(problem, arguments.language).rstrip()}")
  return OK


def _canonical(problem, language):
  if language == candidate.NUMBA:
    return problem.numba_canonical
  return problem.canonical


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


def _check(arguments):
  problem = _problem(arguments.problem)
  text = _read(arguments.file)
  try:
    with contextlib.ExitStack() as stack:
      cache = verdict_cache.Nothing()
      if not arguments.no_cache:
        cache = stack.enter_context(verdict_store.Store())
      pool = stack.enter_context(
        client.Pool(
          num_workers=1,
          seed=arguments.seed,
          executor=arguments.executor,
          with_timing=True,
          cache=cache,
        )
      )
      if not arguments.json:
        print(pool.description, file=sys.stderr)
      (evaluation,) = pool.evaluate(
        [Request(arguments.file, problem.name, text)]
      )
      if not arguments.json and pool.num_remembered:
        print("judged before; --no-cache judges again", file=sys.stderr)
  except (client.HarnessError, OSError) as error:
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
        arguments.count,
        arguments.workers,
        arguments.executor,
        lambda _: bar.update(),
        language=arguments.language,
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


def _timing(arguments):
  from kernels_eval.cuda import timing_bench

  if arguments.count < 2:
    raise BadRequest(f"--count={arguments.count}; at least 2")
  with tqdm.tqdm(unit="evaluation", file=sys.stderr) as bar:
    try:
      result = timing_bench.run(arguments.count, bar.update)
    except client.HarnessError as error:
      raise BadRequest(f"infrastructure_error: {error}") from None
  if arguments.json:
    print(msgspec.json.encode(result).decode())
  else:
    print(timing_bench.describe(result))
  return OK


def _soak(arguments):
  least = len(mix.SHARES)
  if arguments.count < least:
    raise BadRequest(f"--count={arguments.count}; at least {least}")
  if arguments.workers is not None and arguments.workers < 1:
    raise BadRequest(f"--workers={arguments.workers}; at least 1")
  out = None
  if arguments.out is not None:
    try:
      out = open(arguments.out, "w", encoding="utf-8")
    except OSError as error:
      raise BadRequest(
        f"cannot write {arguments.out}: {error.strerror}"
      ) from None
  with (
    out or contextlib.nullcontext(),
    tqdm.tqdm(total=arguments.count, unit="kernel", file=sys.stderr) as bar,
  ):
    try:
      result = soak.soak(
        arguments.count,
        arguments.seed,
        arguments.workers,
        lambda _: bar.update(),
        executor=arguments.executor,
      )
    except corpus.CorpusError as error:
      raise BadRequest(str(error)) from None
    except client.HarnessError as error:
      raise BadRequest(f"infrastructure_error: {error}") from None
    record = msgspec.json.encode(result)
    if out is not None:
      out.write(msgspec.json.format(record, indent=2).decode() + "\n")
  print(record.decode() if arguments.json else summary.render(result))
  return OK if result.is_clean else NOT_PASSED


def _audit(arguments):
  if arguments.workers is not None and arguments.workers < 1:
    raise BadRequest(f"--workers={arguments.workers}; at least 1")
  try:
    specimens = corpus.load(arguments.corpus or corpus.default_folder())
    with tqdm.tqdm(total=len(specimens), unit="file", file=sys.stderr) as bar:
      result = audit.run(
        specimens, arguments.workers, arguments.executor, bar.update
      )
  except corpus.CorpusError as error:
    raise BadRequest(str(error)) from None
  except client.HarnessError as error:
    raise BadRequest(f"infrastructure_error: {error}") from None
  if arguments.json:
    print(audit.encode(result).decode())
  else:
    print(audit.render(result))
  return NOT_PASSED if result.escaped else OK


def _agreement(arguments):
  if arguments.count < 0:
    raise BadRequest(f"--count={arguments.count}; at least 0")
  try:
    cases = [
      *agreement.canonical_cases(),
      *agreement.mutated_cases(arguments.count, arguments.seed),
      *agreement.corpus_cases(corpus.load(corpus.default_folder())),
    ]
    total = 2 * len(cases)
    with tqdm.tqdm(total=total, unit="verdict", file=sys.stderr) as bar:
      result = agreement.run(cases, on_result=bar.update)
  except corpus.CorpusError as error:
    raise BadRequest(str(error)) from None
  except client.HarnessError as error:
    raise BadRequest(f"infrastructure_error: {error}") from None
  if arguments.json:
    print(agreement.encode(result).decode())
  else:
    print(agreement.render(result))
  return NOT_PASSED if result.unexplained else OK


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


def _add_executor(parser):
  parser.add_argument(
    "--executor",
    choices=client.EXECUTORS,
    default="auto",
    help="where kernels run; auto: the GPU where one is usable",
  )


def _add_language(command):
  command.add_argument(
    "--language",
    choices=(candidate.CUDA, candidate.NUMBA),
    default=candidate.CUDA,
  )


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
  _add_language(show)
  show.set_defaults(run=_show)
  check = commands.add_parser("check", help="judge a kernel")
  check.add_argument(
    "file", help="CUDA C++ or Numba-CUDA text; - for standard input"
  )
  check.add_argument("--problem", required=True, metavar="NAME")
  check.add_argument(
    "--json", action="store_true", help="print the record as one line of JSON"
  )
  check.add_argument(
    "--no-cache", action="store_true", help="judge again what was judged before"
  )
  check.add_argument("--seed", type=int, default=0, help="of the test inputs")
  _add_executor(check)
  check.set_defaults(run=_check)
  benchmark = commands.add_parser("bench", help="kernels per second")
  benchmark.add_argument("--count", type=int, default=200)
  benchmark.add_argument("--workers", type=int, default=None)
  _add_executor(benchmark)
  benchmark.add_argument("--json", action="store_true")
  _add_language(benchmark)
  benchmark.set_defaults(run=_bench)
  repeat = commands.add_parser(
    "timing", help="how well times repeat, and a copy beside its ceiling (GPU)"
  )
  repeat.add_argument(
    "--count", type=int, default=20, help="evaluations of each kernel"
  )
  repeat.add_argument("--json", action="store_true")
  repeat.set_defaults(run=_timing)
  soaking = commands.add_parser(
    "soak", help="many good and hostile kernels; what do they leave behind?"
  )
  soaking.add_argument("--count", type=int, default=2000)
  soaking.add_argument("--seed", type=int, default=0, help="of the mix")
  soaking.add_argument("--workers", type=int, default=None)
  _add_executor(soaking)
  soaking.add_argument("--json", action="store_true")
  soaking.add_argument("--out", metavar="FILE", help="for the result as JSON")
  soaking.set_defaults(run=_soak)
  auditing = commands.add_parser("audit", help="try every known cheat")
  auditing.add_argument(
    "--corpus",
    type=pathlib.Path,
    metavar="DIR",
    help="hostile candidates; default: those of this checkout's tests",
  )
  auditing.add_argument("--workers", type=int, default=None)
  _add_executor(auditing)
  auditing.add_argument("--json", action="store_true")
  auditing.set_defaults(run=_audit)
  agreeing = commands.add_parser(
    "agreement", help="do CPU and GPU say the same of a candidate? (GPU)"
  )
  agreeing.add_argument(
    "--count", type=int, default=300, help="kernels with a random mistake"
  )
  agreeing.add_argument("--seed", type=int, default=0, help="of the mistakes")
  agreeing.add_argument("--json", action="store_true")
  agreeing.set_defaults(run=_agreement)
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
