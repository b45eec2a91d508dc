"""Times one problem's reference as jitted JAX on a GPU; prints a `Report`.

python -m kernels_eval.jax_baseline --problem=softmax --dims='{"rows": 4096,
"cols": 4096}' --device=0

How: calls are timed twice, each behind a write of half a gibibyte, which leaves
nothing of the inputs in the cache and lasts longer than Python needs to hand
out what follows. Once those writes alone, once with the reference behind each;
the time is what the reference adds until its outputs are there. It holds what
the GPU waits between JAX's kernels, but not Python's part. A host's clock reads
some tens of microseconds more or less: each reading is of several calls. Each
reading has input values of its own, made before the clock starts.
"""

import argparse
import contextlib
import ctypes
import math
import os
import signal
import sys
import time

import msgspec
import numpy as np

from kernels_eval import problems
from kernels_eval.cuda.jax_reference import Report
from kernels_eval.problems import spec, timing_inputs

NUM_READINGS = 20
NUM_WARM = 3
CALLS_PER_READING = 10
_FLUSH_ITEMS = 2**27  # of float32
_MAX_CHARS = 300
_PR_SET_PDEATHSIG = 1


def _largest(problem):
  """The case of correctness with most elements."""
  sizes = [
    sum(int(np.prod(t.shape_for(c.dims))) for t in problem.inputs)
    for c in problem.cases
  ]
  return problem.cases[int(np.argmax(sizes))]


def _clock_ms(start_work):
  """Milliseconds of one of several calls."""
  import jax

  started = time.perf_counter()
  for _ in range(CALLS_PER_READING):
    last = start_work()
  jax.block_until_ready(last)
  return (time.perf_counter() - started) * 1e3 / CALLS_PER_READING


def measure(problem: spec.Problem, dims: dict[str, int]) -> tuple[float, ...]:
  """Milliseconds of a call in each reading, on JAX's default device."""
  import jax
  import jax.numpy as jnp

  from kernels_eval.jax_baseline import references

  case = timing_inputs.case_for(problem, dims)
  if case is None:
    raise ValueError("answers are the same for all inputs of this size")
  rng = np.random.default_rng(0)
  made = timing_inputs.make(problem, case, rng)
  flush = jax.jit(lambda words: words + 1, donate_argnums=0)
  with references.arithmetic(problem):
    compute = references.jitted(problem, case)
    bases = [jnp.asarray(references.typed(i.tensor, i.base)) for i in made]

    @jax.jit
    def values_for(bases, key):
      return {
        i.tensor.name: base[
          timing_inputs.places(
            math.prod(i.shape), key, i.ordinal, base.size, jnp
          )
        ].reshape(i.shape)
        for i, base in zip(made, bases, strict=True)
      }

    words = jnp.zeros(_FLUSH_ITEMS, jnp.float32)
    times_ms = []
    for key in rng.integers(
      0, 2**32, (NUM_WARM + NUM_READINGS, 2), dtype=np.uint32
    ):
      arrays = jax.block_until_ready(values_for(bases, tuple(key)))

      def flush_alone():
        nonlocal words
        words = flush(words)
        return words

      def with_reference(arrays=arrays):
        flush_alone()
        return compute(arrays)

      alone_ms = _clock_ms(flush_alone)
      times_ms.append(_clock_ms(with_reference) - alone_ms)
  return tuple(times_ms[NUM_WARM:])


def _one_line(error):
  text = " ".join(str(error).split()) or type(error).__name__
  return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + " ..."


def report(problem: spec.Problem, dims: dict[str, int], device: int) -> Report:
  """Checks the reference's values on the device, then its times."""
  # JAX shares the GPU with launchers: it takes what it needs, when it does.
  os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
  os.environ["JAX_PLATFORMS"] = ""  # a GPU first, whatever is set for others
  try:
    import jax
  except ImportError:
    return Report(reason="JAX is not installed", is_lasting=True)
  jax.config.update("jax_cuda_visible_devices", str(device))
  try:
    jax.devices("cuda")
  except RuntimeError as error:
    return Report(
      reason=f"JAX has no GPU here: {_one_line(error)}", is_lasting=True
    )
  from kernels_eval.jax_baseline import references

  # Whatever JAX or XLA raise: it is no news about a candidate.
  try:
    mismatch = references.find_mismatch(problem, _largest(problem), seed=0)
    if mismatch is not None:
      return Report(reason=f"JAX's own answer is wrong: {mismatch}")
    return Report(times_ms=measure(problem, dims), version=jax.__version__)
  except Exception as error:
    return Report(reason=f"JAX failed: {_one_line(error)}")


def main(argv: list[str]) -> int:
  """Prints one line of JSON."""
  parser = argparse.ArgumentParser(prog="python -m kernels_eval.jax_baseline")
  parser.add_argument("--problem", required=True)
  parser.add_argument("--dims", required=True)
  parser.add_argument("--device", type=int, default=0)
  arguments = parser.parse_args(argv)
  # What waits for the GPU must not end before this process does.
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
  problem = problems.get(arguments.problem)
  dims = msgspec.json.decode(arguments.dims, type=dict[str, int])
  with contextlib.redirect_stdout(sys.stderr):
    answer = report(problem, dims, arguments.device)
  print(msgspec.json.encode(answer).decode())
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
