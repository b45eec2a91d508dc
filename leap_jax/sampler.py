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

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from leap_jax import compilations, sampling, slots
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


class _Programs(NamedTuple):
  """Compiled; none of them ever compiles again."""

  prepare: Callable[..., Any]
  empty: Callable[[], SamplerState]
  read_prompts: Callable[..., SamplerState]
  read_more: Mapping[tuple[int, int], Callable[..., SamplerState]]
  decode: Mapping[tuple[int, int], Callable[..., Any]]


def program_sizes(shape: RolloutShape, settings: Settings):
  """(width, slots) of programs that decode, (width, rows) of those that read
  what rows are told."""
  width_of = lambda turn: sampling.usable_widths(shape, settings, turn)
  decode = {
    (width, batch)
    for turn in range(shape.num_turns)
    for width in width_of(turn)
    for batch in sampling.slot_counts(shape, settings, turn)
  }
  more = {
    (sampling.room_of(shape, settings, turn), batch)
    for turn in range(1, shape.num_turns)
    for batch in shape.buckets(turn)
  }
  return decode, more


def _compile(config, shape, settings, params, on_compile):
  """Everything, the largest first: what does not fit fails at once."""
  abstract = jax.ShapeDtypeStruct
  like = lambda tree: jax.tree.map(
    lambda x: abstract(x.shape, x.dtype, sharding=getattr(x, "sharding", None)),
    tree,
  )
  prepare = lambda params: sampling.weights_of(config, settings, params)
  empty = lambda: sampling.empty_state(config, shape, settings)
  run_prepare = jax.jit(prepare).lower(like(params)).compile()
  on_compile("weights for decoding")
  weights = jax.tree.map(
    lambda x, s: abstract(x.shape, x.dtype, sharding=s),
    jax.eval_shape(prepare, like(params)),
    run_prepare.output_shardings,
  )
  state = jax.eval_shape(empty)
  key = abstract((), jax.random.key(0).dtype)
  scalar = abstract((), jnp.int32)
  vector = lambda n: abstract((n,), jnp.int32)
  matrix = lambda n, width: abstract((n, width), jnp.int32)

  def lower(function, *fixed):
    def of(*arguments):
      run = functools.partial(function, config, shape, settings, *fixed)
      jitted = jax.jit(run, donate_argnums=1)
      return jitted.lower(weights, state, *arguments)

    return of

  decode_sizes, more_sizes = program_sizes(shape, settings)
  by_size = lambda sizes: sorted(sizes, key=lambda s: s[0] * s[1], reverse=True)
  decode = {
    (width, batch): lower(sampling.decode, width)(
      key, vector(batch), scalar, scalar
    )
    for width, batch in by_size(decode_sizes)
  }
  more = {
    (width, batch): lower(sampling.read_more, width)(
      vector(batch), matrix(batch, shape.max_feedback_tokens), vector(batch)
    )
    for width, batch in by_size(more_sizes)
  }
  c = prompts_per_call(shape, settings)
  prompts = lower(sampling.read_prompts)(
    matrix(c, shape.max_prompt_tokens), vector(c), vector(c)
  )
  named = lambda kind, programs: {(kind, *k): p for k, p in programs.items()}
  compiled = compilations.compile_all(
    named("decode", decode)
    | named("feedback", more)
    | {("prompts", shape.max_prompt_tokens, c): prompts}
    | {
      ("caches", sampling.room(shape, settings), shape.num_rows): jax.jit(
        empty
      ).lower()
    },
    lambda name: on_compile("{}: {} tokens x {}".format(*name)),
  )
  of_kind = lambda kind: {
    (width, batch): program
    for (name, width, batch), program in compiled.items()
    if name == kind
  }
  (read_prompts,) = of_kind("prompts").values()
  (make_empty,) = of_kind("caches").values()
  return _Programs(
    run_prepare,
    make_empty,
    read_prompts,
    of_kind("feedback"),
    of_kind("decode"),
  )


def prompts_per_call(shape: RolloutShape, settings: Settings) -> int:
  """Prompts that are read at once."""
  return min(
    settings.prompts_per_call or shape.num_problems, shape.num_problems
  )


def _pad(array, length, value):
  """The first axis filled up to `length`."""
  rest = np.full((length - len(array), *array.shape[1:]), value, array.dtype)
  return np.concatenate([array, rest])


def make_sampler(
  config,
  shape: RolloutShape,
  settings: Settings,
  params,
  *,
  on_compile: Callable[[str], None] = lambda name: None,
) -> Sampler:
  """Compiles every program of a rollout.

  Args:
    config: ModelConfig.
    shape: sizes of the rollout.
    settings: how it is sampled and computed.
    params: any parameters of the model (their shapes and shardings matter).
    on_compile: told the name of each program that is compiled.

  Returns:
    The sampler. Nothing in it ever compiles again.
  """
  programs = _compile(config, shape, settings, params, on_compile)
  num_rows = shape.num_rows

  def begin(weights, tokens, lengths):
    state = programs.empty()
    c = prompts_per_call(shape, settings)
    for start in range(0, shape.num_problems, c):
      part = slice(start, start + c)
      problems = np.arange(start, start + c, dtype=np.int32)
      state = programs.read_prompts(
        weights,
        state,
        _pad(np.asarray(tokens[part], np.int32), c, 0),
        _pad(np.asarray(lengths[part], np.int32), c, 1),
        problems,  # those beyond P are dropped
      )
    return state

  def tell(weights, state, rows, contexts, turn):
    batch = shape.bucket_for(len(rows))
    width = sampling.room_of(shape, settings, turn)
    tokens = np.zeros((batch, shape.max_feedback_tokens), np.int32)
    for i, context in enumerate(contexts):
      tokens[i, : len(context)] = context
    lengths = np.asarray([len(context) for context in contexts], np.int32)
    return programs.read_more[width, batch](
      weights,
      state,
      _pad(np.asarray(rows, np.int32), batch, num_rows),
      tokens,
      _pad(lengths, batch, 0),
    )

  def answer(weights, state, key, rows, turn):
    sizes = sampling.slot_counts(shape, settings, turn)
    waiting = np.asarray(rows, np.int32)
    while len(waiting):
      plan = slots.plan(len(waiting), sizes, settings.idle_fraction)
      running = waiting[: plan.num_rows]
      longest = int(np.asarray(state.lengths)[running].max())
      width = sampling.width_for(shape, settings, turn, longest)
      if plan.num_slots == num_rows:  # slot i has row i or none
        in_slots = np.full(num_rows, num_rows, np.int32)
        in_slots[running] = running
      else:
        in_slots = _pad(running, plan.num_slots, num_rows)
      state, num_steps = programs.decode[width, plan.num_slots](
        weights,
        state,
        key,
        in_slots,
        np.int32(turn),
        np.int32(plan.leave_at),
      )
      done = np.asarray(state.done)
      ended = running[done[running]]
      waiting = waiting[~done[waiting]]
      yield Call(
        state, ended, _completions(state, ended), int(num_steps), plan.num_slots
      )

  return Sampler(programs.prepare, begin, tell, answer)


def _completions(state, rows):
  """Answers of rows, on the host."""
  take = lambda x: np.asarray(x)[rows]
  return Completions(
    take(state.tokens),
    take(state.logprobs),
    take(state.log_kept),
    take(state.sampled),
    take(state.stopped),
  )
