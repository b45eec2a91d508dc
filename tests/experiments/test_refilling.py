"""Groups without spread: the update is skipped, or they are replaced."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import (
  iterations,
)
from experiments.state import Progress
from kernels_eval.schema import Status
from tests.experiments.scripted_harness import (
  all_wrong,
  place,
  read_conversations,
  same,
)


@pytest.mark.covers("P11")
def test_without_spread_the_update_is_skipped(setup, stopping):
  run, made, state, pool, _ = setup(all_wrong, stopping)
  new, gathered, values = iterations.iterate(run, made, state, 0)
  assert values["update/skipped"] == 1 and values["update/rows"] == 0
  assert same(new.params, stopping) and int(new.step) == 0
  assert not gathered.has_spread.any()
  assert all(np.isfinite(v) or np.isnan(v) for v in values.values())
  assert len(pool.batches) == 1  # hopeless groups get no debugging turns


@pytest.mark.covers("P11")
def test_refilling_ends_after_its_rounds(setup, stopping):
  run, made, state, pool, _ = setup(
    all_wrong, stopping, max_refill_rounds=2, min_spread_groups=1
  )
  _, gathered, values = iterations.iterate(run, made, state, 0)
  assert len(pool.batches) == 3
  assert values["rollout/refill_rounds"] == 2
  assert values["rollout/refilled_groups"] == 0
  assert values["update/skipped"] == 1


@pytest.mark.covers("P11")
def test_refilling_replaces_groups_without_spread(setup, stopping, lucky_later):
  run, made, state, _, _ = setup(
    lucky_later, stopping, max_refill_rounds=3, min_spread_groups=1
  )
  _, gathered, values = iterations.iterate(run, made, state, 0)
  # Row 1's answer must end by itself to count: the fixture is strong enough.
  assert gathered.has_spread.any()
  assert values["rollout/refilled_groups"] == 1
  assert values["update/rows"] > 0
  index = int(np.flatnonzero(gathered.has_spread)[0])
  g = run.shape.group_size
  # Row 1 is of group 0 of the last round.
  solved = [
    t.end_reason == "solved" for t in gathered.rounds[-1].trajectories[:g]
  ]
  assert any(solved)
  np.testing.assert_array_equal(
    (gathered.host.correct & gathered.host.executed).any(-1)[index], solved
  )


def test_a_replaced_group_is_counted_and_kept_on_disk(
  setup, stopping, lucky_later, tmp_path
):
  run, made, state, _, _ = setup(
    lucky_later, stopping, max_refill_rounds=3, min_spread_groups=1
  )
  written = []
  with run.config.unlocked():
    run.config.run.num_iterations = 1
    run.config.run.checkpoint_every = 1
  run = dataclasses.replace(
    run,
    writer=SimpleNamespace(write=lambda step, values: written.append(values)),
    checkpoints=SimpleNamespace(save=lambda *_: None),
  )
  progress = Progress()
  iterations.train(run, made, state, None, progress)
  (values,) = written
  files = read_conversations(tmp_path)
  rounds = 1 + int(values["rollout/refill_rounds"])
  assert rounds > 1 and values["rollout/refilled_groups"] == 1
  assert sorted(files) == [
    "iteration_000000.jsonl.gz",
    *(f"iteration_000000_refill_{i}.jsonl.gz" for i in range(1, rounds)),
  ]
  samples = [sample for name in files for sample in files[name]]
  assert len(samples) == rounds * run.shape.num_rows
  turns = [turn for sample in samples for turn in sample["turns"]]
  # Every count and every fraction is of the same conversations.
  assert values["kernels/submitted"] == len(turns)
  assert progress.training.harness_calls == len(turns)
  assert values["rollout/tokens"] == sum(t["num_tokens"] for t in turns)
  statuses = [t["evaluation"]["status"] for t in turns]
  # A kernel that passes in an answer that was cut is no success.
  correct = [t["correct"] for t in turns]
  assert sum(correct) <= statuses.count("passed")
  assert values["kernels/passed"] == sum(correct) / len(turns)
  assert values["kernels/wrong_answer"] == (
    statuses.count("wrong_answer") / len(turns)
  )
  solved = [s["end_reason"] == "solved" for s in samples]
  first = [
    ok and len(s["turns"]) == 1 for ok, s in zip(solved, samples, strict=True)
  ]
  assert values["rollout/acc_at_1"] == sum(first) / len(samples)
  assert values["rollout/acc_at_last"] == sum(solved) / len(samples)
  assert values["rollout/turns_per_sample"] == len(turns) / len(samples)
  assert progress.turns == len(turns)
  assert progress.groups == rounds * run.shape.num_problems
  assert values["rollout/activation"] == (
    progress.active_groups / progress.groups
  )
  # Only groups with a success and a failure may be active here.
  assert progress.active_groups <= rounds - 1


def test_faults_of_replaced_groups_are_counted(setup, stopping, lucky_later):
  def decide(request):
    status = lucky_later(request)
    if place(request)[0] == 5:
      return Status.INFRASTRUCTURE_ERROR
    return status

  run, made, state, _, _ = setup(
    decide, stopping, max_refill_rounds=3, min_spread_groups=1
  )
  _, gathered, values = iterations.iterate(run, made, state, 0)
  assert len(gathered.rounds) > 1
  assert values["rollout/faults"] == len(gathered.rounds)
