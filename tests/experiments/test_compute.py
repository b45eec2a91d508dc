"""What of a policy is trained, and what the sampler gets of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import compute, programs
from experiments.bench import bare_run
from experiments.config_file import UsageError
from experiments.configs import base
from leap_jax import policy_io, sharding, update
from leap_jax.pretrained import hf_export


def parts(model, params, **policy):
  """(training, policy of a fresh state, state) under these settings."""
  config = base.get_config()
  for name, value in policy.items():
    config.policy[name] = value
  mesh = sharding.make_mesh()
  training = compute.split_policy(config, model, mesh, params)
  run = bare_run.make(config, model, mesh, training, say=lambda text: None)
  tx = programs.make_optimizer(config)
  state = sharding.shard_params(
    model, mesh, update.init_state(training.params, tx)
  )
  return training, compute.compile_policy(run, state)(state), state


def dtypes(tree):
  return {str(x.dtype) for x in jax.tree.leaves(tree)}


def test_in_float32_the_sampler_has_the_trainers_arrays(model, params):
  training, policy, state = parts(model, params)
  assert training.frozen is None
  assert policy is state.params


def test_in_16_bits_masters_stay_float32(model, params):
  training, policy, state = parts(model, params, dtype="bfloat16")
  assert dtypes(state.params) == {"float32"}
  assert dtypes(policy) == {"bfloat16"}
  assert compute.exported(training.trained, None, state) is state.params
  table = policy["embedding"]["embedding"]
  np.testing.assert_array_equal(
    table, params["embedding"]["embedding"].astype(jnp.bfloat16)
  )


def test_adapters_are_all_that_is_trained(model, params):
  training, policy, state = parts(
    model, params, dtype="bfloat16", lora_rank=2, lora_targets=("value",)
  )
  assert set(state.params) == {"value"} and dtypes(state.params) == {"float32"}
  assert dtypes(training.frozen) == dtypes(policy) == {"bfloat16"}
  jax.tree.map(np.testing.assert_array_equal, policy, training.frozen)


def test_adapters_are_merged_into_what_a_run_leaves(
  model, params, vocabulary, tmp_path
):
  training, _, state = parts(
    model, params, lora_rank=2, lora_alpha=6.0, lora_targets=("value", "down")
  )
  rng = np.random.default_rng(0)
  adapters = jax.tree.map(
    lambda x: rng.standard_normal(x.shape, np.float32), state.params
  )
  state = state._replace(params=adapters)
  merged = compute.exported(training.trained, training.frozen, state)
  policy_io.save(tmp_path / "policy", model, merged, vocabulary, np.float32)
  hf_export.export(
    tmp_path / "exported",
    *policy_io.load(tmp_path / "policy"),
    dtype="float32",
  )
  _, found, _ = policy_io.load(tmp_path / "exported")
  expected = jax.tree.map(np.array, params)
  for name, adapter in adapters.items():
    expected["blocks"][name]["kernel"] += 3.0 * np.stack(
      [a @ b for a, b in zip(adapter["lora_a"], adapter["lora_b"], strict=True)]
    )
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
    found,
    expected,
  )


def test_adapters_go_on_from_their_own_base_only(model, params):
  config = base.get_config()
  config.policy.lora_rank = 2
  mine = compute.base_record(config, params)
  assert compute.base_record(config, None) is None
  other = compute.base_record(config, jax.tree.map(lambda x: x + 1, params))
  compute.check_base(mine, dict(mine))
  for before in (other, None):
    with pytest.raises(UsageError, match="another --workdir"):
      compute.check_base(mine, before)


def test_types_that_differ_are_told():
  config = base.get_config()
  assert programs.fault_of_dtypes(config) is None
  config.policy.dtype = "bfloat16"
  line = programs.fault_of_dtypes(config)
  assert "policy.dtype=bfloat16" in line and "sampler.dtype=float32" in line


def test_a_pinned_way_that_does_not_fit_is_named():
  # Another way may fit: `auto` would have found it.
  assert "remat=auto (it is none), or lower" in compute._advice("none")
  assert compute._advice("auto") == "lower config.learner.micro_tokens"
