"""The multi-turn loop against a scripted harness and a scripted policy."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from msgspec.structs import replace

from kernels_eval import client, problems
from kernels_eval.schema import Status
from leap_jax import buffer, dcp, feedback, prompts, random_feedback, rollout
from leap_jax import sampler as sampler_lib
from leap_jax.types import EndReason, StopReason

OPEN_GATE = jax.jit(dcp.open_gate)


class Script:
  """A sampler that says what it is told and writes down what it reads.

  `answers[row][turn]` is a list of ids or a text. Its contexts are the ids that
  the policy conditions on, kept for each row over all turns.
  """

  def __init__(self, shape, vocabulary, answers):
    self.shape, self.vocabulary, self.answers = shape, vocabulary, answers
    self.seen = [[] for _ in range(shape.num_rows)]
    self.order = []  # what was called, in order

  def begin(self, weights, tokens, lengths):
    self.order.append("prompts")
    g = self.shape.group_size
    for row in range(self.shape.num_rows):
      self.seen[row] = tokens[row // g, : lengths[row // g]].tolist()
    return "state"

  def tell(self, weights, state, rows, contexts, turn):
    self.order.append(f"tell {turn} {len(rows)}")
    for row, context in zip(rows, contexts, strict=True):
      self.seen[row] += context
    return "state"

  def answer(self, weights, state, key, rows, turn):
    self.order.append(f"answer {turn} {len(rows)}")
    n = self.shape.max_new_tokens
    # In two calls, and not in the order in which they were asked for.
    late, soon = list(rows)[::2], list(rows)[1::2]
    for part in (soon, late):
      tokens = np.zeros((len(part), n), np.int32)
      lengths = np.zeros(len(part), np.int32)
      stopped = np.zeros(len(part), bool)
      for place, row in enumerate(part):
        answer = self.answers[row][turn]
        ids = (
          self.vocabulary.completion(answer)
          if isinstance(answer, str)
          else answer
        )[:n]
        tokens[place, : len(ids)] = ids
        lengths[place] = len(ids)
        stopped[place] = ids[-1] in self.vocabulary.stop_tokens
        self.seen[row] += list(ids)
      logprobs = np.where(tokens > 0, -1.0, 0.0).astype(np.float32)
      yield sampler_lib.Call(
        "state",
        np.asarray(part, np.int32),
        sampler_lib.Completions(
          tokens, logprobs, np.zeros_like(logprobs), lengths, stopped
        ),
        num_steps=int(lengths.max(initial=0)),
        num_slots=len(part),
      )

  def sampler(self):
    return sampler_lib.Sampler(
      lambda params: params, self.begin, self.tell, self.answer
    )


@pytest.fixture
def play(programs, shape, vocabulary, cards, verdict):
  """play(answers, statuses, gate) -> Collected, Script, requests.

  `statuses[row][turn]` is the harness's answer.
  """

  def run(
    answers, statuses, gate=OPEN_GATE, shape=shape, programs=programs, tell=list
  ):
    script = Script(shape, vocabulary, answers)
    requests = []

    def evaluate(batch, on_result=lambda _: None):
      batch = list(batch)  # of an inbox: when its turn has been sampled
      script.order.append(f"evaluate {len(batch)}")
      requests.extend(batch)
      out = []
      for request in batch:
        row, turn = (int(x) for x in request.id.split("/"))
        out.append(verdict(request, statuses[row][turn]))
        on_result(out[-1])
      return out

    collected = rollout.collect(
      script.sampler(),
      programs,
      shape,
      vocabulary,
      None,
      jax.random.key(0),
      cards[: shape.num_problems],
      evaluate,
      gate,
      tell,
    )
    return collected, script, requests

  return run


OK, BAD = Status.PASSED, Status.WRONG_ANSWER
LOST = Status.INFRASTRUCTURE_ERROR
ANSWERS = [[[40 + r, 60 + t, 1] for t in range(3)] for r in range(8)]


def test_the_order_is_sample_judge_tell_sample(play):
  statuses = [[BAD, BAD, OK]] * 3 + [[OK] * 3] * 5
  _, script, _ = play(ANSWERS, statuses)
  assert script.order == [
    "prompts",
    "answer 0 8",
    "evaluate 8",
    "tell 1 3",  # three rows go on
    "answer 1 3",
    "evaluate 3",
    "tell 2 3",
    "answer 2 3",
    "evaluate 3",
  ]


def test_rows_are_stored_where_they_belong(play):
  # Row 1 is solved in turn 2, row 6 never; all others at once.
  statuses = [[OK] * 3 for _ in range(8)]
  statuses[1], statuses[6] = [BAD, OK, OK], [BAD, BAD, BAD]
  collected, _, _ = play(ANSWERS, statuses)
  host = jax.device_get(collected.rollouts)
  executed = host.executed.reshape(8, 3)
  assert executed.sum(1).tolist() == [1, 2, 1, 1, 1, 1, 3, 1]
  correct = host.correct.reshape(8, 3)
  assert correct[1].tolist() == [False, True, False]
  assert correct[6].tolist() == [False, False, False]
  for row, trajectory in enumerate(collected.trajectories):
    told = [turn.correct for turn in trajectory.turns]
    assert told == correct[row, : len(told)].tolist()
  ends = [t.end_reason for t in collected.trajectories]
  assert ends[1] == EndReason.SOLVED and ends[6] == EndReason.LAST_TURN


@pytest.mark.covers("P06")
def test_training_ids_are_exactly_what_the_sampler_saw(play):
  # Prompt, answer, feedback, answer ...: the concatenated segments are the
  # ids of the conversation, turn after turn an extension of the last.
  statuses = [[BAD] * 3] * 8
  collected, script, _ = play(ANSWERS, statuses)
  host = jax.device_get(collected.rollouts)
  tokens, lengths = host.tokens.reshape(8, 3, -1), host.lengths.reshape(8, 3)
  own = host.own.reshape(8, 3, -1)
  for row in range(8):
    joined = np.concatenate(
      [tokens[row, t, : lengths[row, t]] for t in range(3)]
    )
    assert joined.tolist() == script.seen[row]
    mine = np.concatenate([own[row, t, : lengths[row, t]] for t in range(3)])
    assert joined[mine].tolist() == sum(ANSWERS[row], [])


@pytest.mark.covers("P07")
def test_ids_that_do_not_survive_re_encoding_are_kept(play, vocabulary):
  # Two ids whose text would be one id: the pair must come back as sampled.
  pair = next(
    [a, b]
    for a in range(4, 200)
    for b in range(4, 200)
    if vocabulary.encode(vocabulary.decode([a, b])) not in ([a, b], [])
  )
  answers = [[pair + [1]] * 3 for _ in range(8)]
  collected, script, _ = play(answers, [[BAD] * 3] * 8)
  host = jax.device_get(collected.rollouts)
  tokens, own = host.tokens.reshape(8, 3, -1), host.own.reshape(8, 3, -1)
  for t in range(3):
    assert tokens[0, t][own[0, t]].tolist() == pair + [1]
  assert script.seen[0][-3:] == pair + [1]


@pytest.mark.covers("P08")
def test_the_grader_reads_the_policys_own_tokens_only(play, cards):
  # The feedback of turn 1 quotes a correct kernel; turn 2 has no code.
  quoted = prompts.answer_message(problems.get(cards[0].name).canonical).text
  answers = [[quoted, "I give up", "still nothing"] for _ in range(8)]
  _, _, requests = play(answers, [[BAD] * 3] * 8)
  second = [r for r in requests if r.id.endswith("/1")]
  assert second and all("__global__" not in r.text for r in second)


@pytest.mark.covers("P08")
def test_feedback_does_not_count_as_the_policys(play):
  collected, _, _ = play(ANSWERS, [[BAD] * 3] * 8)
  host = jax.device_get(collected.rollouts)
  # Three own tokens a turn, whatever the context.
  assert (host.own.sum(-1) == 3).all()
  assert collected.stats.sampled_tokens == 8 * 3 * 3


def test_rows_are_told_of_other_problems_however_they_end(play):
  told, seen = random_feedback.Told(), []
  swap = random_feedback.swapped(0, told)

  def tell(verdicts):
    seen.append([verdict.id for verdict in verdicts])
    return swap([replace(v, message=f"about {v.problem}") for v in verdicts])

  # Rows end in two calls a turn, out of order; a turn is one draw.
  collected, _, _ = play(ANSWERS, [[BAD] * 3] * 8, tell=tell)
  assert seen == [[f"{row}/{turn}" for row in range(8)] for turn in range(3)]
  for trajectory in collected.trajectories:
    for turn in trajectory.turns:
      assert turn.evaluation.problem == trajectory.problem.name
      assert f"about {trajectory.problem.name}" != turn.evaluation.message
      assert not turn.feedback or "about " in turn.feedback
  assert told == random_feedback.Told(failed=24, own_problem=0)


def test_the_gate_closes_whole_problems(play):
  # Problem 0: one failure of four; problem 1: three of four.
  statuses = [[BAD, OK, OK]] + [[OK] * 3] * 3 + [[BAD] * 3] * 3 + [[OK] * 3]
  gate = jax.jit(functools.partial(dcp.difficulty_gate, f_lo=0.5, f_hi=0.875))
  collected, _, requests = play(ANSWERS, statuses, gate)
  assert collected.active.tolist() == [False, True]
  assert len(requests) == 8 + 3 + 3
  assert collected.trajectories[0].end_reason == EndReason.PRUNED
  host = jax.device_get(collected.rollouts)
  assert not host.executed[0, :, 1:].any()
  assert host.executed[1].sum() == 3 * 3 + 1


def test_a_lost_sample_goes_no_further_and_is_marked(play):
  statuses = [[BAD] * 3 for _ in range(8)]
  statuses[2] = [LOST] * 3
  statuses[5] = [BAD, LOST, BAD]
  collected, _, _ = play(ANSWERS, statuses)
  host = jax.device_get(collected.rollouts)
  assert host.ok.reshape(-1).tolist() == [1, 1, 0, 1, 1, 0, 1, 1]
  assert collected.trajectories[2].end_reason == EndReason.FAULT
  assert collected.trajectories[5].end_reason == EndReason.FAULT
  assert len(collected.trajectories[5].turns) == 2


def test_a_harness_that_judges_nothing_stops_the_rollout(play):
  with pytest.raises(client.HarnessError, match="all 8 answers.*y\\[0\\] is 1"):
    play(ANSWERS, [[LOST] * 3] * 8)
  # One verdict is enough to go on; later turns may lose all of a few rows.
  collected, _, _ = play(ANSWERS, [[LOST] * 3] * 7 + [[BAD, LOST, LOST]])
  host = jax.device_get(collected.rollouts)
  assert not host.ok.any()


def test_a_cut_answer_failed_even_if_its_kernel_passes(play, shape):
  long = [[9] * shape.max_new_tokens] * 3  # never stops
  collected, script, _ = play([long] * 8, [[OK] * 3] * 8)
  host = jax.device_get(collected.rollouts)
  assert not host.correct.any() and host.ok.all()
  turn = collected.trajectories[0].turns[0]
  assert turn.stop_reason == StopReason.LENGTH and not turn.correct
  # What the policy reads agrees with its reward.
  assert turn.feedback.startswith("The answer was cut at")
  assert "right" not in turn.feedback
  assert collected.stats.truncated_turns == collected.stats.turns == 24


def test_a_cut_answer_is_closed_before_the_feedback(play, shape, vocabulary):
  long = [[9] * shape.max_new_tokens] * 3
  _, script, _ = play([long] * 8, [[BAD] * 3] * 8)
  ids = script.seen[0]
  first = ids.index(9) + shape.max_new_tokens
  assert ids[first] == vocabulary.stop_tokens[0]
  assert ids[first + 1] == vocabulary.inner.token_to_id("<|user|>")


@pytest.mark.parametrize("spare", range(0, 60, 5))
@pytest.mark.covers("P10")
def test_a_turn_is_begun_only_with_room_for_an_answer(
  play, programs, shape, vocabulary, cards, spare
):
  prompts_ = rollout.first_prompts(vocabulary, cards[:2])
  # Behind the longest prompt and a first answer of three tokens.
  tight = dataclasses.replace(
    shape, max_context_tokens=max(map(len, prompts_)) + 3 + spare
  )
  collected, _, requests = play(ANSWERS, [[BAD] * 3] * 8, shape=tight)
  host = jax.device_get(collected.rollouts)
  own, lengths = host.own.reshape(8, 3, -1).sum(-1), host.lengths.reshape(8, 3)
  for row, trajectory in enumerate(collected.trajectories):
    before = len(prompts_[row // 4])
    for t in range(len(trajectory.turns)):
      context = lengths[row, t] - own[row, t]
      before += context if t else 0
      if t:
        left = tight.max_context_tokens - before
        assert left >= tight.least_answer_tokens
      before += own[row, t]
    if len(trajectory.turns) < 3:
      # No judge was called for a turn that could hold no answer.
      assert trajectory.end_reason == EndReason.CONTEXT_FULL
  assert len(requests) == sum(len(t.turns) for t in collected.trajectories)
  if spare == 0:
    assert {len(t.turns) for t in collected.trajectories[:4]} <= {1, 2}
    assert collected.stats.context_full


def test_the_quickstart_never_runs_out_of_context():
  from experiments import state
  from experiments.configs import quickstart

  shape = state.rollout_shape(quickstart.get_config())
  taken = shape.max_prompt_tokens
  for _ in range(shape.num_turns - 1):
    taken += shape.max_new_tokens
    room = shape.max_context_tokens - taken - shape.least_answer_tokens
    assert room >= shape.max_feedback_tokens
    taken += shape.max_feedback_tokens


@pytest.mark.parametrize("budget", [13, 20, 40])
@pytest.mark.parametrize("stop_reason", list(StopReason))
def test_the_feedback_on_record_is_what_was_read(
  play, shape, vocabulary, verdict, budget, stop_reason
):
  class Request:
    id, problem = "1", "p"

  for message in ("short", "error: x y z " * 200):
    evaluation = verdict(Request, Status.COMPILE_ERROR, message)
    ids, text, was_cut = rollout.feedback_context(
      vocabulary, evaluation, stop_reason, budget
    )
    assert text == vocabulary.decode(ids) and len(ids) <= budget
    whole = prompts.feedback_message(feedback.render(evaluation, stop_reason))
    assert (text == whole.text) == (not was_cut)


@pytest.mark.covers("P10")
def test_a_conversation_that_outgrows_the_context_ends(
  play, shape, vocabulary, cards
):
  longest = max(len(p) for p in rollout.first_prompts(vocabulary, cards[:2]))
  # Room for one answer and less than the least feedback behind it.
  tight = dataclasses.replace(shape, max_context_tokens=longest + 3 + 5)
  statuses = [[BAD] * 3] * 8
  collected, _, _ = play(
    ANSWERS, statuses, shape=tight, programs=buffer.compile_programs(tight)
  )
  by_row = {t.end_reason for t in collected.trajectories}
  assert EndReason.CONTEXT_FULL in by_row
  assert collected.stats.context_full > 0
  host = jax.device_get(collected.rollouts)
  assert host.ok.all()  # an outcome, no fault


@pytest.mark.covers("P10")
def test_a_prompt_that_does_not_fit_is_refused_before_sampling(
  play, shape, vocabulary, cards
):
  tight = dataclasses.replace(shape, max_prompt_tokens=8)
  assert not rollout.fits(vocabulary, cards[0], tight)
  assert rollout.fits(vocabulary, cards[0], shape)
  with pytest.raises(rollout.PromptTooLong, match="at most 8"):
    play(ANSWERS, [[BAD] * 3] * 8, shape=tight)


def test_later_turns_stop_when_nobody_is_left(play):
  _, script, _ = play(ANSWERS, [[OK] * 3] * 8)
  assert script.order == ["prompts", "answer 0 8", "evaluate 8"]


def test_useful_slots_are_counted(play):
  statuses = [[OK] * 3] * 8
  answers = [[[7] * (r + 1) + [1]] * 3 for r in range(8)]
  collected, _, _ = play(answers, statuses)
  # Rows of 2 to 9 tokens, in nine steps of four slots and eight of four.
  assert collected.stats.sampled_tokens == sum(range(2, 10))
  assert collected.stats.decode_slots == 9 * 4 + 8 * 4
