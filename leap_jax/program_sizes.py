"""Sizes of the sampler's programs: slots, and keys that attention looks at.

Every program has a fixed shape. A turn has the choice of some of them.
"""

from leap_jax import sampling, slots
from leap_jax.models import attention
from leap_jax.sampling import Settings
from leap_jax.types import RolloutShape


def room_of(shape: RolloutShape, settings: Settings, turn: int) -> int:
  """Key width that is enough for every row until a turn ends."""
  if settings.implementation == attention.CUDNN:
    return sampling.room(shape, settings)
  return shape.context_tokens(turn) + 1


def usable_widths(
  shape: RolloutShape, settings: Settings, turn: int
) -> tuple[int, ...]:
  """Key widths of the decoding programs that a turn may use, ascending."""
  most = room_of(shape, settings, turn)
  step = settings.prefix_step
  if settings.implementation == attention.CUDNN or step == 0:
    return (most,)
  return (*range(step, most, step), most)


def width_for(
  shape: RolloutShape, settings: Settings, turn: int, longest: int
) -> int:
  """The key width with which rows go on in a turn.

  Args:
    shape: sizes.
    settings: of the sampler.
    turn: from 0.
    longest: cached tokens of the longest row.
  """
  usable = usable_widths(shape, settings, turn)
  return next((w for w in usable if w > longest), usable[-1])


def slot_counts(
  shape: RolloutShape, settings: Settings, turn: int
) -> tuple[int, ...]:
  """Slots of the decoding programs that a turn may use, ascending."""
  most = min(settings.max_slots or shape.num_rows, shape.num_rows)
  # Where no call ends early, a turn begins and ends with the same program.
  buckets = shape.buckets(turn if settings.idle_fraction >= 1 else 1)
  sizes = {b for b in buckets if b < most}
  if settings.slot_ratio < 1:
    sizes |= {*slots.ladder(most, settings.least_slots, settings.slot_ratio)}
  return tuple(sorted(sizes | {most}))


def all_sizes(shape: RolloutShape, settings: Settings):
  """(width, slots) of programs that decode, (width, rows) of those that read
  what rows are told."""
  width_of = lambda turn: usable_widths(shape, settings, turn)
  decode = {
    (width, batch)
    for turn in range(shape.num_turns)
    for width in width_of(turn)
    for batch in slot_counts(shape, settings, turn)
  }
  more = {
    (room_of(shape, settings, turn), batch)
    for turn in range(1, shape.num_turns)
    for batch in shape.buckets(turn)
  }
  return decode, more
