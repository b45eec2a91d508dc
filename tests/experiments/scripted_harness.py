"""A run of the micro policy whose harness says what a test wants."""

import gzip
import json
import pathlib

import jax
import jax.numpy as jnp
import pytest

from experiments import (
  programs,
)
from experiments.configs import base
from experiments.state import Run
from kernels_eval.schema import Status
from leap_jax import (
  batching,
  compilations,
  history,
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

  def evaluate(self, requests, on_result=lambda _: None):
    requests = list(requests)  # of an inbox: when its turn has been sampled
    self.batches.append([r.id for r in requests])
    self.num_evaluated += len(requests)
    verdicts = [self.verdict(r, self.decide(r)) for r in requests]
    for verdict in verdicts:
      on_result(verdict)
    return verdicts


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


def read_conversations(folder):
  """File name -> conversations."""
  found = {}
  for path in sorted(folder.glob("trajectories/*.jsonl.gz")):
    with gzip.open(path, "rt") as file:
      found[path.name] = [json.loads(line) for line in file]
  return found
