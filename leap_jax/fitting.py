"""Compiling an update that fits into the device's memory.

XLA says, for a compiled program, how many bytes it will use. Of several ways to
compute the same gradient the first that fits is taken: the order is from the
least computation to the least memory.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax

from leap_jax.types import Bucket, TrainState

# What stays free: fragments, and libraries' own workspaces.
HEADROOM_FRACTION = 0.06


XlaError = jax.errors.JaxRuntimeError  # out of memory, among others


class DoesNotFit(Exception):
  """No way to compute the update fits; one line says what was tried."""


@dataclasses.dataclass(frozen=True)
class Fitted:
  """A compiled update. `step(state, buckets)` donates the state."""

  step: Callable[..., tuple[TrainState, dict[str, jax.Array]]]
  choice: str  # one of the candidates
  peak_bytes: int  # of the program, on each device; 0 where XLA does not say

  def __call__(self, state: TrainState, buckets: tuple[Bucket, ...]):
    """One update."""
    return self.step(state, buckets)


def out_of_memory(error: BaseException) -> str | None:
  """One line if a device had no more memory; None for any other error.

  The compiler runs out of it too: it tries algorithms on the device.
  """
  text = str(error)
  is_full = "RESOURCE_EXHAUSTED" in text or "CUDA_ERROR_OUT_OF_MEMORY" in text
  if not isinstance(error, XlaError) or not is_full:
    return None
  what = text.splitlines()[0].removeprefix("RESOURCE_EXHAUSTED: ")
  return (
    f"a device has no more memory ({what[:200]}); lower config.learner."
    "micro_tokens (update), config.sampler.max_slots or "
    "config.rollout.num_problems (sampling)"
  )


def program_bytes(compiled) -> int:
  """Bytes of a program on each device: arguments, results, temporaries."""
  memory = compiled.memory_analysis()
  if memory is None:
    return 0
  return (
    memory.argument_size_in_bytes
    + memory.output_size_in_bytes
    - memory.alias_size_in_bytes
    + memory.temp_size_in_bytes
  )


def limit_bytes(device: jax.Device, arguments: Any = ()) -> int | None:
  """Bytes that a program may use, those of its arguments included.

  Args:
    device: where it will run.
    arguments: tree of arrays; what lies on the device beside them stays there.

  Returns:
    None where the device does not say (a CPU).
  """
  stats = device.memory_stats() or {}
  if "bytes_limit" not in stats:
    return None
  own = sum(
    shard.data.nbytes
    for leaf in jax.tree.leaves(arguments)
    for shard in leaf.addressable_shards
    if shard.device == device
  )
  others = max(stats.get("bytes_in_use", 0) - own, 0)
  return int(stats["bytes_limit"] * (1 - HEADROOM_FRACTION)) - others


def compile_update(
  make: Callable[[str], Callable[..., Any]],
  candidates: Sequence[str],
  state: TrainState,
  buckets: tuple[Bucket, ...],
  *,
  frozen: Any = None,
  limit_bytes: int | None = None,
  advice: str,
  say: Callable[[str], None] = lambda text: None,
) -> Fitted:
  """Compiles for these shapes and shardings; the state is donated.

  The returned program never compiles again: other shapes are an error.

  Args:
    make: of an update function (update.make_update) for each candidate.
    candidates: names, the best first.
    state: of training; only shapes and shardings matter.
    buckets: likewise.
    frozen: arrays that every call gets as they are.
    limit_bytes: for the program on each device; None takes the first candidate
      that compiles.
    advice: what to do if none fits.
    say: told what was chosen.

  Raises:
    DoesNotFit: not even the last one does.
  """
  arguments = (state, buckets, frozen)
  abstract = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(
      x.shape, x.dtype, sharding=getattr(x, "sharding", None)
    ),
    arguments,
  )
  # The new state lies where the old one did, so that it can be fed back.
  shardings = jax.tree.map(lambda x: x.sharding, abstract[0])
  tried = []
  for name in candidates:
    try:
      compiled = (
        jax.jit(make(name), donate_argnums=0, out_shardings=(shardings, None))
        .lower(*abstract)
        .compile()
      )
    except XlaError as error:
      if out_of_memory(error) is None:
        raise
      tried.append(f"{name} more than there is")
      continue
    used = program_bytes(compiled)
    tried.append(f"{name} {used / 2**30:.2f} GiB")
    if limit_bytes is None or used <= limit_bytes:
      if limit_bytes is not None:
        say(
          f"update: {', '.join(tried)} of {limit_bytes / 2**30:.2f} GiB; "
          f"`{name}` is used"
        )
      step = lambda state, buckets, run=compiled: run(state, buckets, frozen)
      return Fitted(step, name, used)
  present = (
    "" if limit_bytes is None else f"{limit_bytes / 2**30:.2f} GiB of a "
  )
  raise DoesNotFit(
    f"the update needs more memory than the {present}device: "
    f"{', '.join(tried)}; {advice}"
  )
