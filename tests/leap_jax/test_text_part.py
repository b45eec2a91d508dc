"""Models that see images: their language model is read, the rest is named."""

import json

import chex
import numpy as np
import pytest
import safetensors.numpy

from leap_jax import policy_io
from leap_jax.models import layer_rules, rope
from leap_jax.models.rope import Scaling
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import hf_config, hf_export, text_part
from tests.golden import tiny_models
from tests.leap_jax import hf_folders
from tests.leap_jax.test_pretrained import GOLDEN

PUBLISHED, MODULES = text_part.WITH_IMAGES["Gemma3ForConditionalGeneration"](
  {"text_config": {}}
).layouts

# Beside the language model: of a vision tower and a projector.
BESIDE = {
  "vision_tower.vision_model.embeddings.patch_embedding.weight": [8, 3, 2, 2],
  "vision_tower.vision_model.post_layernorm.bias": [8],
  "multi_modal_projector.mm_input_projection_weight": [8, 16],
}


def plain(folder):
  """The language model alone."""
  golden = GOLDEN["gemma3"]
  hf_folders.write_model(folder, golden["config"], golden["shapes"], "gemma3")
  return folder


def stored_as(name, layout):
  """A text-only model's name -> that of a model that sees images."""
  if name.startswith("lm_head."):
    return layout.head + name.removeprefix("lm_head")
  return layout.root + name.removeprefix("model.")


def with_images(folder, layout=PUBLISHED, more=(), change=None):
  """The same language model beside other parts, in a folder.

  Args:
    folder: made.
    layout: of the names.
    more: name -> shape of further tensors.
    change: as of `hf_folders.write_weights`, told the names of text alone.
  """
  plain(folder)
  record = json.loads((folder / "config.json").read_text())
  rows = record["vocab_size"]
  prefix = "model." if layout is MODULES else ""
  text = {stored_as(name, layout): name for name in GOLDEN["gemma3"]["shapes"]}
  shapes = {
    stored: [rows, 16] if "embed" in name else GOLDEN["gemma3"]["shapes"][name]
    for stored, name in text.items()
  }
  shapes |= {prefix + name: shape for name, shape in BESIDE.items()}
  shapes |= dict(more)

  def by_plain_name(name, array):
    original = text.get(name, name)
    array = tiny_models.tensor(original, array.shape, "gemma3")
    return array if change is None else change(name, array)

  hf_folders.write_weights(
    folder / "model.safetensors", shapes, "gemma3", change=by_plain_name
  )
  outer = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {k: v for k, v in record.items() if k != "architectures"},
    "vision_config": {"model_type": "siglip_vision_model"},
  }
  (folder / "config.json").write_text(json.dumps(outer))
  return folder


def change_config(folder, text=None, **fields):
  path = folder / "config.json"
  record = json.loads(path.read_text())
  record["text_config"] |= text or {}
  path.write_text(json.dumps(record | fields))


def refused(folder, words):
  with pytest.raises(PolicyError, match=words) as caught:
    policy_io.load(folder)
  line = str(caught.value)
  assert "\n" not in line and line.count(str(folder)) == 1, line


@pytest.mark.parametrize("layout", [PUBLISHED, MODULES])
def test_the_language_model_is_the_one_alone(tmp_path, layout):
  config, params, tokenizer = policy_io.load(plain(tmp_path / "plain"))
  opened = policy_io.open_policy(with_images(tmp_path / "seeing", layout))
  assert opened.config == config and opened.tokenizer.chat == tokenizer.chat
  chex.assert_trees_all_equal(opened.read(), params)


@pytest.mark.parametrize("layout", [PUBLISHED, MODULES])
def test_what_is_left_aside_is_one_line(tmp_path, layout):
  folder = with_images(tmp_path, layout)
  (line,) = policy_io.open_policy(folder).notes
  assert line == (
    f"{folder}: text only; its projector and vision tower (3 tensors) are left "
    "aside"
  )


def test_a_language_model_alone_has_nothing_to_say(tmp_path):
  assert policy_io.open_policy(plain(tmp_path)).notes == ()


