"""Command line of the harness.

python -m kernels_eval list
python -m kernels_eval show PROBLEM [--solution] [--language=numba]
python -m kernels_eval check FILE --problem NAME [--json] [--no-cache]
python -m kernels_eval bench [--language=numba] [--devices=0,1] [--json]
python -m kernels_eval timing [--json]
python -m kernels_eval soak [--count=N] [--seed=S] [--json] [--out=FILE]
python -m kernels_eval audit [--corpus=DIR] [--json]
python -m kernels_eval agreement [--count=N] [--seed=S] [--json]
"""

import contextlib
import dataclasses
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
  problem_cards,
  problems,
  report,
  verdict_cache,
  verdict_store,
)
from kernels_eval.arguments import (
  BAD_REQUEST,
  BadRequest,
  check_command,
  make_parser,
)
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.numba import signature
from kernels_eval.schema import Request
from kernels_eval.soak import mix, summary
from kernels_eval.soak import run as soak

OK, NOT_PASSED = 0, 1
INTERRUPTED = 128 + signal.SIGINT


def _problem(name):
  try:
    return problems.get(name)
  except problems.UnknownProblem as error:
    raise BadRequest(str(error)) from None


def _card(name):
  try:
    return problem_cards.card(name)
  except problems.UnknownProblem as error:
    raise BadRequest(str(error)) from None


def _list(arguments):
  del arguments
  for name in sorted(problems.FAMILIES):
    print(name)
  return OK


def _show(arguments):
  card = _card(arguments.problem)
  if card.language == "python":
    if arguments.solution:
      raise BadRequest(f"{card.name} has no stored solution")
    print(
      f"{card.name} (level {card.level})\n\n{card.statement}\n\n"
      f"{card.signature}"
    )
    return OK
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
  problem = _card(arguments.problem)
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
          cuda_settings=CudaSettings(
            with_timing=True,
            with_jax=not arguments.no_jax,
            with_sanitizer=arguments.sanitizer,
          ),
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
        devices=arguments.devices,
      )
    except (client.HarnessError, OSError) as error:
      raise BadRequest(f"infrastructure_error: {error}") from None
  if not arguments.json:
    print(
      f"{result.num_kernels} unique kernels on {result.num_workers} judges "
      f"({result.place}, {result.toolchain}): "
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
    except (client.HarnessError, OSError) as error:
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


_RUN = {
  "list": _list,
  "show": _show,
  "check": _check,
  "bench": _bench,
  "timing": _timing,
  "soak": _soak,
  "audit": _audit,
  "agreement": _agreement,
}


def _terminate(number, frame):
  """As an exception, so that processes and folders are cleaned up."""
  raise SystemExit(128 + number)


def main(argv: list[str]) -> int:
  """Runs one command; returns the exit status."""
  before = signal.signal(signal.SIGTERM, _terminate)
  try:
    check_command(argv)
    arguments = make_parser().parse_args(argv)
    return _RUN[arguments.command](arguments)
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
