"""Iterations against a scripted harness: counting, stopping, going on."""

import dataclasses
import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import (
  gathering,
  iterations,
  programs,
)
from experiments.state import Cost, NonFinite, Progress
from kernels_eval.schema import Status
from leap_jax import (
  history,
)
from tests.experiments.scripted_harness import (
  all_wrong,
  place,
  same,
)


@pytest.mark.parametrize(
  "limit,expected", [(None, 3), (1e-9, 1), (1e9, 3)], ids=str
)
def test_training_ends_with_its_time(setup, stopping, limit, expected):
  run, made, state, _, _ = setup(all_wrong, stopping)
  saved = []
  with run.config.unlocked():
    run.config.run.num_iterations = 3
    run.config.run.max_training_s = limit
    run.config.run.checkpoint_every = 10
    run.config.run.save_trajectories = False
  run = dataclasses.replace(
    run,
    writer=SimpleNamespace(write=lambda step, values: None),
    checkpoints=SimpleNamespace(save=lambda step, *_: saved.append(step)),
  )
  progress = Progress()
  iterations.train(run, made, state, None, progress)
  assert progress.iterations == expected
  assert progress.training_seconds > 0
  assert saved == [expected]  # the end is always saved
  # It has had its time: called again, it begins nothing.
  iterations.train(run, made, state, None, progress)
  assert progress.iterations == expected


def test_a_run_that_goes_on_has_no_hole_in_its_curve(setup, stopping):
  run, made, start, _, _ = setup(all_wrong, stopping)
  with run.config.unlocked():
    run.config.eval.every = 2
    run.config.run.save_trajectories = False
  lines, records = [], []
  run = dataclasses.replace(
    run,
    writer=SimpleNamespace(write=lambda step, values: lines.append(values)),
    checkpoints=SimpleNamespace(
      save=lambda step, state, record: records.append(json.dumps(record))
    ),
  )

  def train(progress, state, num_iterations):
    with run.config.unlocked():
      run.config.run.num_iterations = num_iterations
    return iterations.train(run, made, state, None, progress)[0]

  progress = Progress()
  halfway = train(progress, start, 2)
  # What the run ends with is known already.
  assert progress.evaluated["num_samples"] > 0
  assert "eval/acc_at_1" in lines[1]
  saved = json.loads(records[-1])
  assert saved["evaluated"] == json.loads(json.dumps(progress.evaluated))
  progress = Progress.from_record(
    {k: v for k, v in saved.items() if k != "base"}
  )
  train(progress, halfway, 5)
  assert [e["iteration"] for e in progress.evaluations] == [2, 4]
  assert progress.evaluated is None  # the policy has changed since
  # A checkpoint from before this was kept.
  del saved["evaluated"], saved["base"]
  assert Progress.from_record(saved).evaluated is None


@pytest.mark.covers("P11")
def test_one_group_with_spread_is_trained_on_with_true_counts(setup, stopping):
  decide = lambda r: (
    Status.PASSED if place(r)[0] in (0, 1) else Status.WRONG_ANSWER
  )
  run, made, state, _, _ = setup(decide, stopping)
  new, gathered, values = iterations.iterate(run, made, state, 0)
  assert gathered.has_spread.tolist() == [True, False]
  assert values["update/rows"] == 4
  assert values["update/rows_dropped"] == 4
  counted = (gathered.advantages != 0).sum()
  assert 4 <= values["update/samples"] == counted
  assert not same(new.params, stopping) and int(new.step) == 1


def test_the_same_iteration_twice_is_the_same(setup, stopping):
  decide = lambda r: (
    Status.PASSED if place(r)[0] % 3 == 0 else Status.WRONG_ANSWER
  )
  outcomes = []
  for _ in range(2):
    run, made, state, _, _ = setup(decide, stopping)
    new, _, _ = iterations.iterate(run, made, state, 5)
    outcomes.append(jax.device_get(new.params))
  assert same(*outcomes)


@pytest.mark.parametrize("gate", ["random", "smoothed"])
def test_lots_and_memory_survive_a_resume(setup, stopping, gate):
  rng = np.random.default_rng(4)
  luck = rng.random((6, 64, 8)) < 0.4  # iteration, row, turn
  current = {}
  decide = lambda r: (
    Status.PASSED if luck[current["i"]][place(r)] else Status.WRONG_ANSWER
  )
  run, made, state, pool, _ = setup(decide, stopping)
  with run.config.unlocked():
    run.config.method.gate = gate
    run.config.method.sampling = "predictive"
  made = dataclasses.replace(
    made, method=programs.make_method(run.config.method)
  )

  def play(run, first, last):
    seen = []
    for current["i"] in range(first, last):
      gathered = gathering.gather(run, made, state.params, current["i"])
      once = gathered.rounds[0]
      names = [t.problem.name for t in once.trajectories]
      seen.append((names, once.active.tolist(), once.executed.tolist()))
    return seen

  straight = play(run, 0, 6)
  halfway = dataclasses.replace(run, problems=history.History())
  begun = play(halfway, 0, 3)
  record = json.loads(
    json.dumps(dataclasses.asdict(Progress(problems=halfway.problems)))
  )
  resumed = dataclasses.replace(
    run, problems=Progress.from_record(record).problems
  )
  assert begun + play(resumed, 3, 6) == straight
  assert resumed.problems == run.problems
  assert sum(one.visits for one in run.problems.seen.values()) == 12


def test_numbers_that_are_not_finite_stop_the_run(setup, stopping):
  broken = jax.tree.map(jnp.array, stopping)
  # One weight of the last norm: the sampler still samples, losses are NaN.
  scale = broken["final_norm"]["scale"]
  decide = lambda r: Status.PASSED if place(r)[0] == 0 else Status.WRONG_ANSWER
  run, made, state, _, _ = setup(decide, stopping)
  state = state._replace(
    params={**state.params, "final_norm": {"scale": scale * jnp.nan}}
  )
  gathered = gathering.gather(run, made, stopping, 0)
  original = gathering.gather
  try:
    iterations.gather = lambda *a: gathered
    with pytest.raises(NonFinite, match="iteration 0: loss nan"):
      iterations.iterate(run, made, state, 0)
  finally:
    iterations.gather = original


@pytest.mark.covers("P03")
def test_a_gap_between_sampler_and_trainer_is_told(setup, stopping):
  decide = lambda r: Status.PASSED if place(r)[0] == 0 else Status.WRONG_ANSWER
  run, made, state, _, said = setup(decide, stopping)
  with run.config.unlocked():
    run.config.learner.max_log_ratio = 1e-12
  iterations.iterate(run, made, state, 0)
  assert any("sampler and trainer" in line for line in said)
  with run.config.unlocked():
    run.config.learner.stop_log_ratio = 1e-12
  run2, made, state, _, _ = setup(decide, stopping)
  with pytest.raises(NonFinite, match="stop_log_ratio"):
    iterations.iterate(
      dataclasses.replace(run2, config=run.config), made, state, 0
    )


def test_progress_is_the_same_after_its_record():
  progress = Progress(iterations=3, training=Cost(5, 6, 7), before={"a": 1.0})
  record = json.loads(json.dumps(dataclasses.asdict(progress)))
  assert Progress.from_record(record) == progress
