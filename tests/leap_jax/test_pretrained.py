"""Hugging Face folders: the same logits as transformers, there and back; every
fault is one line."""

import json
import pathlib

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from leap_jax import policy_io
from leap_jax.chat_format import ChatOverrides
from leap_jax.models import transformer, whole_rows
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import (
  assemble,
  hf_config,
  hf_export,
  safetensors_file,
  tensor_names,
)
from leap_jax.types import Message
from tests.golden import tiny_models
from tests.leap_jax import hf_folders

GOLDEN = json.loads(
  (
    pathlib.Path(__file__).parents[1] / "golden" / "transformers_logits.json"
  ).read_text()
)


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
def test_logits_are_those_of_transformers(tmp_path, family):
  golden = GOLDEN[family]
  config = hf_config.model_config(golden["config"])
  hf_folders.write_weights(
    tmp_path / "model.safetensors", golden["shapes"], family
  )
  leaves = tensor_names.leaves(config, tensor_names.hugging_face(config))
  params = assemble.assemble(leaves, safetensors_file.open_folder(tmp_path))

  @jax.jit
  def logits(params, tokens):
    hidden = whole_rows.hidden_states(config, params, tokens)
    return transformer.logits_of(config, params, hidden)

  got = logits(params, jnp.asarray(tiny_models.TOKENS))
  np.testing.assert_allclose(got, golden["logits"], atol=1e-4)


@pytest.mark.parametrize("family", tiny_models.CONFIGS)
def test_an_exported_policy_comes_back(tmp_path, family):
  golden = GOLDEN[family]
  hf_folders.write_model(
    tmp_path / "in", golden["config"], golden["shapes"], family
  )
  config, params, tokenizer = policy_io.load(tmp_path / "in")
  assert config.padding_ids == 4
  out = tmp_path / "out"
  hf_export.export(
    out, config, params, tokenizer, dtype="float32", max_shard_bytes=9_000
  )
  assert len(list(out.glob("model-*-of-*.safetensors"))) > 2
  again, same, tokenizer_again = policy_io.load(out)
  assert again == config
  chex.assert_trees_all_equal(same, params)
  assert tokenizer_again.chat == tokenizer.chat
  # In one file, half the bytes; the shards of before are gone.
  hf_export.export(out, config, params, tokenizer, dtype="bfloat16")
  assert [p.name for p in out.glob("model*")] == ["model.safetensors"]
  _, rounded, _ = policy_io.load(out)
  chex.assert_trees_all_close(rounded, params, rtol=2**-8)


def test_a_run_keeps_the_format_of_published_weights(tmp_path):
  golden = GOLDEN["qwen2"]
  hf_folders.write_model(
    tmp_path / "in", golden["config"], golden["shapes"], "qwen2"
  )
  config, params, tokenizer = policy_io.load(
    tmp_path / "in", ChatOverrides(system_prompt="Write kernels.")
  )
  policy_io.save(tmp_path / "run", config, params, tokenizer, np.float32)
  again, same, tokenizer_again = policy_io.load(tmp_path / "run")
  assert again == config
  chex.assert_trees_all_equal(same, params)
  message = Message("user", "Add <|im_end|> two")
  assert tokenizer_again.chat == tokenizer.chat
  assert tokenizer_again.opening(message) == tokenizer.opening(message)
  text = tokenizer.inner.decode(
    tokenizer.opening(message), skip_special_tokens=False
  )
  assert "Write kernels." in text


def test_a_file_of_the_safetensors_library_reads_the_same(tmp_path):
  arrays = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.asarray([1.5, -2.0], np.float16),
  }
  path = tmp_path / "model.safetensors"
  safetensors.numpy.save_file(arrays, str(path))
  source = safetensors_file.open_file(path)
  assert source.shapes == {"a": (2, 3), "b": (2,)}
  for name, array in arrays.items():
    np.testing.assert_array_equal(source.read(name), array)


# ------------------------------------------------------------------- faults


@pytest.fixture
def folder(tmp_path):
  golden = GOLDEN["qwen3"]
  hf_folders.write_model(tmp_path, golden["config"], golden["shapes"], "qwen3")
  return tmp_path


def refused(folder, text):
  with pytest.raises(PolicyError, match=text) as caught:
    policy_io.load(folder)
  assert "\n" not in str(caught.value)


def change_config(folder, **fields):
  path = folder / "config.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
  "fields,text",
  [
    (
      {"architectures": ["MixtralForCausalLM"]},
      "MixtralForCausalLM is not supp",
    ),
    ({"architectures": None}, "architecture none is not supported"),
    ({"quantization_config": {"quant_method": "fp8"}}, "quantized by 'fp8'"),
    ({"hidden_act": "relu"}, "hidden_act='relu' is not supported"),
    (
      {"rope_parameters": {"rope_type": "longrope", "factor": 4.0}},
      "rope scaling 'longrope' is not supported",
    ),
    (
      {"rope_parameters": {"rope_type": "linear"}},
      "field 'factor' is missing",
    ),
    (
      {
        "use_sliding_window": True,
        "layer_types": None,
        "max_window_layers": 0,
        "sliding_window": None,
      },
      "sliding_window=None must be a number of tokens, since layer 0",
    ),
    (
      {"num_hidden_layers": 4, "layer_types": None},
      r"layers\.3\.\S+ is missing",
    ),
    (
      {"num_hidden_layers": 2, "layer_types": None},
      r"belong to no part of the model, such as model.layers\.2\.",
    ),
    (
      {"intermediate_size": 25},
      r"_proj.weight has shape \[\d+, \d+\], the mod",
    ),
    ({"vocab_size": 200}, "the tokenizer has 298 ids, the model 200"),
    ({"tie_word_embeddings": True}, "lm_head.weight is there and differs"),
  ],
)
def test_a_model_that_is_not_ours_is_named(folder, fields, text):
  change_config(folder, **fields)
  refused(folder, text)


