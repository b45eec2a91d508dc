"""The benchmark of the update: its formula, its rows, its record."""

import dataclasses
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import state
from experiments.bench import __main__ as bench
from experiments.bench import flops, update
from leap_jax.models import sizes


def test_operations_by_hand():
  model = sizes.model_config("micro", 50)  # width 64, 2 layers of 2 heads of 32
  # 6 * 1000 * (3 + 5) + 6 * (50 * 64) * 4 + 6 * (9 + 25) * (2 * 2 * 32)
  got = flops.update_flops(model, 1000, np.asarray([3, 5]), head_tokens=4)
  assert got == 48_000 + 76_800 + 26_112


def test_local_layers_see_their_window():
  model = sizes.model_config("micro", 50)
  local = dataclasses.replace(model, local_layers=(1,), local_window=3)
  lengths = np.asarray([2, 5])
  # One layer of 2 * 2 / 2 + 5 * 5 / 2 scores, one of 2 and 5 * 3 - 3 * 3 / 2.
  assert flops.scores(local, lengths) == 14.5 + 2 + 10.5
  assert flops.scores(model, lengths) == 2 * 14.5


def test_rows_are_those_of_three_turns():
  rows = update.turn_rows(20, 1024, 100, seed=0)
  for row in rows:
    assert 700 < len(row.tokens) <= 1024
    starts = np.flatnonzero(np.diff(np.concatenate([[0], row.own])) == 1)
    assert len(starts) == 3 and starts[0] > 100  # a prompt, three answers
    assert (row.weights[~row.own] == 0).all() and (
      row.weights[row.own] > 0
    ).all()
  share = np.mean([row.own.mean() for row in rows])
  assert 0.4 < share < 0.55


def test_the_command_leaves_a_record(tmp_path):
  arguments = [
    "bench",
    "update",
    "--config=experiments/configs/bench_update_135m.py",
    "--config.policy.size=micro",
    "--config.learner.bucket_tokens=(64,)",
    "--config.rollout.max_context_tokens=64",
    "--config.rollout.max_prompt_tokens=16",
    "--config.rollout.max_new_tokens=32",
    "--config.rollout.num_problems=2",
    "--config.learner.micro_tokens=256",
    "--config.learner.head_tokens=64",
    # The run's own loss, of which this correction leaves nothing.
    "--config.method.correction=mirror_pop",
    "--config.method.mirror_pop_delta=1e-9",
    "--repeats=1",
    f"--out={tmp_path}",
  ]
  assert bench.main(arguments) == bench.EXIT_OK
  (path,) = tmp_path.glob("*.json")
  found = json.loads(path.read_text())
  assert path.name == "update_135m_b16.json"
  assert found["loss"] == 0.0
  assert found["kind"] == "update" and found["compilations"] == 0
  # Nobody has measured what this processor could do.
  assert found["mfu"] is None and found["peak_flops"] is None
  assert found["devices"] == jax.device_count()
  assert found["tokens_per_second"] > 0 and 0 < found["padding_fraction"] < 0.5


def test_an_update_that_is_not_finite_is_one_line():
  values = {"finite": False, "loss": np.nan, "grad_norm": np.inf}
  prepared = types.SimpleNamespace(
    config=None,
    rows=[],
    buckets=(),
    step=lambda train_state, buckets: (train_state, values),
  )
  with pytest.raises(
    state.NonFinite, match="loss nan, gradient norm inf"
  ) as at:
    update.timed(prepared, None, repeats=1)
  assert bench._end_of(at.value)[0] == str(at.value)


def test_a_device_without_memory_is_one_line_and_a_mistake_of_ours_is_not():
  with pytest.raises(jax.errors.JaxRuntimeError) as at:
    jnp.zeros(2**46).block_until_ready()
  assert "no more memory (Out of memory" in bench._end_of(at.value)[0]
  assert bench._end_of(RuntimeError("RESOURCE_EXHAUSTED"))[0] is None


def test_a_step_without_a_tokenizer_is_refused(capsys):
  arguments = [
    "bench",
    "step",
    "--config=experiments/configs/bench_update_135m.py",
    "--config.policy.source=random",
    "--config.warm_start.num_steps=1",
  ]
  assert bench.main(arguments) == bench.EXIT_USAGE
  assert "name a policy with a tokenizer" in capsys.readouterr().err
