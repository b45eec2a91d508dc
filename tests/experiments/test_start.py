"""What a run starts from, alone and in several processes."""

import dataclasses
import gc

import jax
import numpy as np
import pytest

from experiments import compute, policies, start, state
from experiments.bench import bare_run
from experiments.configs import quickstart
from leap_jax import checkpoint, fitting, sharding
from tests.leap_jax import two_processes


def small(**policy):
  """The quickstart's settings, with a small buffer."""
  config = quickstart.get_config()
  config.rollout.num_problems, config.rollout.group_size = 1, 1
  for name, value in policy.items():
    config.policy[name] = value
  return config


def places(tree):
  """Where arrays lie -> bytes."""
  return {
    x.unsafe_buffer_pointer(): x.nbytes
    for x in jax.tree.leaves(tree)
    if isinstance(x, jax.Array)
    and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
  }


@pytest.mark.parametrize("rank", [0, 2])
def test_a_resumed_run_holds_its_checkpoint_and_no_more(
  model, params, vocabulary, tmp_path, rank
):
  config, mesh = small(lora_rank=rank), sharding.make_mesh()
  reads = []

  def read(mesh):
    reads.append(mesh)
    return sharding.shard_params(model, mesh, jax.tree.map(np.array, params))

  source = start.Source(model, vocabulary, read, conversations=list)
  checkpoints = checkpoint.Checkpoints(tmp_path / "checkpoints")
  said = []
  begin = lambda: start.begin(
    config, source, mesh, tmp_path, checkpoints, said.append
  )
  first = begin()
  assert first.progress.iterations == 0 and len(reads) == 1
  moved = first.train._replace(step=first.train.step + 3)
  checkpoints.save(
    3,
    {"train": moved, "rollouts": first.rollouts},
    dataclasses.asdict(state.Progress(iterations=3, remat={"update": "dots"}))
    | {"base": first.base},
  )
  want = jax.device_get((moved, first.rollouts))
  del first, moved
  before = places(jax.live_arrays())
  again = begin()
  # Of the policy, adapters need the base; masters come from the checkpoint.
  assert len(reads) == (2 if rank else 1)
  gc.collect()
  more = places(jax.live_arrays()).keys() - before.keys() - places(again).keys()
  assert sum(places(jax.live_arrays())[at] for at in more) < 4096
  jax.tree.map(
    np.testing.assert_array_equal, want, (again.train, again.rollouts)
  )
  assert again.progress.iterations == 3
  assert again.progress.remat == {"update": "dots"}
  assert "resuming from checkpoint 3" in said[-1]
  checkpoints.close()


@pytest.mark.parametrize(
  "before, candidates",
  [
    ({}, ("none", "dots", "block")),
    ({"warm_start": "block"}, ("none", "dots", "block")),
    ({"update": "dots"}, ("dots", "block")),
  ],
)
def test_a_run_goes_on_with_its_way_to_compute(
  model, params, monkeypatch, before, candidates
):
  config, mesh = small(), sharding.make_mesh()
  training = compute.split_policy(config, model, mesh, params)
  said, tried = [], []
  run = bare_run.make(config, model, mesh, training, said.append)
  run.remat.update(before)

  def compile_update(make, names, *_, **__):
    tried.extend(names)
    return fitting.Fitted(None, names[-1], 0)

  monkeypatch.setattr(fitting, "compile_update", compile_update)
  compute.compile_update(run, None, None, None, ())
  assert tuple(tried) == candidates
  assert run.remat["update"] == "block"
  # It does not fit any more, and rounding differs from here on.
  assert len(said) == ("update" in before)


def test_all_processes_compute_in_the_same_way(model, params, monkeypatch):
  config, mesh = small(), sharding.make_mesh()
  training = compute.split_policy(config, model, mesh, params)
  run = bare_run.make(config, model, mesh, training, lambda text: None)
  tried = []

  def compile_update(make, names, *_, **__):
    tried.append(names)
    return fitting.Fitted(None, names[0], 0)

  # The compiler of the other one had no memory for `none`.
  others = lambda value: [value, "dots"] if value == "none" else [value, value]
  monkeypatch.setattr(fitting, "compile_update", compile_update)
  monkeypatch.setattr(compute.hosts, "from_all", others)
  compute.compile_update(run, None, None, None, ())
  assert tried == [("none", "dots", "block"), ("dots", "block")]
  assert run.remat["update"] == "dots"