def test_a_truncated_file_is_named(folder):
  path = folder / "model.safetensors"
  whole = path.read_bytes()
  path.write_bytes(whole[:-100])
  refused(folder, "model.safetensors is truncated: .* ends at byte")
  path.write_bytes(whole[:50])
  refused(folder, "is truncated or no safetensors file")
  path.write_bytes(b"")
  refused(folder, "is truncated or no safetensors file")
  path.unlink()
  refused(folder, "no weights in")


def test_a_missing_or_foreign_shard_is_named(folder):
  config, params, tokenizer = policy_io.load(folder)
  out = folder / "out"
  hf_export.export(
    out, config, params, tokenizer, dtype="float32", max_shard_bytes=20_000
  )
  shards = sorted(out.glob("model-*.safetensors"))
  shards[1].rename(out / "elsewhere")
  refused(out, f"shard {shards[1].name} is missing")
  shards[1].write_bytes(shards[0].read_bytes())
  refused(out, "the shards do not belong together")


@pytest.mark.parametrize("index", ["as written", "damaged", "of a lost shard"])
def test_one_file_is_read_before_an_index_and_that_is_said(folder, index):
  _, params, tokenizer = policy_io.load(folder)
  assert policy_io.open_policy(folder).notes == ()
  single = (folder / "model.safetensors").read_bytes()
  config = policy_io.open_policy(folder).config
  moved = jax.tree.map(lambda x: x + 1, params)
  hf_export.export(
    folder, config, moved, tokenizer, dtype="float32", max_shard_bytes=20_000
  )
  opened = policy_io.open_policy(folder)
  assert opened.notes == ()
  chex.assert_trees_all_equal(opened.read(), moved)
  (folder / "model.safetensors").write_bytes(single)
  if index == "damaged":
    (folder / "model.safetensors.index.json").write_text("{")
  if index == "of a lost shard":
    min(folder.glob("model-*.safetensors")).unlink()
  opened = policy_io.open_policy(folder)
  (line,) = opened.notes
  assert line.startswith(f"{folder}: model.safetensors is read, not the shards")
  chex.assert_trees_all_equal(opened.read(), params)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_named(folder, bad):
  golden, name = GOLDEN["qwen3"], "model.layers.1.mlp.up_proj.weight"

  def damage(other, array):
    if other == name:
      array[3, 5] = bad
    return array

  config = json.loads((folder / "config.json").read_text())
  shapes = golden["shapes"] | {
    n: [config["vocab_size"], 16]
    for n in ("model.embed_tokens.weight", "lm_head.weight")
  }
  hf_folders.write_weights(
    folder / "model.safetensors", shapes, "qwen3", change=damage
  )
  refused(folder, f"{name} holds 1 values that are not finite")


def test_eight_bit_weights_are_refused_by_name(folder):
  path = folder / "model.safetensors"
  header = {
    "w": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]},
  }
  raw = json.dumps(header).encode()
  path.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(4))
  refused(folder, "w is stored as F8_E4M3; weights must be one of")


def test_a_tokenizer_of_another_model_is_named(folder):
  (folder / "generation_config.json").write_text('{"eos_token_id": [2, 9999]}')
  refused(
    folder, "ends answers with id 9999, which the tokenizer does not have"
  )
  (folder / "tokenizer.json").write_text("{")
  refused(folder, "tokenizer.json is damaged")
  (folder / "tokenizer.json").unlink()
  refused(folder, "tokenizer.json is missing")


def test_a_special_token_behind_the_embedding_does_no_harm(folder):
  from tokenizers import AddedToken

  inner = hf_folders.vocabulary()
  rows = json.loads((folder / "config.json").read_text())["vocab_size"]
  spare = [f"<unused{i}>" for i in range(rows - inner.get_vocab_size())]
  inner.add_special_tokens([*spare, "<image>"])  # the last one has no row
  hf_folders.write_tokenizer(folder, inner)
  config, _, tokenizer = policy_io.load(folder)
  assert config.padding_ids == 0 and tokenizer.vocab_size == rows + 1
  assert max(tokenizer.encode("an <image>")) < rows
  inner.add_tokens([AddedToken("word", special=False)])
  hf_folders.write_tokenizer(folder, inner)
  refused(folder, f"the tokenizer has {rows + 2} ids, the model {rows}")


def test_a_model_without_chat_template_is_named_or_gets_one(folder):
  hf_folders.write_tokenizer(folder, hf_folders.vocabulary(), template=None)
  refused(folder, "holds no chat template")
  overrides = ChatOverrides(template=hf_folders.CHATML)
  assert policy_io.open_policy(folder, overrides).tokenizer.chat.opening_ids


def test_nothing_there_is_named(tmp_path):
  refused(tmp_path / "nowhere", "no policy in")
  refused(tmp_path, "policy.json is missing, .* config.json of a Hugging Face")


def test_a_decoder_that_transformers_has_not_is_refused(model):
  import dataclasses

  with pytest.raises(PolicyError, match="no architecture of transformers"):
    odd = dataclasses.replace(model, embedding_scale=3.0)
    hf_export.config_record(odd, (1,), "float32")
