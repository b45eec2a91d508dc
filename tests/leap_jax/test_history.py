"""What a run remembers of its problems, and how it draws by it."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from leap_jax import history, problems


def visit(state, solved_at, ok=None, active=False, decay=0.5):
  """One visit of problem `a`."""
  solved_at = np.asarray([solved_at])
  ok = np.ones_like(solved_at, bool) if ok is None else np.asarray([ok], bool)
  rates = history.smoothed(state, ["a"], solved_at == 1, ok, decay)
  history.note(state, ["a"], solved_at, ok, np.asarray([active]), rates)
  return state.seen["a"]


def test_fail_rates_by_hand():
  state = history.History()
  assert visit(state, [1, 2, 4, 4]).fail_rate == 0.75
  # .5 * .75 + .5 * .25
  assert visit(state, [1, 1, 1, 4]).fail_rate == 0.5
  # One of two that count failed.
  assert visit(state, [1, 4, 4, 4], [1, 1, 0, 0]).fail_rate == 0.5
  # A visit that the harness lost changes nothing.
  one = visit(state, [4, 4, 4, 4], [0, 0, 0, 0], active=True)
  assert one == history.Seen(4, 10, 5, 1, 0.5, 0)


def test_a_lost_first_visit_knows_nothing():
  state = history.History()
  assert visit(state, [4, 4], [0, 0]).fail_rate is None
  rates = history.smoothed(
    state, ["a"], np.zeros((1, 2), bool), np.zeros((1, 2), bool), 0.5
  )
  assert np.isnan(rates).all()


def test_visits_in_which_all_came_to_the_same_are_counted_in_a_row():
  state = history.History()
  assert visit(state, [1, 1, 1]).uniform_visits == 1
  assert visit(state, [4, 4, 4]).uniform_visits == 2
  assert visit(state, [1, 4, 1], [1, 0, 1]).uniform_visits == 3
  assert visit(state, [1, 1, 1], [0, 0, 0]).uniform_visits == 3
  assert visit(state, [1, 1, 2]).uniform_visits == 0


def test_it_goes_through_json_unchanged():
  state = history.History(cursor=17)
  rng = np.random.default_rng(0)
  for _ in range(20):
    visit(state, rng.integers(1, 5, 7).tolist(), decay=0.3)
  visit(state, [4, 4], [0, 0])
  record = json.loads(json.dumps(dataclasses.asdict(state)))
  assert history.History.from_record(record) == state


CARDS = [SimpleNamespace(name=str(i)) for i in range(10)]


def drawn(cursor, count, uniform_visits, seed=7):
  chosen, cursor = problems.predicted(
    CARDS, seed, cursor, count, uniform_visits
  )
  return [card.name for card in chosen], cursor


def test_without_a_past_it_is_the_uniform_order():
  names, cursor = drawn(0, 23, {})
  expected = problems.in_order(CARDS, 7, 0, 23)
  assert names == [card.name for card in expected] and cursor == 23


def test_a_draw_goes_on_where_it_stopped():
  visits = {str(i): i % 4 for i in range(10)}
  straight, end = drawn(0, 12, visits)
  first, cursor = drawn(0, 5, visits)
  rest, other_end = drawn(cursor, 7, visits)
  assert first + rest == straight and end == other_end


@pytest.mark.parametrize("z,share", [(0, 1.0), (1, 0.5), (2, 0.25), (9, 0.01)])
def test_what_taught_nothing_is_drawn_less(z, share):
  # Problem 3 against the nine others: drawn `share` times as often.
  names, cursor = drawn(0, 5000, {"3": z})
  times = cursor / 10
  assert abs(names.count("3") - share * times) < 5 * np.sqrt(times * 0.25)
  assert abs(names.count("4") - times) <= 1
