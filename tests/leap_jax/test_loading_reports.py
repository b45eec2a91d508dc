"""What users of other loaders hit, with the repros of their reports."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import policy_io
from leap_jax.models import rope, transformer, whole_rows
from leap_jax.models.rope import Scaling
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import (
  assemble,
  hf_config,
  hf_export,
  safetensors_file,
  tensor_names,
)
from tests.leap_jax import hf_folders
from tests.leap_jax.test_pretrained import GOLDEN

# Four heads of 32 in a model 64 wide.
WIDE_HEADS = {
  "architectures": ["Qwen3ForCausalLM"],
  "vocab_size": 40,
  "hidden_size": 64,
  "intermediate_size": 48,
  "num_hidden_layers": 1,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "head_dim": 32,
  "max_position_embeddings": 128,
  "tie_word_embeddings": True,
}


@pytest.mark.covers("P23")
def test_the_head_size_is_what_the_file_says(tmp_path):
  shapes = {
    "model.embed_tokens.weight": [40, 64],
    "model.norm.weight": [64],
    "model.layers.0.input_layernorm.weight": [64],
    "model.layers.0.post_attention_layernorm.weight": [64],
    "model.layers.0.self_attn.q_proj.weight": [128, 64],
    "model.layers.0.self_attn.k_proj.weight": [64, 64],
    "model.layers.0.self_attn.v_proj.weight": [64, 64],
    "model.layers.0.self_attn.o_proj.weight": [64, 128],
    "model.layers.0.self_attn.q_norm.weight": [32],
    "model.layers.0.self_attn.k_norm.weight": [32],
    "model.layers.0.mlp.gate_proj.weight": [48, 64],
    "model.layers.0.mlp.up_proj.weight": [48, 64],
    "model.layers.0.mlp.down_proj.weight": [64, 48],
  }
  path = tmp_path / "model.safetensors"
  config = hf_config.model_config(WIDE_HEADS)
  leaves = tensor_names.leaves(config, tensor_names.hugging_face(config))

  def read():
    return assemble.assemble(leaves, safetensors_file.open_folder(tmp_path))

  hf_folders.write_weights(path, shapes, "qwen3")
  hidden = whole_rows.hidden_states(config, read(), jnp.asarray([[1, 2, 3]]))
  assert hidden.shape == (1, 3, 64) and np.isfinite(hidden).all()
  # As a loader that divides would have it.
  shapes["model.layers.0.self_attn.q_proj.weight"] = [64, 64]
  hf_folders.write_weights(path, shapes, "qwen3")
  wrong = r"q_proj.weight has shape \[64, 64\], the model's is \[128, 64\]"
  with pytest.raises(PolicyError, match=wrong):
    read()


@pytest.mark.covers("P24")
@pytest.mark.parametrize("max_shard_bytes", [10**9, 9_000])
def test_a_tied_head_needs_no_tensor_of_its_own(tmp_path, max_shard_bytes):
  golden = GOLDEN["qwen2"]
  assert "lm_head.weight" not in golden["shapes"]
  hf_folders.write_model(
    tmp_path / "in", golden["config"], golden["shapes"], "qwen2"
  )
  config, params, tokenizer = policy_io.load(tmp_path / "in")
  out = tmp_path / "out"
  hf_export.export(
    out,
    config,
    params,
    tokenizer,
    dtype="float32",
    max_shard_bytes=max_shard_bytes,
  )
  assert "lm_head.weight" not in safetensors_file.open_folder(out).shapes
  _, params, _ = policy_io.load(out)
  hidden = jnp.asarray(np.random.default_rng(0).standard_normal((1, 3, 16)))
  table = params["embedding"]["embedding"]
  got = transformer.logits_of(config, params, hidden)[..., : config.num_ids]
  np.testing.assert_allclose(
    got, (hidden @ table.T)[..., : config.num_ids], atol=1e-6
  )
  # Lookup and head give one gradient: a row that is only looked up has one,
  # and so has one that is only a candidate.
  loss = lambda p: transformer.logits_of(
    config, p, whole_rows.hidden_states(config, p, jnp.asarray([[7]]))
  )[0, 0, 9]
  gradient = jax.jit(jax.grad(loss))(params)
  assert set(gradient) == {"embedding", "blocks", "final_norm"}
  moved = np.flatnonzero(np.abs(gradient["embedding"]["embedding"]).max(-1))
  assert moved.tolist() == [7, 9]


def _file(path, dtype, raw):
  entry = {"dtype": dtype, "shape": [2], "data_offsets": [0, len(raw)]}
  header = json.dumps({"w": entry}).encode()
  path.write_bytes(len(header).to_bytes(8, "little") + header + raw)
  return path


@pytest.mark.covers("P25")
def test_sixteen_bits_are_read_and_eight_are_refused(tmp_path):
  path = _file(tmp_path / "a", "BF16", bytes.fromhex("803F40C0"))
  assert safetensors_file.open_file(path).read("w").tolist() == [1.0, -3.0]
  path = _file(tmp_path / "b", "F16", bytes.fromhex("003C00C2"))
  assert safetensors_file.open_file(path).read("w").tolist() == [1.0, -3.0]
  path = _file(tmp_path / "c", "F8_E4M3", bytes.fromhex("3838"))
  with pytest.raises(PolicyError, match="w is stored as F8_E4M3"):
    safetensors_file.open_file(path)


def _published(factor):
  """Llama 3.1's rule, wave by wave."""
  out = []
  for i in range(32):
    frequency = 500_000.0 ** (-2 * i / 64)
    wave = 2 * math.pi / frequency
    if wave < 8192 / 4:
      out.append(frequency)
    elif wave > 8192 / 1:
      out.append(frequency / factor)
    else:
      smooth = (8192 / wave - 1) / (4 - 1)
      out.append((1 - smooth) * frequency / factor + smooth * frequency)
  return np.asarray(out)


@pytest.mark.covers("P26")
@pytest.mark.parametrize("spelling", ["type", "rope_type"])
def test_the_rotary_factor_is_what_the_file_says(spelling):
  scaling = {
    spelling: "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
  }
  base = WIDE_HEADS | {
    "architectures": ["LlamaForCausalLM"],
    "head_dim": 64,
    "rope_theta": 500_000.0,
  }
  found = {}
  for factor in (8.0, 32.0):
    record = base | {"rope_scaling": scaling | {"factor": factor}}
    config = hf_config.model_config(record)
    found[factor] = rope.frequencies(64, config.rope_theta, config.rope_scaling)
    np.testing.assert_allclose(found[factor], _published(factor), rtol=1e-6)
  differ = ~np.isclose(found[8.0], found[32.0], rtol=1e-6)
  assert differ.sum() == 17
  np.testing.assert_allclose(found[8.0][-1] / found[32.0][-1], 4.0, rtol=1e-5)
  assert found[8.0][0] == rope.frequencies(64, 5e5, Scaling())[0]
  with pytest.raises(PolicyError, match="rope scaling 'dynamic' is not supp"):
    record = base | {"rope_scaling": {spelling: "dynamic", "factor": 2.0}}
    hf_config.model_config(record)
