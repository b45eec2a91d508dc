"""Files of published policies that are damaged, or of another model: one line
each, before any weights are read."""

import dataclasses
import json
import pathlib

import jax
import numpy as np
import pytest
import safetensors.numpy
import tokenizers

from leap_jax import policy_io
from leap_jax.models import sizes
from leap_jax.policy_error import PolicyError
from leap_jax.policy_source import padding_ids
from leap_jax.pretrained import hf_export
from tests.leap_jax import hf_folders

GOLDEN = json.loads(
  (
    pathlib.Path(__file__).parents[1] / "golden" / "transformers_logits.json"
  ).read_text()
)


def written(folder, family):
  golden = GOLDEN[family]
  hf_folders.write_model(folder, golden["config"], golden["shapes"], family)
  return folder


def change(path, **fields):
  path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def refused(folder, text):
  with pytest.raises(PolicyError, match=text) as caught:
    policy_io.open_policy(folder)
  line = str(caught.value)
  assert "\n" not in line and line.count(str(folder)) == 1, line


LINEAR = {"rope_type": "linear", "rope_theta": 1e4}
LLAMA3 = {
  "rope_type": "llama3",
  "factor": 8.0,
  "low_freq_factor": 1.0,
  "high_freq_factor": 4.0,
}


@pytest.mark.parametrize(
  "fields, text",
  [
    *(
      ({name: value}, f"{name}=.* must be an integer above 0")
      for name, values in {
        "num_attention_heads": (None, 0, "4", True, 2.0),
        "num_hidden_layers": (0, -1, [3]),
        "vocab_size": (None,),
        "max_position_embeddings": (None,),
        "head_dim": (0, "8"),
      }.items()
      for value in values
    ),
    ({"rms_norm_eps": None}, "rms_norm_eps=None must be a number above 0"),
    ({"rms_norm_eps": 0}, "rms_norm_eps=0 must be a number above 0"),
    ({"num_key_value_heads": 3}, "num_kv_heads=3 must divide num_heads"),
    ({"head_dim": 5}, "head_size=5 must be even"),
    ({"rope_parameters": [1]}, r"rope_parameters=\[1\] must be an object"),
    *(
      ({"rope_parameters": LINEAR | {"factor": factor}}, "factor=.* above 0")
      for factor in (None, "x", 0.0, float("inf"))
    ),
    (
      {"rope_parameters": LLAMA3 | {"high_freq_factor": 1.0}},
      "low_freq_factor=1 must be below high_freq_factor=1",
    ),
    (
      {"rope_parameters": {"rope_type": "default", "rope_theta": 0}},
      "rope_theta=0 must be a number above 0",
    ),
    # Where transformers 4 has it.
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is not supported"),
    ({"quantization_config": "fp8"}, "weights quantized by 'fp8'"),
    ({"layer_types": ["full_attention"]}, "layer_types must name each of"),
    (
      {"layer_types": ["linear_attention"] * 3},
      "layer_types with 'linear_attention' is not supported",
    ),
    ({"no_rope_layers": [1, 1, 0]}, "no_rope_layers is not supported"),
    ({"architectures": "T5Model"}, "architecture T5Model is not supported"),
  ],
)
def test_a_field_that_cannot_be_is_named(tmp_path, fields, text):
  folder = written(tmp_path, "qwen3")
  record = json.loads((folder / "config.json").read_text())
  assert len(record["layer_types"]) == record["num_hidden_layers"] == 3
  change(folder / "config.json", **fields)
  refused(folder, text)


@pytest.mark.parametrize(
  "fields, text",
  [
    ({"query_pre_attn_scalar": 0}, "query_pre_attn_scalar=0 must be"),
    (
      {"layer_types": None, "sliding_window_pattern": 0},
      "sliding_window_pattern=0 must be",
    ),
    (
      {"layer_types": None, "sliding_window_pattern": None},
      "sliding_window_pattern=None must be",
    ),
  ],
)
def test_a_field_of_gemma_that_cannot_be_is_named(tmp_path, fields, text):
  folder = written(tmp_path, "gemma3")
  change(folder / "config.json", **fields)
  refused(folder, text)


def test_all_layers_rotate_may_be_said(tmp_path):
  folder = written(tmp_path, "llama")
  layers = json.loads((folder / "config.json").read_text())["num_hidden_layers"]
  change(folder / "config.json", no_rope_layers=[1] * layers)
  policy_io.open_policy(folder)


@pytest.mark.parametrize("field", ["vocab_size", "num_heads", "mlp_width"])
def test_a_decoder_has_positive_sizes(model, field):
  with pytest.raises(ValueError, match=f"{field}=0 must be an integer above 0"):
    dataclasses.replace(model, **{field: 0})


