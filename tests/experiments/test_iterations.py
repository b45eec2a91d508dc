"""Iterations against a scripted harness: refilling, skipping, stopping."""

import dataclasses
import pathlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import (
  gathering,
  heldout,
  iterations,
  problem_sets,
  programs,
  settings,
)
from experiments.configs import base
from experiments.state import NonFinite, Progress, Run
from kernels_eval import client
from kernels_eval.schema import Status
from leap_jax import batching, compilations, dcp, methods, sharding, update


class FakePool:
  """Verdicts by a function of the request; counts what it is asked."""

  num_restarts = 0

  def __init__(self, decide, verdict):
    self.decide, self.verdict = decide, verdict
    self.num_evaluated = 0
    self.batches = []

  def evaluate(self, requests):
    self.batches.append([r.id for r in requests])
    self.num_evaluated += len(requests)
    return [self.verdict(r, self.decide(r)) for r in requests]


@pytest.fixture
def setup(
  shape,
  model,
  params,
  vocabulary,
  sampling,
  cards,
  verdict,
  tmp_path,
  request,
):
  """setup(decide, **rollout settings) -> Run, Programs, state, pool."""
  compiled_buffer = request.getfixturevalue("programs")

  def make(decide, params=params, **changes):
    config = base.get_config()
    with config.unlocked():
      for name, value in changes.items():
        config.rollout[name] = value
      config.rollout.temperature = 0.8
      config.learner.learning_rate = 1e-3
      config.learner.bucket_tokens = (shape.max_context_tokens,)
    pool = FakePool(decide, verdict)
    said = []
    run = Run(
      config=config,
      workdir=pathlib.Path(tmp_path),
      pool=pool,
      writer=None,
      checkpoints=None,
      compiled=compilations.Compilations(),
      mesh=sharding.make_mesh(),
      model=model,
      tokenizer=vocabulary,
      shape=shape,
      train=list(cards),
      heldout=list(cards),
      num_skipped=0,
      say=said.append,
    )
    tx = programs.make_optimizer(config)
    state = sharding.replicate(
      run.mesh, update.init_state(jax.tree.map(jnp.array, params), tx)
    )
    specs = batching.bucket_specs(
      config.learner.bucket_tokens, config.learner.micro_tokens, 1
    )
    step = jax.jit(
      update.make_update(
        model,
        tx,
        update.make_policy_loss(
          temperature=0.8, clip_low=0.2, clip_high=0.28, kl_coef=0.0
        ),
      )
    )
    made = programs.Programs(
      methods.METHODS["leap"](f_lo=0.5, f_hi=0.875, gamma=0.4),
      sampling,
      compiled_buffer,
      step,
      specs,
    )
    return run, made, state, pool, said

  return make


def place(request):
  row, turn = (int(x) for x in request.id.split("/"))
  return row, turn


def all_wrong(request):
  del request
  return Status.WRONG_ANSWER


# The micro policy never stops in 12 tokens, so answers count as cut; a policy
# with a strong end token does stop.
@pytest.fixture
def stopping(params, vocabulary):
  (end,) = vocabulary.stop_tokens
  biased = jax.tree.map(jnp.array, params)
  table = biased["embedding"]["embedding"]
  biased["embedding"]["embedding"] = table.at[end].mul(6.0)
  return biased


def same(a, b):
  return all(
    bool((x == y).all())
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
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
def test_refilling_replaces_groups_without_spread(setup, stopping):
  # First round: all wrong. Second: problem 0 has one success.
  round_of = {"n": -1}

  def decide(request):
    row, turn = place(request)
    if row == 0 and turn == 0:
      round_of["n"] += 1
    lucky = round_of["n"] >= 1 and row == 1
    return Status.PASSED if lucky else Status.WRONG_ANSWER

  run, made, state, _, _ = setup(
    decide, stopping, max_refill_rounds=3, min_spread_groups=1
  )
  # Row 1's answer must end by itself to count.
  _, gathered, values = iterations.iterate(run, made, state, 0)
  if gathered.has_spread.any():
    assert values["rollout/refilled_groups"] == 1
    assert values["update/rows"] > 0
    index = int(np.flatnonzero(gathered.has_spread)[0])
    g = run.shape.group_size
    solved = [
      t.end_reason == "solved"
      for t in gathered.trajectories[index * g : (index + 1) * g]
    ]
    np.testing.assert_array_equal(
      (gathered.host.correct & gathered.host.executed).any(-1)[index], solved
    )
  else:
    pytest.fail("no answer of row 1 stopped; the fixture is too weak")


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


def test_a_lost_iteration_has_no_accuracy_and_says_why(setup, stopping):
  # One first answer is judged; then that sample is lost, too.
  decide = lambda r: (
    Status.WRONG_ANSWER if place(r) == (0, 0) else Status.INFRASTRUCTURE_ERROR
  )
  run, made, state, _, said = setup(decide, stopping)
  made = dataclasses.replace(
    made, method=made.method._replace(gate=jax.jit(dcp.open_gate))
  )
  written = []
  writer = types.SimpleNamespace(write=lambda *line: written.append(line))
  run = dataclasses.replace(run, writer=writer)
  with run.config.unlocked():
    run.config.run.num_iterations = 1
    run.config.run.checkpoint_every = 2
    run.config.run.save_trajectories = False
  checkpoints = types.SimpleNamespace(save=lambda *_: None)
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
    len(x.turns) for x in gathered.trajectories if x.end_reason != "fault"
  )
  assert values["rollout/turns_per_sample"] == pytest.approx(ran / 6)


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
    with pytest.raises(NonFinite, match="iteration 0.*last checkpoint is good"):
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


@pytest.mark.parametrize("policy", ["skip", "refuse"])
@pytest.mark.covers("P10")
def test_prompts_that_do_not_fit_are_skipped_or_refused(
  vocabulary, shape, policy
):
  long = "chain-" + "-".join(["max_y"] * 8) + "-sum"
  names = ["chain-relu", long]
  if policy == "skip":
    cards, skipped = problem_sets.cards(names, vocabulary, shape, policy)
    assert [c.name for c in cards] == ["chain-relu"] and skipped == 1
    with pytest.raises(settings.UsageError, match="no problem's prompt fits"):
      problem_sets.cards([long], vocabulary, shape, policy)
  else:
    with pytest.raises(settings.UsageError, match=long):
      problem_sets.cards(names, vocabulary, shape, policy)
