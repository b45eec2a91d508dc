"""Iterations against a scripted harness: refilling, skipping, stopping."""

import dataclasses
import gzip
import json
import pathlib
from types import SimpleNamespace

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
from experiments.state import Cost, NonFinite, Progress, Run
from kernels_eval import client
from kernels_eval.schema import Status
from leap_jax import (
  batching,
  compilations,
  history,
  methods,
  sharding,
  update,
)


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
      problems=history.History(),
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
      programs.make_method(config.method),
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


@pytest.fixture
def lucky_later():
  """First round: all wrong. From the second on row 1 succeeds at once."""
  round_of = {"n": -1}

  def decide(request):
    row, turn = place(request)
    if row == 0 and turn == 0:
      round_of["n"] += 1
    lucky = round_of["n"] >= 1 and row == 1
    return Status.PASSED if lucky else Status.WRONG_ANSWER

  return decide


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


def read_conversations(folder):
  """File name -> conversations."""
  found = {}
  for path in sorted(folder.glob("trajectories/*.jsonl.gz")):
    with gzip.open(path, "rt") as file:
      found[path.name] = [json.loads(line) for line in file]
  return found


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
    len(x.turns)
    for x in gathered.rounds[0].trajectories
    if x.end_reason != "fault"
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


@pytest.mark.parametrize("num_heldout", [1, 2, 3])
def test_evaluation_is_counted_apart_and_without_its_filler(
  setup, stopping, tmp_path, num_heldout
):
  # Batches of two problems: one and three need a repeat at the end.
  decide = lambda r: (
    Status.PASSED if place(r)[0] % 4 == 0 else Status.WRONG_ANSWER
  )
  run, made, state, pool, _ = setup(decide, stopping)
  run = dataclasses.replace(run, heldout=run.heldout[:num_heldout])
  progress = Progress()
  result = heldout.evaluate(run, made, state, progress, "before")
  samples = read_conversations(tmp_path)["heldout_before.jsonl.gz"]
  assert len(samples) == num_heldout * run.shape.group_size
  turns = [turn for sample in samples for turn in sample["turns"]]
  tokens = sum(turn["num_tokens"] for turn in turns)
  assert progress.evaluation.sampled_tokens == tokens > 0
  assert progress.evaluation.harness_calls == len(turns)
  assert progress.evaluation.kernels_judged == pool.num_evaluated
  assert result["sampled_tokens"] == tokens
  assert result["harness_calls"] == len(turns)
  assert progress.training == Cost()


def test_progress_is_the_same_after_its_record():
  progress = Progress(iterations=3, training=Cost(5, 6, 7), before={"a": 1.0})
  record = json.loads(json.dumps(dataclasses.asdict(progress)))
  assert Progress.from_record(record) == progress


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
