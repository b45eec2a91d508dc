"""What the harness loses, or an answer that was cut, is told and never paid."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import (
  heldout,
  iterations,
)
from experiments.state import Progress
from kernels_eval import client
from kernels_eval.schema import Status
from leap_jax import (
  methods,
)
from tests.experiments.scripted_harness import (
  place,
)


def test_a_lost_iteration_has_no_accuracy_and_says_why(setup, stopping):
  # One first answer is judged; then that sample is lost, too.
  decide = lambda r: (
    Status.WRONG_ANSWER if place(r) == (0, 0) else Status.INFRASTRUCTURE_ERROR
  )
  run, made, state, _, said = setup(decide, stopping)
  always = methods.make_method(
    "leap", gate="open", f_lo=0.5, f_hi=0.875, gamma=0.4
  )
  made = dataclasses.replace(made, method=always)
  written = []
  writer = SimpleNamespace(write=lambda *line: written.append(line))
  run = dataclasses.replace(run, writer=writer)
  with run.config.unlocked():
    run.config.run.num_iterations = 1
    run.config.run.checkpoint_every = 2
    run.config.run.save_trajectories = False
  checkpoints = SimpleNamespace(save=lambda *_: None)
  run = dataclasses.replace(run, checkpoints=checkpoints)
  iterations.train(run, made, state, None, Progress())
  ((_, values),) = written
  assert values["rollout/faults"] == 8
  for name in ("acc_at_1", "acc_at_last", "turns_per_sample"):
    assert np.isnan(values[f"rollout/{name}"])
  assert any("lost 8 of 8 samples" in line for line in said)


@pytest.mark.covers("P22")
def test_a_harness_that_judges_nothing_stops_the_run(setup, stopping):
  run, made, state, _, _ = setup(
    lambda r: Status.INFRASTRUCTURE_ERROR, stopping
  )
  with pytest.raises(client.HarnessError, match="lost all 8 answers"):
    iterations.iterate(run, made, state, 0)
  with pytest.raises(client.HarnessError, match="lost all 8 answers"):
    heldout.evaluate(run, made, state, Progress(), "before")


@pytest.mark.covers("P22")
def test_lost_samples_are_no_failures(setup, stopping):
  decide = lambda r: (
    Status.INFRASTRUCTURE_ERROR
    if place(r)[0] in (2, 3)
    else (Status.PASSED if place(r)[0] == 0 else Status.WRONG_ANSWER)
  )
  run, made, state, _, _ = setup(decide, stopping)
  _, gathered, values = iterations.iterate(run, made, state, 0)
  assert values["rollout/faults"] == 2
  lost = gathered.advantages.reshape(8, -1)[2:4]
  assert not lost.any()
  # Six samples count; one of them passed.
  assert values["rollout/acc_at_1"] == pytest.approx(1 / 6)
  # Turns of lost samples count as little as the samples.
  ran = sum(
    len(x.turns)
    for x in gathered.rounds[0].trajectories
    if x.end_reason != "fault"
  )
  assert values["rollout/turns_per_sample"] == pytest.approx(ran / 6)


@pytest.mark.parametrize("policy", ["params", "stopping"])
def test_what_counts_as_passed_is_what_is_rewarded(setup, request, policy):
  # Every kernel passes. `params` never stops, so its answers are all cut.
  run, made, state, _, _ = setup(
    lambda r: Status.PASSED, request.getfixturevalue(policy)
  )
  _, gathered, values = iterations.iterate(run, made, state, 0)
  host = gathered.host
  rewarded = (host.correct & host.executed).sum() / host.executed.sum()
  assert values["kernels/passed"] == pytest.approx(rewarded)
  assert values["kernels/other_failure"] == pytest.approx(1 - rewarded)
  assert values["rollout/truncated_fraction"] == pytest.approx(1 - rewarded)