@pytest.mark.parametrize(
  "layout, name",
  [
    (PUBLISHED, "vision_tower_2.weight"),
    (PUBLISHED, "audio_tower.weight"),
    (PUBLISHED, "language_model.model.layers.0.self_attn.sinks"),
    (PUBLISHED, "model.vision_tower.weight"),  # of the other layout
    (MODULES, "vision_tower.weight"),
    (MODULES, "model.language_model.vision_tower.weight"),
  ],
)
def test_any_other_tensor_is_still_an_error(tmp_path, layout, name):
  with_images(tmp_path, layout, more={name: [4]})
  refused(tmp_path, f"1 tensors belong to no part of the model, such as {name}")


@pytest.mark.parametrize("layout", [PUBLISHED, MODULES])
def test_a_language_model_alone_has_no_vision_tower(tmp_path, layout):
  path = plain(tmp_path / "plain") / "model.safetensors"
  tensors = safetensors.numpy.load_file(path)
  for prefix in layout.aside:
    tower = {f"{prefix}weight": np.zeros(4, np.float32)}
    safetensors.numpy.save_file(tensors | tower, path)
    refused(path.parent, f"belong to no part of the model, such as {prefix}")


def test_a_missing_tensor_has_the_name_that_it_is_stored_by(tmp_path):
  with_images(tmp_path)
  change_config(tmp_path, {"num_hidden_layers": 4, "layer_types": None})
  refused(tmp_path, r"tensor language_model\.model\.layers\.3\.\S+ is missing")


@pytest.mark.parametrize("layout", [PUBLISHED, MODULES])
def test_a_copy_of_the_embedding_as_the_head_is_dropped(tmp_path, layout):
  rows, seen = 302, {}
  head = f"{layout.head}.weight"

  def copy(name, array):
    seen[name] = array
    if name != head:
      return array
    table = seen[f"{layout.root}embed_tokens.weight"]
    return table + np.float32(is_other)

  for is_other in (False, True):
    with_images(tmp_path, layout, more={head: [rows, 16]}, change=copy)
    if is_other:
      refused(tmp_path, f"{head} is there and differs from the embedding")
    else:
      assert "head" not in policy_io.load(tmp_path)[1]


def test_it_leaves_as_a_language_model_alone(tmp_path):
  config, params, tokenizer = policy_io.load(with_images(tmp_path / "in"))
  out = tmp_path / "out"
  hf_export.export(out, config, params, tokenizer, dtype="float32")
  record = json.loads((out / "config.json").read_text())
  assert record["architectures"] == ["Gemma3ForCausalLM"]
  again, same, _ = policy_io.load(out)
  assert again == config
  chex.assert_trees_all_equal(same, params)


# ------------------------------------------------------------------- records


def published(**text):
  """As the files of 4B, 12B and 27B: without what is a default."""
  shared = {
    "model_type": "gemma3_text",
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "sliding_window": 1024,
  }
  return {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "eos_token_id": [1, 106],
    "model_type": "gemma3",
    "text_config": shared | text,
    "vision_config": {"model_type": "siglip_vision_model"},
  }


OF_4B = dict(hidden_size=2560, intermediate_size=10240, num_hidden_layers=34)
OF_27B = dict(
  head_dim=128, hidden_size=5376, intermediate_size=21504,
  num_attention_heads=32, num_hidden_layers=62, num_key_value_heads=16,
  query_pre_attn_scalar=168,
)  # fmt: skip


def test_what_a_published_file_leaves_out_is_the_default():
  config = hf_config.model_config(published(**OF_4B))
  assert config.vocab_size == 262_208 and config.tied_head
  assert (config.width, config.mlp_width, config.num_layers) == (
    2560,
    10240,
    34,
  )
  assert (config.num_heads, config.num_kv_heads, config.head_size) == (
    8,
    4,
    256,
  )
  assert config.max_context_tokens == 131_072 and config.norm_eps == 1e-6
  assert config.attention_scale == 256**-0.5 and config.local_window == 1024
  # Every sixth layer is global.
  assert sorted({*range(34)} - {*config.local_layers}) == [5, 11, 17, 23, 29]
  assert config.rope_scaling == Scaling("linear", 8.0)
  largest = hf_config.model_config(published(**OF_27B))
  assert largest.attention_scale == 168**-0.5 and largest.head_size == 128


