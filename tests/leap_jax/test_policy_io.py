"""Policies as folders."""

import json

import chex
import jax
import numpy as np
import pytest

from leap_jax import policy_io


@pytest.fixture
def folder(tmp_path, model, params, vocabulary):
  policy_io.save(tmp_path, model, params, vocabulary, np.float32)
  return tmp_path


def test_a_policy_comes_back(folder, model, params, vocabulary):
  config, got, tokenizer = policy_io.load(folder)
  assert config == model
  chex.assert_trees_all_equal(got, params)
  assert tokenizer.encode("if (i < n)") == vocabulary.encode("if (i < n)")


def test_what_older_folders_say_about_execution_is_ignored(
  tmp_path, model, params, vocabulary
):
  policy_io.save(tmp_path, model, params, vocabulary, np.float32)
  path = tmp_path / "policy.json"
  settings = json.loads(path.read_text())
  path.write_text(json.dumps({**settings, "remat": "a choice of long ago"}))
  assert policy_io.load(tmp_path)[0] == model


def test_half_precision_rounds_and_loads_as_float32(
  tmp_path, model, params, vocabulary
):
  policy_io.save(tmp_path, model, params, vocabulary, np.float16)
  _, got, _ = policy_io.load(tmp_path)
  chex.assert_trees_all_equal_dtypes(got, params)
  chex.assert_trees_all_close(got, params, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
  "name", ["policy.json", "tokenizer.json", "weights.safetensors"]
)
def test_a_missing_or_damaged_file_is_named(folder, name):
  path = folder / name
  raw = path.read_bytes()
  path.write_bytes(raw[: len(raw) // 2])
  with pytest.raises(
    policy_io.PolicyError, match="damaged policy|is truncated"
  ):
    policy_io.load(folder)
  path.unlink()
  with pytest.raises(policy_io.PolicyError, match=f"{name} is missing"):
    policy_io.load(folder)


def test_sizes_that_do_not_fit_the_weights_are_named(folder):
  path = folder / "policy.json"
  settings = json.loads(path.read_text())
  path.write_text(json.dumps({**settings, "mlp_width": 99}))
  with pytest.raises(
    policy_io.PolicyError, match=r"blocks/\w+/kernel has shape"
  ):
    policy_io.load(folder)
  path.write_text(json.dumps({**settings, "widht": 99}))
  with pytest.raises(policy_io.PolicyError, match="widht"):
    policy_io.load(folder)


def test_the_shipped_policy_loads_and_is_small():
  config, params, tokenizer = policy_io.load(policy_io.SHIPPED)
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(params))
  assert tokenizer.vocab_size == config.vocab_size
  size = sum(p.stat().st_size for p in policy_io.SHIPPED.iterdir())
  assert size <= 5 * 2**20
