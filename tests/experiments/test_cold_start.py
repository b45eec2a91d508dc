"""Conversations of the warm start: true verdicts, nothing held out."""

import msgspec
import pytest

from experiments import cold_start
from kernels_eval import client, problem_cards
from kernels_eval.schema import Request, Status
from leap_jax import feedback, prompts
from leap_jax import problems as splits
from leap_jax.types import StopReason

NAMES = {
  "cuda": problem_cards.compositions(0, 400, (1, 2), 0.3),
  "python": problem_cards.functions(0, 400, (1, 2), 0.3),
}


@pytest.fixture(scope="module", params=NAMES)
def made(request):
  names = [n for n in NAMES[request.param] if splits.split_of(n) == "train"]
  names = names[:12]
  with client.Pool(num_workers=2) as pool:
    talks, num_lost = cold_start.make_conversations(
      names, pool, seed=0, num_turns=3, first_right=0.0, repair_right=0.5
    )
    assert num_lost == 0
    yield names, talks, pool


@pytest.mark.parametrize("language", NAMES)
@pytest.mark.parametrize("split", splits.SPLITS[1:])
def test_held_out_problems_are_refused(language, split):
  held_out = next(n for n in NAMES[language] if splits.split_of(n) == split)
  with pytest.raises(ValueError, match="is held out"):
    cold_start.make_conversations(
      [held_out], None, seed=0, num_turns=3, first_right=0.5, repair_right=0.5
    )


def test_every_verdict_is_what_the_harness_says(made):
  names, talks, pool = made
  for name, talk in zip(names, talks, strict=True):
    assert talk[0] == prompts.problem_message(problem_cards.card(name))
    for answer, told in zip(talk[1::2], talk[2::2], strict=False):
      (verdict,) = pool.evaluate([Request("x", name, answer.text)])
      assert not verdict.passed
      text = feedback.render(verdict, StopReason.STOP)
      language = problem_cards.card(name).language
      assert told == prompts.feedback_message(text, language)


def test_conversations_end_with_a_kernel_that_passes(made):
  names, talks, pool = made
  last = pool.evaluate(
    [
      Request(name, name, talk[-1].text)
      for name, talk in zip(names, talks, strict=True)
    ]
  )
  assert all(verdict.passed for verdict in last)
  assert {len(talk) for talk in talks} <= {2, 4, 6}
  assert any(len(talk) > 2 for talk in talks)


def test_the_same_seed_makes_the_same_conversations(made):
  names, talks, pool = made
  make = lambda seed: cold_start.make_conversations(
    names, pool, seed=seed, num_turns=3, first_right=0.0, repair_right=0.5
  )
  assert make(0) == (talks, 0)
  assert make(1) != (talks, 0)


def test_canonical_first_answers_end_at_once(made):
  names, _, pool = made
  talks, _ = cold_start.make_conversations(
    names, pool, seed=0, num_turns=3, first_right=1.0, repair_right=1.0
  )
  for name, talk in zip(names, talks, strict=True):
    card = problem_cards.card(name)
    canonical = cold_start.TEXTS[card.language].canonical(name)
    assert len(talk) == 2
    assert talk[1].text == f"```{card.language}\n{canonical.strip()}\n```"


class FaultyPool:
  """The judge of `pool`, but for attempts on which the machine fails."""

  def __init__(self, pool, faulty):
    self._pool, self._faulty = pool, faulty

  def evaluate(self, requests, on_result=None):
    return [
      msgspec.structs.replace(verdict, status=Status.INFRASTRUCTURE_ERROR)
      if verdict.id in self._faulty
      else verdict
      for verdict in self._pool.evaluate(requests, on_result)
    ]


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_fault_costs_one_conversation(made, turn):
  names, talks, pool = made
  # The first conversation that comes as far as this turn.
  which = next(i for i, talk in enumerate(talks) if len(talk) > 2 * turn)
  got, num_lost = cold_start.make_conversations(
    names,
    FaultyPool(pool, {f"{which}/{turn}"}),
    seed=0,
    num_turns=3,
    first_right=0.0,
    repair_right=0.5,
  )
  assert num_lost == 1
  assert got == talks[:which] + talks[which + 1 :]


def test_a_fault_behind_the_end_of_a_conversation_costs_nothing(made):
  names, talks, pool = made
  which = next(i for i, talk in enumerate(talks) if len(talk) < 6)
  got = cold_start.make_conversations(
    names,
    FaultyPool(pool, {f"{which}/2"}),
    seed=0,
    num_turns=3,
    first_right=0.0,
    repair_right=0.5,
  )
  assert got == (talks, 0)


def test_a_broken_harness_is_an_infrastructure_error(made):
  names, talks, pool = made
  with pytest.raises(client.HarnessError, match="2 of 12 warm-start"):
    cold_start.make_conversations(
      names,
      FaultyPool(pool, {"3/0", "7/0"}),
      seed=0,
      num_turns=3,
      first_right=0.0,
      repair_right=0.5,
    )
