"""The multi-turn loop: the only place where policy and harness meet.

A mask saves no time. After the first turn only the rows that the gate lets
through, and that are not solved, go on: they are gathered into the smallest
batch bucket that holds them.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence

import jax
import numpy as np

from kernels_eval.client import HarnessError
from kernels_eval.schema import Evaluation, ProblemCard, Request
from leap_jax import buffer as buffer_lib
from leap_jax import feedback, methods, prompts
from leap_jax.sampler import Sampler
from leap_jax.tokenizer import Tokenizer
from leap_jax.types import (
  EndReason,
  Rollouts,
  RolloutShape,
  StopReason,
  Trajectory,
  Turn,
)

Evaluate = Callable[[Sequence[Request]], list[Evaluation]]

_CUT_MARKER = "\n...\n"
# Role, end and header tokens, and some text between them.
_LEAST_FEEDBACK_TOKENS = 12


class PromptTooLong(ValueError):
  """A problem's first prompt does not fit: a start-up check failed to run."""


@dataclasses.dataclass
class Stats:
  """What a rollout cost."""

  sample_seconds: float = 0.0
  harness_seconds: float = 0.0
  sampled_tokens: int = 0
  decode_slots: int = 0  # rows times steps, useful or not
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
  return [tokenizer.context(prompts.problem_message(p)) for p in problems]


def fits(tokenizer: Tokenizer, problem: ProblemCard, shape: RolloutShape):
  """Whether a problem's first prompt leaves room for an answer."""
  (ids,) = first_prompts(tokenizer, [problem])
  return len(ids) <= shape.max_prompt_tokens


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
  ids = tokenizer.context(message)
  was_stopped = stop_reason == StopReason.STOP
  end = [] if was_stopped else list(tokenizer.stop_tokens[:1])
  # The first id opens the user's part and the last two close it: kept whole.
  head, body, tail = end + ids[:1], ids[1:-2], ids[-2:]
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
  state = sampler.prefill(params, tokens, lengths)
  stats.sample_seconds += time.perf_counter() - started

  buffer = programs.init()
  live = rows
  contexts = [ids[row.problem_index] for row in rows]
  width = shape.max_prompt_tokens
  active = np.zeros(len(problems), bool)
  for turn in range(shape.num_turns):
    batch = shape.num_rows if turn == 0 else shape.bucket_for(len(live))
    answers, state = _sample_turn(
      sampler, shape, params, key, state, live, turn, batch, stats
    )
    evaluations = _judge(tokenizer, answers, live, turn, evaluate, stats)
    if turn == 0:
      _check_harness(evaluations)
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
    contexts, following, places = [], [], []
    for place, row in enumerate(live):
      if not goes_on[row.index]:
        continue
      context = _next_context(row, shape, tokenizer, stats)
      if context is not None:
        contexts.append(context)
        following.append(row)
        places.append(place)
    live = following
    if not live:
      break
    width = shape.max_feedback_tokens
    state = _enter_turn(
      sampler, shape, params, state, contexts, places, turn + 1, batch, stats
    )
  return Collected(buffer, active, [row.finish() for row in rows], stats)


def _sample_turn(sampler, shape, params, key, state, live, turn, batch, stats):
  """Decodes one turn; returns host arrays and the state behind them."""
  started = time.perf_counter()
  index = np.zeros(batch, np.int32)
  index[: len(live)] = [row.index for row in live]
  alive = np.arange(batch) < len(live)
  answers, state = sampler.decode[turn, batch](params, state, key, index, alive)
  answers = jax.device_get(answers)
  stats.sample_seconds += time.perf_counter() - started
  stats.sampled_tokens += int(answers.lengths.sum())
  stats.decode_slots += int(answers.num_steps) * batch
  return answers, state


def _judge(tokenizer, answers, live, turn, evaluate, stats):
  """Verdicts on the policy's own tokens of this turn, and nothing else."""
  requests = []
  for place, row in enumerate(live):
    own = answers.tokens[place, : answers.lengths[place]]
    text = tokenizer.decode(own.tolist())
    if not answers.stopped[place]:
      stats.truncated_turns += 1
    requests.append(Request(f"{row.index}/{turn}", row.problem.name, text))
  started = time.perf_counter()
  evaluations = evaluate(requests)
  stats.harness_seconds += time.perf_counter() - started
  stats.harness_calls += len(requests)
  stats.turns += len(requests)
  for place, row in enumerate(live):
    was_stopped = bool(answers.stopped[place])
    row.turns.append(
      Turn(
        completion=requests[place].text,
        num_tokens=int(answers.lengths[place]),
        stop_reason=StopReason.STOP if was_stopped else StopReason.LENGTH,
        evaluation=evaluations[place],
        # An answer that was cut failed, whatever its first lines do.
        correct=evaluations[place].passed and was_stopped,
        feedback=None,
      )
    )
  return evaluations


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
  place = np.full(batch, shape.num_rows, np.int32)
  place[: len(live)] = [row.index for row in live]
  context, context_lengths = _pad(contexts + [[]] * pad, width)
  of = lambda values, dtype: np.asarray([*values, *[0] * pad], dtype)
  return record(
    buffer,
    place,
    context,
    context_lengths,
    answers.tokens,
    answers.lengths,
    answers.logprobs,
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
  if budget < _LEAST_FEEDBACK_TOKENS:
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


def _enter_turn(
  sampler, shape, params, state, contexts, places, turn, before, stats
):
  """Gathers the rows that go on and lets them read their feedback."""
  started = time.perf_counter()
  batch = shape.bucket_for(len(places))
  index = np.zeros(batch, np.int32)
  index[: len(places)] = places
  tokens, lengths = _pad(
    contexts + [[]] * (batch - len(places)), shape.max_feedback_tokens
  )
  state = sampler.next_turn[turn, before, batch](
    params, state, index, tokens, lengths
  )
  stats.sample_seconds += time.perf_counter() - started
  return state
