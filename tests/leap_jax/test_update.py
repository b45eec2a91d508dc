"""The update: micro-batches, devices, empty batches, precision."""

import dataclasses
import functools
import os
import pathlib
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import (
  batching,
  compilations,
  fitting,
  losses,
  optimizer,
  update,
)
from leap_jax.models import transformer, whole_rows


def make_tx(learning_rate=1e-3):
  return optimizer.make_optimizer(
    learning_rate=learning_rate,
    warmup_steps=0,
    total_steps=None,
    final_fraction=1.0,
    max_grad_norm=1.0,
    weight_decay=0.0,
    b1=0.9,
    b2=0.95,
  )


POLICY_LOSS = update.make_policy_loss(
  temperature=0.8, clip_low=0.2, clip_high=0.28, kl_coef=0.0
)


@functools.partial(jax.jit, static_argnums=0)
def sampled_logprobs(model, params, tokens):
  """[1, L] ids, padded on the right -> [L - 1] log-probabilities."""
  hidden = whole_rows.hidden_states(model, params, tokens[:, :-1])
  logits = transformer.logits_of(model, params, hidden)
  return losses.token_logprobs(logits, tokens[:, 1:], temperature=0.8)[0]


def random_rows(model, params, lengths, seed=0):
  """Rows as the sampler would leave them: log-probabilities of `params`."""
  rng = np.random.default_rng(seed)
  rows = []
  for n in lengths:
    tokens = rng.integers(1, model.vocab_size, n).astype(np.int32)
    own = np.arange(n) >= n // 2
    padded = np.zeros((1, 16), np.int32)  # one shape: compiled once
    padded[0, :n] = tokens
    logprobs = sampled_logprobs(model, params, padded)[: n - 1]
    behavior = np.where(own, np.append(0.0, logprobs), 0.0)
    rows.append(
      batching.Row(
        tokens,
        own,
        (own / 40).astype(np.float32),
        np.where(own, rng.normal(), 0).astype(np.float32),
        behavior.astype(np.float32),
      )
    )
  return rows


def gradient(model, params, rows, specs, loss_fn=POLICY_LOSS):
  buckets, _ = batching.pack_rows(rows, specs, 16)
  run = jax.jit(lambda p, b: update.accumulate(model, loss_fn, p, b))
  return jax.device_get(run(params, buckets))


def assert_same(a, b, atol=1e-6):
  chex.assert_trees_all_close(a, b, atol=atol, rtol=0)


LENGTHS = (5, 9, 12, 3, 16, 7, 11, 4)


@pytest.mark.covers("P02")
def test_how_rows_are_split_changes_nothing(model, params):
  rows = random_rows(model, params, LENGTHS)
  one = gradient(model, params, rows, (batching.BucketSpec(16, 8),))
  eight = gradient(model, params, rows, (batching.BucketSpec(16, 1),))
  buckets = gradient(
    model,
    params,
    rows,
    (batching.BucketSpec(8, 3), batching.BucketSpec(16, 2)),
  )
  for other in (eight, buckets):
    assert_same(one[0], other[0])
    np.testing.assert_allclose(one[1].loss, other[1].loss, atol=1e-6)
    assert one[1].num_tokens == other[1].num_tokens


@pytest.mark.covers("P03")
def test_at_the_samplers_parameters_nothing_is_clipped(model, params):
  rows = random_rows(model, params, LENGTHS)
  _, sums = gradient(model, params, rows, (batching.BucketSpec(16, 4),))
  assert sums.clipped == 0
  assert sums.max_log_ratio < 1e-4
  assert sums.num_tokens == sum(row.own.sum() for row in rows)


def test_what_the_log_ratio_metrics_look_at(model, params):
  # One own token without weight is off by 3 nats, one with weight by 1.
  (row,) = random_rows(model, params, (10,))
  first, last = np.flatnonzero(row.own)[[0, -1]]
  row.weights[first] = 0
  row.behavior_logprobs[first] -= 3.0
  row.behavior_logprobs[last] -= 1.0
  _, sums = gradient(model, params, [row], (batching.BucketSpec(16, 1),))
  # Mean and percentile: tokens with weight. Maximum: all own tokens.
  assert sums.num_tokens == row.own.sum() - 1
  np.testing.assert_allclose(sums.abs_log_ratio, 1.0, atol=1e-3)
  assert sums.log_ratio_histogram.sum() == sums.num_tokens
  np.testing.assert_allclose(sums.max_log_ratio, 3.0, atol=1e-3)