def test_only_global_layers_are_stretched():
  config = hf_config.model_config(published(**OF_4B))
  local, full = (layer_rules.rule_of(config, i).frequencies for i in (0, 5))
  np.testing.assert_array_equal(local, rope.frequencies(256, 1e4, Scaling()))
  plain_turns = np.asarray(rope.frequencies(256, 1e6, Scaling()))
  np.testing.assert_allclose(full, plain_turns / 8, rtol=1e-6)


def test_turns_of_each_kind_of_layer_may_be_said_in_part():
  expected = hf_config.model_config(published(**OF_4B))
  full = {"rope_type": "linear", "factor": 8.0}
  for kinds in (
    {"full_attention": full},
    {"full_attention": full, "sliding_attention": None},
    {"full_attention": full, "sliding_attention": {"rope_type": "default"}},
  ):
    record = published(**OF_4B, rope_parameters=kinds)
    del record["text_config"]["rope_scaling"]
    assert hf_config.model_config(record) == expected
  alone = {"sliding_attention": {"rope_theta": 5e3}}
  record = published(**OF_4B) | {"text_config": OF_4B}
  record["text_config"] = OF_4B | {"rope_parameters": alone}
  config = hf_config.model_config(record)
  assert (config.local_rope_theta, config.rope_theta) == (5e3, 1e6)
  assert config.rope_scaling == Scaling()
  stretched = {"sliding_attention": full}
  record["text_config"] = OF_4B | {"rope_parameters": stretched}
  with pytest.raises(PolicyError, match="of sliding layers is not supported"):
    hf_config.model_config(record)


@pytest.mark.parametrize(
  "fields, words",
  [
    ({"text_config": None}, "text_config=None must be an object"),
    (
      {"text_config": {"model_type": "qwen2"}},
      "text_config.model_type='qwen2' is not supported",
    ),
    (
      {"tie_word_embeddings": False, "text_config": {}},
      "tensor language_model.lm_head.weight is missing",
    ),
    (
      {"text_config": {"tie_word_embeddings": False}},
      "text_config.tie_word_embeddings=False, but True of the whole model",
    ),
    ({"quantization_config": {"quant_method": "fp8"}}, "quantized by 'fp8'"),
  ],
)
def test_a_record_that_cannot_be_is_named(tmp_path, fields, words):
  with_images(tmp_path)
  inner = json.loads((tmp_path / "config.json").read_text())["text_config"]
  inner.pop("tie_word_embeddings", None)
  if fields.get("text_config") is not None:
    fields = fields | {"text_config": inner | fields["text_config"]}
  change_config(tmp_path, **fields)
  refused(tmp_path, words)


@pytest.mark.parametrize(
  "name",
  [
    "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration",
    "Gemma3nForConditionalGeneration",
    "PaliGemmaForConditionalGeneration",
    "LlavaForConditionalGeneration",
    "MllamaForConditionalGeneration",
    "Llama4ForConditionalGeneration",
    "Mistral3ForConditionalGeneration",
    "Idefics3ForConditionalGeneration",
  ],
)
def test_other_models_that_see_images_are_refused_by_name(tmp_path, name):
  with_images(tmp_path)
  change_config(tmp_path, architectures=[name])
  refused(
    tmp_path,
    f"architecture {name} is not supported; those that are: .*, "
    "Gemma3ForConditionalGeneration",
  )


@pytest.mark.parametrize(
  "outer, inner, words",
  [
    ([9999], 0, "ends answers with id 9999"),
    (None, 9999, "ends answers with id 9999"),
  ],
)
def test_what_ends_an_answer_is_said_by_the_whole_first(
  tmp_path, outer, inner, words
):
  with_images(tmp_path)
  (tmp_path / "generation_config.json").unlink()
  change_config(tmp_path, {"eos_token_id": inner}, eos_token_id=outer)
  refused(tmp_path, words)
