"""Records that cross modules.

Axes: P problems, G samples of a problem (the group), T turns, L tokens of a
turn's segment, R = P * G rows.
"""

import dataclasses
import enum
from typing import Any, NamedTuple

import jax

from kernels_eval.schema import Evaluation, ProblemCard


class Message(NamedTuple):
  """One part of a conversation. `role` is "user" or "assistant"."""

  role: str
  text: str


class StopReason(enum.StrEnum):
  """Why sampling of a turn ended."""

  STOP = "stop"  # the policy sampled a stop token
  LENGTH = "length"  # its budget ran out: the answer is cut


class EndReason(enum.StrEnum):
  """Why a trajectory ended."""

  SOLVED = "solved"
  PRUNED = "pruned"  # the gate gave the group no debugging turns
  LAST_TURN = "last_turn"
  CONTEXT_FULL = "context_full"
  FAULT = "fault"  # the harness failed; the sample has no outcome


@dataclasses.dataclass(frozen=True)
class Turn:
  """One answer and its verdict, on the host."""

  completion: str
  num_tokens: int
  stop_reason: StopReason
  evaluation: Evaluation  # of the text, whole or cut
  correct: bool  # the kernel passed and the answer is whole
  feedback: str | None  # what the policy read next, if it did; maybe cut


@dataclasses.dataclass(frozen=True)
class Trajectory:
  """All turns of one sample on one problem."""

  problem: ProblemCard
  problem_index: int  # in 0..P-1
  sample_index: int  # in 0..G-1
  turns: tuple[Turn, ...]
  end_reason: EndReason


class Rollouts(NamedTuple):
  """The fixed-size buffer of one iteration. Raggedness is in the masks."""

  tokens: jax.Array  # [P, G, T, L] int32: context of the turn, then completion
  own: jax.Array  # [P, G, T, L] bool: sampled by the policy
  behavior_logprobs: jax.Array  # [P, G, T, L] float32, read where own
  lengths: jax.Array  # [P, G, T] int32 tokens of the segment; 0 = not run
  correct: jax.Array  # [P, G, T] bool
  executed: jax.Array  # [P, G, T] bool
  ok: jax.Array  # [P, G] bool: False where the harness failed
  speedup: jax.Array  # [P, G, T] float32; 0 where nothing was timed


class Outcomes(NamedTuple):
  """What an iteration's turns came to: all that an advantage may look at."""

  correct: jax.Array  # [P, G, T] bool
  executed: jax.Array  # [P, G, T] bool
  ok: jax.Array  # [P, G] bool: False where the harness failed
  speedup: jax.Array  # [P, G, T] float32; 0 where nothing was timed
  progress: jax.Array  # [P, G, T] int32: outcomes.progress_of; 0 if not run


class Bucket(NamedTuple):
  """Rows of one padded length, in micro-batches: M micro-batches of B rows.

  Only the first `num_micro` micro-batches hold rows; padding rows have weight
  0 everywhere.
  """

  tokens: Any  # [M, B, L] int32
  own: Any  # [M, B, L] bool
  weights: Any  # [M, B, L] float32: what the token's loss is multiplied by
  advantages: Any  # [M, B, L] float32
  behavior_logprobs: Any  # [M, B, L] float32
  lengths: Any  # [M, B] int32 tokens of the row; 0 in padding rows
  num_micro: Any  # [] int32


class TrainState(NamedTuple):
  """What an update reads and writes."""

  params: Any  # what is trained, float32: the whole policy or its adapters
  opt_state: Any
  step: jax.Array  # [] int32, optimizer steps done


@dataclasses.dataclass(frozen=True)
class RolloutShape:
  """The fixed sizes of a rollout."""

  num_problems: int  # P
  group_size: int  # G
  num_turns: int  # T
  max_prompt_tokens: int
  max_feedback_tokens: int
  max_new_tokens: int
  max_context_tokens: int
  row_buckets: tuple[int, ...]  # smaller batches of later turns, ascending

  @property
  def num_rows(self) -> int:
    """R = P * G."""
    return self.num_problems * self.group_size

  @property
  def least_answer_tokens(self) -> int:
    """Half of a turn's budget: with less room behind it no turn is begun."""
    return (self.max_new_tokens + 1) // 2

  @property
  def segment_tokens(self) -> int:
    """L: the longest segment, context and completion of one turn."""
    context = max(self.max_prompt_tokens, self.max_feedback_tokens)
    return context + self.max_new_tokens

  def context_tokens(self, turn: int) -> int:
    """The most tokens a row can have after `turn` (from 0)."""
    longest = (
      self.max_prompt_tokens
      + (turn + 1) * self.max_new_tokens
      + turn * self.max_feedback_tokens
    )
    return min(longest, self.max_context_tokens)

  def buckets(self, turn: int) -> tuple[int, ...]:
    """Batch sizes that a turn may have, ascending; the last holds all rows.

    A later turn never has more rows than the first: row buckets that are no
    smaller are of no use, and R itself is always there.
    """
    smaller = tuple(b for b in self.row_buckets if b < self.num_rows)
    return (self.num_rows,) if turn == 0 else (*smaller, self.num_rows)

  def bucket_for(self, num_rows: int) -> int:
    """The smallest bucket for later turns that holds so many rows."""
    return next(b for b in self.buckets(1) if b >= num_rows)