@pytest.mark.covers("P08")
def test_environment_tokens_have_exactly_no_gradient(model, params):
  # Tokens outside of the mask are no targets: what the row holds for them
  # (another id at the end, NaN log-probabilities) changes nothing.
  (row,) = random_rows(model, params, (10,))
  is_last = np.arange(10) == 9
  own = row.own & ~is_last
  weights = np.where(own, row.weights, 0).astype(np.float32)
  replace = lambda **changes: dataclasses.replace(
    row, own=own, weights=weights, **changes
  )
  clean = replace()
  soiled = replace(
    tokens=np.where(is_last, 1, row.tokens).astype(np.int32),
    behavior_logprobs=np.where(own, row.behavior_logprobs, np.nan).astype(
      np.float32
    ),
  )
  spec = (batching.BucketSpec(16, 1),)
  assert_same(
    gradient(model, params, [clean], spec),
    gradient(model, params, [soiled], spec),
    atol=0,
  )


@pytest.mark.covers("P11")
def test_an_empty_batch_gives_zero_and_no_nan(model, params):
  grads, sums = gradient(model, params, [], (batching.BucketSpec(16, 4),))
  assert all((leaf == 0).all() for leaf in jax.tree.leaves(grads))
  assert all(np.isfinite(x).all() for x in sums)


def test_update_compiles_once_and_donates(model, params):
  rows = random_rows(model, params, LENGTHS)
  specs = (batching.BucketSpec(16, 4),)
  tx = make_tx()
  copy = lambda: jax.tree.map(jnp.array, params)
  state = update.init_state(copy(), tx)
  buckets, _ = batching.pack_rows(rows, specs, 16)
  step = fitting.compile_update(
    lambda _: update.make_update(model, tx, POLICY_LOSS),
    ("none",),
    state,
    buckets,
    advice="take a smaller model",
  )
  with compilations.counted() as compiled:
    for count in (8, 3, 1):
      before = state
      buckets, _ = batching.pack_rows(rows[:count], specs, 16)
      state, values = step(state, buckets)
      assert before.params["embedding"]["embedding"].is_deleted()
      assert bool(values["finite"]) and bool(values["changed"])
  assert compiled.count == 0
  assert int(state.step) == 3


def test_any_number_of_rows_is_traced_once(model, params):
  specs = (batching.BucketSpec(8, 3), batching.BucketSpec(16, 2))
  chex.clear_trace_counter()

  @jax.jit
  @chex.assert_max_traces(n=1)
  def run(params, buckets):
    return update.accumulate(model, POLICY_LOSS, params, buckets)

  for count in (0, 1, 5, 8):
    rows = random_rows(model, params, LENGTHS[:count])
    buckets, _ = batching.pack_rows(rows, specs, 16)
    _, sums = run(params, buckets)
    assert sums.num_tokens == sum(row.own.sum() for row in rows)


def test_a_gradient_that_is_not_finite_leaves_the_state(model, params):
  rows = random_rows(model, params, LENGTHS)
  rows[2].advantages[rows[2].own] = np.inf
  tx = make_tx()
  state = update.init_state(jax.tree.map(jnp.array, params), tx)
  buckets, _ = batching.pack_rows(rows, (batching.BucketSpec(16, 4),), 16)
  new, values = jax.jit(update.make_update(model, tx, POLICY_LOSS))(
    state, buckets
  )
  assert not bool(values["finite"])
  assert_same(new.params, params, atol=0)
  assert int(new.step) == 0


# -------------------------------------------- bfloat16 (keras-hub #2629)


@pytest.mark.covers("P05")
def test_small_steps_are_not_rounded_away(model, params):
  tx = make_tx(learning_rate=1e-5)
  state = update.init_state(jax.tree.map(jnp.array, params), tx)
  for leaf in jax.tree.leaves(state):
    assert leaf.dtype in (jnp.float32, jnp.int32)
  rows = random_rows(model, params, LENGTHS)
  buckets, _ = batching.pack_rows(rows, (batching.BucketSpec(16, 8),), 16)
  new, values = jax.jit(update.make_update(model, tx, POLICY_LOSS))(
    state, buckets
  )
  assert bool(values["changed"])
  ratio = float(values["update_norm"] / values["weight_norm"])
  assert 1e-8 < ratio < 1e-3


