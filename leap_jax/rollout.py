"""The multi-turn loop: the only place where policy and harness meet.

A mask saves no time. After the first turn only the rows that the gate lets
through, and that are not solved, go on: they take the slots of the smallest
decoding program that holds them.
"""

import dataclasses
import time
from collections.abc import Sequence

import jax
import numpy as np

from kernels_eval.client import HarnessError
from kernels_eval.schema import Evaluation, ProblemCard
from leap_jax import buffer as buffer_lib
from leap_jax import feedback, methods, prompts, random_feedback
from leap_jax.judging import Evaluate, judge_as_they_end
from leap_jax.sampler import Sampler, all_answers
from leap_jax.tokenizer import Tokenizer
from leap_jax.types import (
  EndReason,
  Rollouts,
  RolloutShape,
  StopReason,
  Trajectory,
  Turn,
)

_CUT_MARKER = "\n...\n"
_LEAST_FEEDBACK_TEXT = 8  # tokens, beside those that frame a message


class PromptTooLong(ValueError):
  """A problem's first prompt does not fit: a start-up check failed to run."""


@dataclasses.dataclass
class Stats:
  """What a rollout cost."""

  sample_seconds: float = 0.0
  harness_seconds: float = 0.0  # waiting for verdicts
  judge_seconds: float = 0.0  # during which the harness had work
  sampled_tokens: int = 0
  decode_slots: int = 0  # slots times steps, useful or not
  kept_mass: float = 0.0  # p(K) of `draws`, summed over sampled tokens
  harness_calls: int = 0  # candidates submitted
  truncated_turns: int = 0
  turns: int = 0
  context_full: int = 0
  feedback_cut: int = 0


@dataclasses.dataclass(frozen=True)
class Collected:
  """One rollout of P problems."""

  rollouts: Rollouts  # on the device
  active: np.ndarray  # [P] bool: the gate's decision
  trajectories: list[Trajectory]  # row by row
  stats: Stats


def first_prompts(
  tokenizer: Tokenizer, problems: Sequence[ProblemCard]
) -> list[list[int]]:
  """Token ids that open the conversations."""
  return [tokenizer.opening(prompts.problem_message(p)) for p in problems]


def fits(tokenizer: Tokenizer, problem: ProblemCard, shape: RolloutShape):
  """Whether a problem's first prompt leaves room for an answer."""
  (ids,) = first_prompts(tokenizer, [problem])
  return len(ids) <= shape.max_prompt_tokens


def least_feedback_tokens(tokenizer: Tokenizer) -> int:
  """Room without which a row is told nothing and ends."""
  return tokenizer.chat.frame_tokens + _LEAST_FEEDBACK_TEXT


def feedback_context(
  tokenizer: Tokenizer,
  evaluation: Evaluation,
  stop_reason: StopReason,
  budget: int,
) -> tuple[list[int], str, bool]:
  """Ids that a failed row reads before its next answer.

  Only this new text is encoded; what was sampled stays as it was sampled.

  Args:
    tokenizer: of the policy.
    evaluation: of the failed turn.
    stop_reason: of its answer; one that was cut still lacks its end.
    budget: most ids.

  Returns:
    (ids, the text of them, whether it was cut).
  """
  message = prompts.feedback_message(
    feedback.render(evaluation, stop_reason),
    # The judge of Python functions calls itself by their language.
    "python" if evaluation.executor == "python" else "cuda",
  )
  head, body, tail = tokenizer.framed(message)  # head and tail: kept whole
  if stop_reason != StopReason.STOP:
    head = [tokenizer.stop_tokens[0], *head]
  room = budget - len(head) - len(tail)
  kept = feedback.cut(body, room, tokenizer.encode(_CUT_MARKER))
  read = head + kept + tail
  return read, tokenizer.decode(read), len(kept) < len(body)


def _pad(rows, width, dtype=np.int32):
  out = np.zeros((len(rows), width), dtype)
  for i, row in enumerate(rows):
    out[i, : len(row)] = row
  return out, np.asarray([len(row) for row in rows], np.int32)