def test_weights_are_read_into_the_dtype_that_is_kept():
  mesh = sharding.make_mesh()
  for policy, dtype in (
    (dict(), "float32"),
    (dict(dtype="bfloat16"), "float32"),
    (dict(dtype="bfloat16", lora_rank=2), "bfloat16"),
  ):
    config = small(**policy)
    opened = policies.open_source(config)
    params = policies.read(config, opened, mesh)
    assert {str(x.dtype) for x in jax.tree.leaves(params)} == {dtype}
    training = compute.split_policy(config, opened.config, mesh, params)
    kept = training.frozen if "lora_rank" in policy else training.params
    # Nothing is copied on the way.
    for a, b in zip(
      jax.tree.leaves(params), jax.tree.leaves(kept), strict=True
    ):
      assert a.unsafe_buffer_pointer() == b.unsafe_buffer_pointer()


def test_shapes_of_a_state_are_those_of_a_fresh_one(model, params):
  mesh = sharding.make_mesh()
  for policy in (dict(), dict(lora_rank=2, dtype="bfloat16")):
    config = small(**policy)
    training = compute.split_policy(config, model, mesh, params)
    fresh = start.fresh_state(config, model, mesh, training.params)
    tx = start.programs.make_optimizer(config)
    shapes = compute.abstract_state(config, model, mesh, tx)
    of = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
    assert of(fresh) == of(shapes)
    same = jax.tree.map(
      lambda x, shape: x.sharding.is_equivalent_to(shape.sharding, x.ndim),
      fresh,
      shapes,
    )
    assert all(jax.tree.leaves(same))


_PROGRAM = """
import pathlib, types
from experiments import cold_start, iterations, memory_check, policies, state
from experiments.configs import quickstart
from kernels_eval import problem_cards
from kernels_eval.schema import Evaluation, Phase, Status
from leap_jax import fitting, metrics, problems, rollout, sharding

folder = pathlib.Path(sys.argv[3])
config = quickstart.get_config()
config.warm_start.num_conversations = 3
config.policy.lora_rank, config.policy.dtype = 2, "bfloat16"

class Pool:
  num_evaluated, num_restarts = 0, 0

  def evaluate(self, requests, on_result=None):
    return [
      Evaluation(id=r.id, problem=r.problem, status=Status.WRONG_ANSWER,
                 phase=Phase.JUDGE, message="no", executor="fake")
      for r in requests]

# Conversations are judged once; a later start finds them, in every process.
drawn = problem_cards.compositions(0, 40, (1, 2), 0.3)
names = problems.of_split(drawn, "train", 3)
pool = hosts.SharedPool(Pool())
made = cold_start.for_run(config, folder, names, pool)
assert len(made) == 3
assert cold_start.for_run(config, folder, names, pool=None) == made

# The least memory is everybody's.
fitting.limit_bytes = lambda device, arguments=(): (7 - me) * 2**30
assert memory_check.present_bytes() == 6 * 2**30

# Weights go to both in the dtype that is kept, and to neither as a whole.
mesh = sharding.make_mesh()
opened = policies.open_source(config)
table = policies.read(config, opened, mesh)["embedding"]["embedding"]
assert table.dtype == "bfloat16" and len(table.sharding.device_set) == 2
(part,) = table.addressable_shards
assert part.data.size == table.size // 2
whole = opened.read()["embedding"]["embedding"]
np.testing.assert_array_equal(hosts.to_host(table), whole.astype("bfloat16"))

# Time is the first one's: both stop at the same iteration. The second one's
# clock says that all of it took 0.3 s a step. Of the first one's, 0.4 s are a
# wait for the second one, which compiles.
config.run.max_training_s, config.run.num_iterations = 1.0, 9
gathered = types.SimpleNamespace(
  rollouts=None, stats=rollout.Stats(), rounds=(), num_faults=0)
values = {name: 0.0 for name in metrics.METRICS}
values["seconds/total"] = 0.3 if me else 1.0
values["compile/seconds"] = 0.4 if me else 0.0
iterations.iterate = lambda run, programs, at, index: (at, gathered, values)
saved = []
run = types.SimpleNamespace(
  config=config, workdir=folder, mesh=mesh, base=None, say=print,
  writer=types.SimpleNamespace(write=lambda *_: None),
  checkpoints=types.SimpleNamespace(save=lambda step, *_: saved.append(step)),
  bar=lambda *_: state.Run.bar(None, *_))
config.run.save_trajectories, config.run.checkpoint_every = False, 100
config.eval.every = 0
progress = state.Progress()
iterations.train(run, None, None, None, progress)
assert progress.iterations == 2 and saved == [2], (progress.iterations, saved)
assert progress.training_seconds == 1.2
print("done")
"""


def test_two_processes_begin_and_end_alike(tmp_path):
  two_processes.run(_PROGRAM, str(tmp_path))