@pytest.mark.parametrize(
  "eos, text",
  [
    ("<eos>", "eos_token_id='<eos>' must be an id"),
    (-1, "eos_token_id=-1 must be an id"),
    (9999, "ends answers with id 9999, which the tokenizer does not have"),
    # An ordinary token of this tokenizer.
    ([200], "ends answers with id 200, which is .* and no special token"),
  ],
)
def test_an_end_of_another_tokenizer_is_named(tmp_path, eos, text):
  folder = written(tmp_path, "qwen3")
  path = folder / "generation_config.json"
  path.write_text(json.dumps({"eos_token_id": eos}))
  refused(folder, text)


class _Tokenizer:
  """As many ids as a published tokenizer has."""

  def __init__(self, count):
    self.vocab_size = count
    self.inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    self.chat = type(
      "Chat",
      (),
      dict(opening_ids=(), user_ids=(), answer_ids=(), stop_tokens=()),
    )


@pytest.mark.parametrize(
  "ids, rows",
  [
    (151_665, 151_936),  # Qwen2.5, up to 3B
    (151_665, 152_064),  # Qwen2.5, from 7B on
    (151_669, 151_936),  # Qwen3
    (49_152, 49_152),  # SmolLM2
    (128_256, 128_256),  # Llama 3
    (262_145, 262_144),  # Gemma 3
  ],
)
def test_published_embeddings_are_filled_up(ids, rows):
  assert padding_ids("x", _Tokenizer(ids), rows) == max(rows - ids, 0)


def test_a_tokenizer_that_is_much_too_small_is_named():
  rows = sizes.SIZES["qwen2.5-0.5b"]["vocab_size"]
  with pytest.raises(PolicyError, match="x: the model has .* another model"):
    padding_ids("x", _Tokenizer(49_152), rows)


@pytest.mark.parametrize(
  "template, text",
  [
    (b"\xff\xfe", "chat_template.jinja is damaged"),
    (b"{{ range(1000000000) }}", "the chat template cannot be used"),
    (b"{{ 1 // 0 }}", "the chat template cannot be used"),
  ],
)
def test_a_template_that_cannot_be_used_is_named(tmp_path, template, text):
  folder = written(tmp_path, "qwen3")
  (folder / "chat_template.jinja").write_bytes(template)
  refused(folder, text)


def test_a_nameless_template_is_named(tmp_path):
  folder = written(tmp_path, "qwen3")
  change(folder / "tokenizer_config.json", chat_template=[{"template": "x"}])
  refused(folder, "a list of chat templates without 'name'")


def test_an_index_names_files(tmp_path):
  folder = written(tmp_path, "qwen3")
  (folder / "model.safetensors").unlink()
  path = folder / "model.safetensors.index.json"
  path.write_text(json.dumps({"weight_map": {"w": 1}}))
  with pytest.raises(PolicyError, match="damaged index: .*w lies in 1"):
    policy_io.open_policy(folder)


@pytest.mark.parametrize("kept", ["float32", "bfloat16"])
def test_what_a_narrower_type_cannot_hold_is_named(tmp_path, kept):
  folder = written(tmp_path / "in", "qwen3")
  config, params, tokenizer = policy_io.load(folder)
  params = jax.tree.map(lambda x: x.astype(kept), params)
  scale = params["final_norm"]["scale"]
  params["final_norm"]["scale"] = scale.at[0].set(1e6)
  hf_export.export(
    tmp_path / "wide", config, params, tokenizer, dtype="bfloat16"
  )
  with pytest.raises(
    PolicyError, match="norm.weight has values beyond float16"
  ):
    hf_export.export(
      tmp_path / "narrow", config, params, tokenizer, dtype="float16"
    )
  assert not list(tmp_path.glob("narrow/*.safetensors"))


def test_a_stored_value_beyond_the_type_in_use_is_named(tmp_path):
  folder = written(tmp_path, "qwen3")
  path = folder / "model.safetensors"
  tensors = safetensors.numpy.load_file(path)
  norm = tensors["model.norm.weight"].astype(np.float64)
  norm[1] = 1e300
  safetensors.numpy.save_file(tensors | {"model.norm.weight": norm}, path)
  with pytest.raises(PolicyError, match="model.norm.weight has values beyond"):
    policy_io.load(folder)


@pytest.mark.parametrize("field, value", [("num_heads", 0), ("head_size", 3)])
def test_a_damaged_record_of_a_run_is_named(
  tmp_path, model, params, vocabulary, field, value
):
  policy_io.save(tmp_path, model, params, vocabulary, np.float32)
  record = json.loads((tmp_path / "policy.json").read_text())
  places = (record, *record.values())
  (place,) = [r for r in places if isinstance(r, dict) and field in r]
  place[field] = value
  (tmp_path / "policy.json").write_text(json.dumps(record))
  with pytest.raises(PolicyError, match=f"{field}={value}") as caught:
    policy_io.open_policy(tmp_path)
  assert "\n" not in str(caught.value)