@pytest.mark.covers("P05")
def test_an_update_that_moves_nothing_says_so(model, params):
  # Steps below half a spacing of float32, as 1e-5 would be for bfloat16.
  tx = make_tx(learning_rate=1e-20)
  ones = jax.tree.map(jnp.ones_like, params)
  state = update.init_state(ones, tx)
  rows = random_rows(model, params, LENGTHS)
  buckets, _ = batching.pack_rows(rows, (batching.BucketSpec(16, 8),), 16)
  _, values = jax.jit(update.make_update(model, tx, POLICY_LOSS))(
    state, buckets
  )
  assert bool(values["finite"]) and float(values["grad_norm"]) > 0
  assert not bool(values["changed"])


# --------------------------------------- batches and devices (verl #473)

_ON_EIGHT_DEVICES = """
import dataclasses
import jax, numpy as np
jax.config.update("jax_platforms", "cpu")
from leap_jax import batching, sharding, update
from leap_jax.models import sizes, transformer, whole_rows
from tests.leap_jax.test_update import POLICY_LOSS, random_rows
model = dataclasses.replace(sizes.model_config("micro", 64), num_kv_heads=2)
params = transformer.init(model, jax.random.key(0))
rows = random_rows(model, params, [5, 14] * 5)
one = lambda p, b: update.accumulate(model, POLICY_LOSS, p, b)

def compare(expected, got, num_rows):
  for a, b in zip(jax.tree.leaves(expected[0]), jax.tree.leaves(got[0])):
    np.testing.assert_allclose(a, b, atol=1e-5)
  for name in ("loss", "entropy", "weight", "clipped"):
    a, b = getattr(expected[1], name), getattr(got[1], name)
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
  assert got[1].num_tokens == sum(r.own.sum() for r in rows[:num_rows])

for model_devices, head in ((1, "whole"), (2, "chunked")):
  mesh = sharding.make_mesh(model_devices)
  assert mesh.shape == {"data": 8 // model_devices, "model": model_devices}
  laid = sharding.shard_params(model, mesh, params)
  query = laid["blocks"]["query"]["kernel"]
  # Width over data, heads over model.
  assert query.addressable_shards[0].data.size == query.size // 8
  compute = update.Compute(
    sharding.execution(model, mesh), head, 16, mesh.shape["data"])
  run = jax.jit(lambda p, b: update.accumulate(
    model, POLICY_LOSS, p, b, compute=compute))
  # 3 rows a micro-batch do not divide over the devices.
  for num_rows in (10, 1):
    spec = (batching.BucketSpec(16, 3),)
    buckets, _ = batching.pack_rows(rows[:num_rows], spec, 10)
    many = tuple(sharding.shard_rows(mesh, b) for b in buckets)
    assert many[0].tokens.shape[1] == 8 // model_devices
    compare(jax.jit(one)(params, buckets), jax.device_get(run(laid, many)),
            num_rows)
print("equal")
"""


@pytest.mark.covers("P12")
def test_any_number_of_rows_on_eight_devices():
  done = subprocess.run(
    [sys.executable, "-c", _ON_EIGHT_DEVICES],
    env={
      **os.environ,
      "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
      "PYTHONPATH": str(pathlib.Path(__file__).parents[2]),
    },
    capture_output=True,
    text=True,
  )
  assert done.stdout.strip() == "equal", done.stderr[-2000:]


def test_devices_that_do_not_divide_are_refused():
  from leap_jax import sharding

  with pytest.raises(sharding.MeshError, match="model_devices=3 does not"):
    sharding.make_mesh(3)


def test_a_log_ratio_beyond_all_bins_is_still_a_number():
  # 3 of 4 tokens are off by more than 10 nats: the quantile says 10, since
  # infinities are left out of the metrics.
  gap = jnp.asarray([0.1, 15.0, 40.0, 1e3])
  histogram = update._histogram(gap, jnp.ones(4, bool))
  np.testing.assert_allclose(update._quantile(histogram, 0.95), 10.0, rtol=1e-5)
