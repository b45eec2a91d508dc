"""Samples completions with key-value caches that live across turns.

All P * G rows of a rollout have a place in the caches and keep it. What is run
on some of them is told which: reading prompts (each once, for all rows of its
group), reading feedback, and decoding, which steps over a fixed number of slots
until it pays to choose again which rows have one (`slots.plan`). Every program
has a fixed shape and is compiled once, before the first use.

Rows are left-aligned and padded on the right; each has its own length and its
own key, made from its problem, its sample, the turn and the position, so that a
completion depends neither on its neighbours nor on when it had which slot.

What is stored of a token: `draws`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from leap_jax import hosts, program_sizes, sampler_programs, slots
from leap_jax.sampling import SamplerState, Settings
from leap_jax.types import RolloutShape


class Completions(NamedTuple):
  """Answers of B rows in one turn. Tokens behind a row's length are 0."""

  tokens: np.ndarray  # [B, N] int32, the stop token included
  logprobs: np.ndarray  # [B, N] float32
  log_kept: np.ndarray  # [B, N] float32, see `draws`
  lengths: np.ndarray  # [B] int32
  stopped: np.ndarray  # [B] bool: ended with a stop token

  @property
  def own(self) -> np.ndarray:
    """[B, N] bool: tokens that were sampled."""
    return np.arange(self.tokens.shape[1])[None] < self.lengths[:, None]


class Call(NamedTuple):
  """What one call of a decoding program has done."""

  state: SamplerState
  rows: np.ndarray  # [B] those that have ended in it
  completions: Completions  # theirs, in that order
  num_steps: int
  num_slots: int


class Sampler(NamedTuple):
  """A rollout's device side. State goes in and comes out; it is given away."""

  # params -> weights as decoding reads them
  prepare: Callable[[Any], Any]
  # (weights, tokens [P, max_prompt_tokens], lengths [P]) -> state in turn 0
  begin: Callable[..., SamplerState]
  # (weights, state, rows, contexts, turn) -> state: these rows begin the turn
  tell: Callable[..., SamplerState]
  # (weights, state, key, rows, turn) -> calls, until all rows have ended
  answer: Callable[..., Iterator[Call]]


def all_answers(
  calls: Iterator[Call], rows: Sequence[int]
) -> tuple[Completions, SamplerState, int]:
  """Waits for all calls of a turn.

  Args:
    calls: of Sampler.answer.
    rows: those that were given to it.

  Returns:
    Completions in the order of `rows`, the state, and slots times steps.
  """
  seen, parts, slot_steps, state = [], [], 0, None
  for call in calls:
    seen.append(call.rows)
    parts.append(call.completions)
    slot_steps += call.num_steps * call.num_slots
    state = call.state
  place = {row: i for i, row in enumerate(np.concatenate(seen).tolist())}
  order = np.asarray([place[int(row)] for row in rows], np.int64)
  join = lambda *arrays: np.concatenate(arrays)[order]
  return jax.tree.map(join, *parts), state, slot_steps


def _pad(rows, length, value):
  """A list of numbers filled up to `length`: [length] int32."""
  return np.asarray([*rows, *[value] * (length - len(rows))], np.int32)