class _Row:
  """Host-side record of one sample while its trajectory grows."""

  def __init__(self, index, problem, group_size, prompt_tokens):
    self.index = index  # flat: p * G + g
    self.problem = problem
    self.problem_index, self.sample_index = divmod(index, group_size)
    self.turns: list[Turn] = []
    self.num_tokens = prompt_tokens  # of the whole context so far
    self.end: EndReason | None = None

  def finish(self) -> Trajectory:
    return Trajectory(
      self.problem,
      self.problem_index,
      self.sample_index,
      tuple(self.turns),
      self.end or EndReason.LAST_TURN,
    )


def collect(
  sampler: Sampler,
  programs: buffer_lib.Programs,
  shape: RolloutShape,
  tokenizer: Tokenizer,
  params,
  key: jax.Array,
  problems: Sequence[ProblemCard],
  evaluate: Evaluate,
  gate: methods.Gate,
  tell: random_feedback.Tell = list,
) -> Collected:
  """Runs all turns of one group for each problem.

  Args:
    sampler: compiled for `shape`.
    programs: of the buffer, likewise.
    shape: sizes; `len(problems)` is its P.
    tokenizer: of the policy.
    params: of the policy; all turns use the same ones.
    key: consumed.
    problems: P problems whose prompts fit.
    evaluate: the harness.
    gate: which problems earn later turns.
    tell: verdicts of a turn, row by row, to what the rows are told of them;
      by default the truth.

  Returns:
    The filled buffer, trajectories and costs.

  Raises:
    PromptTooLong: a problem does not fit.
    HarnessError: the harness lost every first answer; it judges nothing.
  """
  stats = Stats()
  ids = first_prompts(tokenizer, problems)
  for problem, prompt in zip(problems, ids, strict=True):
    if len(prompt) > shape.max_prompt_tokens:
      raise PromptTooLong(
        f"the prompt of {problem.name} has {len(prompt)} tokens; at most "
        f"{shape.max_prompt_tokens}"
      )
  g = shape.group_size
  rows = [
    _Row(r, problems[r // g], g, len(ids[r // g]))
    for r in range(shape.num_rows)
  ]
  tokens, lengths = _pad(ids, shape.max_prompt_tokens)
  started = time.perf_counter()
  weights = sampler.prepare(params)
  state = sampler.begin(weights, tokens, lengths)
  stats.sample_seconds += time.perf_counter() - started

  buffer = programs.init()
  live = rows
  contexts = [ids[row.problem_index] for row in rows]
  width = shape.max_prompt_tokens
  active = np.zeros(len(problems), bool)
  for turn in range(shape.num_turns):
    answers, evaluations, state = _play_turn(
      sampler, weights, key, state, live, turn, tokenizer, evaluate, tell, stats
    )
    if turn == 0:
      _check_harness(evaluations)
    batch = shape.num_rows if turn == 0 else shape.bucket_for(len(live))
    buffer = _record(
      programs.record_turn[turn, batch],
      buffer,
      shape,
      contexts,
      width,
      answers,
      evaluations,
      live,
      batch,
    )
    if turn == 0:
      correct = np.asarray(buffer.correct)[..., 0]
      active = np.asarray(gate(correct, np.asarray(buffer.ok)))
    # Who goes on? The schedule's own mask over the buffer says it.
    executed = np.asarray(programs.goes_on(buffer, active))
    _note(live, active)
    if turn + 1 == shape.num_turns:
      break
    goes_on = executed[..., turn + 1].reshape(-1)
    contexts, following = [], []
    for row in live:
      if not goes_on[row.index]:
        continue
      context = _next_context(row, shape, tokenizer, stats)
      if context is not None:
        contexts.append(context)
        following.append(row)
    live = following
    if not live:
      break
    width = shape.max_feedback_tokens
    started = time.perf_counter()
    state = sampler.tell(
      weights, state, [row.index for row in live], contexts, turn + 1
    )
    stats.sample_seconds += time.perf_counter() - started
  return Collected(buffer, active, [row.finish() for row in rows], stats)


def _play_turn(
  sampler, weights, key, state, live, turn, tokenizer, evaluate, tell, stats
):
  """Samples and judges one turn; returns answers and verdicts row by row, and
  the state behind them."""
  rows = [row.index for row in live]
  judged = judge_as_they_end(
    sampler.answer(weights, state, key, rows, turn),
    {row.index: row.problem for row in live},
    turn,
    tokenizer.decode,
    evaluate,
  )
  answers, state, slot_steps = all_answers(iter(judged.calls), rows)
  stats.sample_seconds += judged.sample_seconds
  stats.harness_seconds += judged.wait_seconds
  stats.judge_seconds += judged.judge_seconds
  stats.sampled_tokens += int(answers.lengths.sum())
  stats.decode_slots += slot_steps
  stats.kept_mass += float(np.exp(answers.log_kept[answers.own]).sum())
  stats.harness_calls += len(live)
  stats.turns += len(live)
  stats.truncated_turns += int((~answers.stopped).sum())
  found = [judged.verdicts[row.index] for row in live]
  evaluations = tell([evaluation for _, evaluation in found])
  for place, row in enumerate(live):
    request, evaluation = found[place][0], evaluations[place]
    was_stopped = bool(answers.stopped[place])
    row.turns.append(
      Turn(
        completion=request.text,
        num_tokens=int(answers.lengths[place]),
        stop_reason=StopReason.STOP if was_stopped else StopReason.LENGTH,
        evaluation=evaluation,
        # An answer that was cut failed, whatever its first lines do.
        correct=evaluation.passed and was_stopped,
        feedback=None,
      )
    )
  return answers, evaluations, state


def _check_harness(evaluations):
  """Stops a run whose harness judges nothing: its numbers would be empty."""
  if any(evaluation.counts for evaluation in evaluations):
    return
  raise HarnessError(
    f"the harness lost all {len(evaluations)} answers of a batch; the first: "
    f"{evaluations[0].message}"
  )


def _record(
  record,
  buffer,
  shape,
  contexts,
  width,
  answers,
  evaluations,
  live,
  batch,
):
  pad = batch - len(live)
  filled = lambda x: np.pad(x, [(0, pad)] + [(0, 0)] * (x.ndim - 1))
  place = np.full(batch, shape.num_rows, np.int32)
  place[: len(live)] = [row.index for row in live]
  context, context_lengths = _pad(contexts + [[]] * pad, width)
  of = lambda values, dtype: np.asarray([*values, *[0] * pad], dtype)
  return record(
    buffer,
    place,
    context,
    context_lengths,
    filled(answers.tokens),
    filled(answers.lengths),
    filled(answers.logprobs),
    of([row.turns[-1].correct for row in live], bool),
    of([e.counts for e in evaluations], bool),
    of([e.speedup or 0.0 for e in evaluations], np.float32),
  )


def _note(live, active):
  """Why rows that end with this turn end."""
  for row in live:
    last = row.turns[-1]
    row.num_tokens += last.num_tokens
    if not last.evaluation.counts:
      row.end = EndReason.FAULT
    elif last.correct:
      row.end = EndReason.SOLVED
    elif not active[row.problem_index]:
      row.end = EndReason.PRUNED


def _next_context(row, shape, tokenizer, stats):
  """What a row reads next; None if no answer worth a turn fits behind it."""
  last = row.turns[-1]
  taken = row.num_tokens + shape.least_answer_tokens
  room = shape.max_context_tokens - taken
  budget = min(shape.max_feedback_tokens, room)
  if budget < least_feedback_tokens(tokenizer):
    row.end = EndReason.CONTEXT_FULL
    stats.context_full += 1
    return None
  context, text, was_cut = feedback_context(
    tokenizer,
    last.evaluation,
    last.stop_reason,
    budget,
  )
  stats.feedback_cut += was_cut
  row.turns[-1] = dataclasses.replace(last, feedback=text)
  row.num_tokens += len(context)
  return context
