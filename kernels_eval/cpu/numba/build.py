"""Numba candidates for the CPU executor: object file and argument words."""

from collections.abc import Sequence

from kernels_eval.candidate import Candidate
from kernels_eval.launch_plan import Launch
from kernels_eval.numba import build, client, signature
from kernels_eval.numba.messages import LowerJob, Object
from kernels_eval.problems import spec
from kernels_eval.settings import Settings

NAME = "numba-ir"
# What the IR is made for; the CPU executor stands in for 8.0 and up.
_COMPUTE_CAPABILITY = (8, 0)
_SCALAR_WORDS = {"float32": "float", "int32": "i32"}


def _words(kernel):
  words = []
  for dtype, ndim in kernel.parameters:
    if ndim is None:
      words.append(_SCALAR_WORDS[dtype])
    else:
      words += ["ptr", "ptr", "i64", "i64", "ptr", *["i64"] * (2 * ndim)]
  return tuple(words)


def compile_object(
  front_end: client.FrontEnd,
  candidate: Candidate,
  problem: spec.Problem,
  launches: Sequence[Launch],
  settings: Settings,
) -> bytes:
  """The object file with one entry for each launch.

  Raises:
    Stop: with diagnostics.
    client.ServerError: a fault of the machine.
  """
  kernels = build.kernels_of(launches, candidate, problem)
  compiled = build.compile_kernels(
    front_end, candidate.source, kernels, "ir", _COMPUTE_CAPABILITY, settings
  )
  job = LowerJob(
    tuple(dict.fromkeys(t for k in compiled.kernels for t in k.texts)),
    tuple(k.symbol for k in compiled.kernels),
    tuple(_words(k) for k in kernels),
    compiled.shared_names,
    build.limits_of(settings),
  )
  return build.result_of(front_end.ask(job), Object, settings).contents


def run_arguments(
  buffer: int, shape: tuple[int, ...], item_bytes: int
) -> list[tuple[str, int]]:
  """A plan's arguments for one array."""
  words = signature.array_words(0, shape, item_bytes)
  arguments = [("word", w) for w in words]
  arguments[4] = ("buffer", buffer)
  return arguments