def make_sampler(
  config,
  shape: RolloutShape,
  settings: Settings,
  params,
  *,
  mesh: jax.sharding.Mesh | None = None,
  on_compile: Callable[[str], None] = lambda name: None,
) -> Sampler:
  """Compiles every program of a rollout.

  Args:
    config: ModelConfig.
    shape: sizes of the rollout.
    settings: how it is sampled and computed.
    params: any parameters of the model (their shapes and shardings matter).
    mesh: of the devices that `params` lie on; None = one device.
    on_compile: told the name of each program that is compiled.

  Returns:
    The sampler. Nothing in it ever compiles again.
  """
  programs = sampler_programs.compile_programs(
    config, shape, settings, params, mesh, on_compile
  )
  share, count = programs.share, programs.num_shares
  none = share.num_rows  # no row of a share
  first = share.num_rows * np.arange(count)

  def by_share(rows):
    """Rows of the rollout -> for each share its own, counted from 0."""
    rows = np.asarray(rows, np.int32)
    return [rows[rows // none == d] - first[d] for d in range(count)]

  def begin(weights, tokens, lengths):
    state = programs.empty()
    p = share.num_problems
    c = sampler_programs.prompts_per_call(share, settings)
    tokens, lengths = np.asarray(tokens), np.asarray(lengths)
    for start in range(0, p, c):
      own = np.tile(np.arange(start, start + c), (count, 1))  # of each share
      places = p * np.arange(count)[:, None] + own  # in the whole
      is_there = (own < p) & (places < shape.num_problems)
      taken = np.where(is_there, places, 0).reshape(-1)
      state = programs.read_prompts(
        weights,
        state,
        tokens[taken].astype(np.int32),
        lengths[taken].astype(np.int32),
        # Those beyond a share are dropped.
        np.where(is_there, own, p).reshape(-1).astype(np.int32),
      )
    return state

  def tell(weights, state, rows, contexts, turn):
    shares = by_share(rows)
    batch = share.bucket_for(max(len(own) for own in shares))
    width = program_sizes.room_of(share, settings, turn)
    told = dict(zip((int(row) for row in rows), contexts, strict=True))
    tokens = np.zeros((count * batch, share.max_feedback_tokens), np.int32)
    lengths = np.zeros(count * batch, np.int32)
    for d, own in enumerate(shares):
      for i, row in enumerate(own):
        context = told[int(row + first[d])]
        tokens[d * batch + i, : len(context)] = context
        lengths[d * batch + i] = len(context)
    in_batch = np.concatenate([_pad(own, batch, none) for own in shares])
    return programs.read_more[width, batch](
      weights, state, in_batch, tokens, lengths
    )

  def answer(weights, state, key, rows, turn):
    sizes = program_sizes.slot_counts(share, settings, turn)
    waiting = by_share(rows)
    while any(len(own) for own in waiting):
      # One program for all: that of the share which has most to do.
      plan = slots.plan(
        max(len(own) for own in waiting), sizes, settings.idle_fraction
      )
      running = [own[: plan.num_rows] for own in waiting]
      everywhere = np.concatenate(
        [own + first[d] for d, own in enumerate(running)]
      )
      in_slots = [_in_slots(own, plan, none) for own in running]
      width = _width(share, settings, turn, state, everywhere)
      state, steps, ends = programs.decode[width, plan.num_slots](
        weights,
        state,
        key,
        np.concatenate(in_slots),
        np.int32(turn),
        np.asarray(
          [max(min(plan.leave_at, len(own) - 1), 0) for own in running],
          np.int32,
        ),
      )
      num_steps, ends = hosts.to_host((steps, ends))
      taken = np.concatenate(
        [
          np.where(own < none, own + first[d], -1)
          for d, own in enumerate(in_slots)
        ]
      )
      slot_ends = ends.done & (taken >= 0)
      ended = taken[slot_ends]
      waiting = [
        own[~np.isin(own + first[d], ended)] for d, own in enumerate(waiting)
      ]
      yield Call(
        state,
        ended,
        _completions(ends, slot_ends),
        int(num_steps.max()),
        count * plan.num_slots,
      )

  return Sampler(programs.prepare, begin, tell, answer)


def _in_slots(rows, plan, none):
  """Which row each slot of a program runs."""
  if plan.num_slots == none:  # slot i has row i or none
    slots_of = np.full(none, none, np.int32)
    slots_of[rows] = rows
    return slots_of
  return _pad(rows, plan.num_slots, none)


def _width(share, settings, turn, state, rows):
  """Keys that a program must look at; asks the device only if that is a
  question."""
  if len(program_sizes.usable_widths(share, settings, turn)) == 1:
    return program_sizes.room_of(share, settings, turn)
  longest = int(hosts.to_host(state.lengths)[rows].max())
  return program_sizes.width_for(share, settings, turn, longest)


def _completions(ends, chosen):
  """Answers in some of the slots, [B] bool."""
  return Completions(
    ends.tokens[chosen],
    ends.logprobs[chosen],
    ends.log_kept[chosen],
    ends.sampled[chosen],
    ends.stopped[chosen],
  )
