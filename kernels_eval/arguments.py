"""What the command line of the harness takes; `__main__.py` does it."""

import argparse
import difflib
import pathlib
from collections.abc import Sequence

from kernels_eval import candidate
from kernels_eval.executors import AUTO, EXECUTORS

BAD_REQUEST = 2  # exit status
COMMANDS = (
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


class _Parser(argparse.ArgumentParser):
  """One line for an error."""

  def error(self, message):
    self.exit(BAD_REQUEST, f"{self.prog}: {message}\n")


def check_command(argv: Sequence[str]) -> None:
  """Raises BadRequest for a command that does not exist, with the nearest."""
  words = [a for a in argv if not a.startswith("-")]
  if words and words[0] not in COMMANDS:
    near = difflib.get_close_matches(words[0], COMMANDS, n=1)
    hint = f" (did you mean `{near[0]}`?)" if near else ""
    raise BadRequest(
      f"no command `{words[0]}`{hint}; there are {', '.join(COMMANDS)}"
    )


def _add_executor(parser):
  parser.add_argument(
    "--executor",
    choices=EXECUTORS,
    default=AUTO,
    help="where kernels run; auto: the GPU where one is usable. Of several it "
    "is the first: CUDA_VISIBLE_DEVICES=1 makes the second one the first",
  )


def _indices(text):
  try:
    return tuple(int(part) for part in text.split(","))
  except ValueError:
    raise argparse.ArgumentTypeError(
      f"{text}; indices of GPUs, as 0 or 0,1"
    ) from None


def _add_language(command):
  command.add_argument(
    "--language",
    choices=(candidate.CUDA, candidate.NUMBA),
    default=candidate.CUDA,
  )


def make_parser() -> argparse.ArgumentParser:
  """The parser; the result's `command` is one of COMMANDS."""
  parser = _Parser(
    prog="python -m kernels_eval", description="A judge for GPU kernels."
  )
  commands = parser.add_subparsers(dest="command", required=True)
  commands.add_parser("list", help="name every problem")
  show = commands.add_parser(
    "show", help="statement, signature, default launch"
  )
  show.add_argument("problem")
  show.add_argument(
    "--solution", action="store_true", help="print the canonical kernel too"
  )
  _add_language(show)
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
  check.add_argument(
    "--no-jax",
    action="store_true",
    help="no JAX baseline, which takes some seconds (GPU)",
  )
  check.add_argument(
    "--sanitizer",
    action="store_true",
    help="explain a failure by compute-sanitizer's memcheck or racecheck (GPU)",
  )
  check.add_argument("--seed", type=int, default=0, help="of the test inputs")
  _add_executor(check)
  benchmark = commands.add_parser("bench", help="kernels per second")
  benchmark.add_argument("--count", type=int, default=200)
  benchmark.add_argument("--workers", type=int, default=None)
  benchmark.add_argument(
    "--devices",
    type=_indices,
    default=(0,),
    help="GPUs among which the judges are shared out, as 0,1 (default: 0)",
  )
  _add_executor(benchmark)
  benchmark.add_argument("--json", action="store_true")
  _add_language(benchmark)
  repeat = commands.add_parser(
    "timing", help="how well times repeat, and a copy beside its ceiling (GPU)"
  )
  repeat.add_argument(
    "--count", type=int, default=20, help="evaluations of each kernel"
  )
  repeat.add_argument("--json", action="store_true")
  soaking = commands.add_parser(
    "soak", help="many good and hostile kernels; what do they leave behind?"
  )
  soaking.add_argument("--count", type=int, default=2000)
  soaking.add_argument("--seed", type=int, default=0, help="of the mix")
  soaking.add_argument("--workers", type=int, default=None)
  _add_executor(soaking)
  soaking.add_argument("--json", action="store_true")
  soaking.add_argument("--out", metavar="FILE", help="for the result as JSON")
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
  agreeing = commands.add_parser(
    "agreement", help="do CPU and GPU say the same of a candidate? (GPU)"
  )
  agreeing.add_argument(
    "--count", type=int, default=300, help="kernels with a random mistake"
  )
  agreeing.add_argument("--seed", type=int, default=0, help="of the mistakes")
  agreeing.add_argument("--json", action="store_true")
  return parser
