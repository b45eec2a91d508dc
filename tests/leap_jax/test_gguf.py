"""GGUF files: names, row orders, blocks, tokenizers; a fault is one line."""

import dataclasses
import json

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import policy_io
from leap_jax.chat_format import ChatOverrides
from leap_jax.models import rope, transformer, whole_rows
from leap_jax.models.config import ModelConfig
from leap_jax.models.rope import Scaling
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import (
  gguf_file,
  gguf_tokenizer,
  hf_export,
  tensor_names,
)
from leap_jax.types import Message
from tests.leap_jax import hf_folders

gguf = pytest.importorskip("gguf", reason="needs the extra `gguf`")

SMALL = dict(
  width=32, num_layers=2, num_heads=4, num_kv_heads=2, head_size=8,
  mlp_width=64, max_context_tokens=128, rope_theta=1e6,
)  # fmt: skip
FAMILIES = {
  "llama": ModelConfig(
    vocab_size=8, **SMALL, has_qk_norm=False, tied_head=False,
    rope_scaling=Scaling("llama3", 32.0, 8192),
  ),
  "qwen2": ModelConfig(
    vocab_size=8, **SMALL, has_qk_norm=False, has_qkv_bias=True,
    padding_ids=3,
  ),
  "qwen3": ModelConfig(
    vocab_size=8, **SMALL, tied_head=False,
    rope_scaling=Scaling("linear", 2.0),
  ),
  "gemma3": ModelConfig(
    vocab_size=8, **SMALL, has_post_norms=True, norm_offset=1.0,
    embedding_scale=32**0.5, activation="gelu_tanh", attention_scale=8**-0.5,
    local_layers=(0, 1), local_window=16, local_rope_theta=1e4,
  ),
}  # fmt: skip
FIELDS = {  # of the metadata, beside the sizes
  "qwen3": {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0},
  "gemma3": {"attention.sliding_window": 16},
}


def to_pairs(rows, num_heads):
  """The order that llama.cpp's converter gives to rows of q and k."""
  half = rows.shape[0] // num_heads // 2
  return np.concatenate(
    [
      rows[head * 2 * half + i + side * half][None]
      for head in range(num_heads)
      for i in range(half)
      for side in (0, 1)
    ]
  )


def stored(config, params, family):
  """Name -> array as a converter writes it."""
  out = {}
  for leaf in tensor_names.leaves(config, tensor_names.GGUF):
    value = params
    for key in leaf.path:
      value = value[key]
    for i, name in enumerate(leaf.names):
      array = np.asarray(value[i] if leaf.is_stacked else value)
      array = array.T if leaf.is_transposed else array
      if family == "llama" and ".attn_q." in name:
        array = to_pairs(array, config.num_heads)
      if family == "llama" and ".attn_k." in name:
        array = to_pairs(array, config.num_kv_heads)
      if family == "gemma3" and "norm" in name:
        array = array + 1
      out[name] = np.ascontiguousarray(array)
  return out


def write(path, family, tensors, config, *, fields=None, kind=None, raw=None):
  """A file with ChatML's tokenizer; `raw` names tensors that are blocks."""
  writer = gguf.GGUFWriter(path, family)
  numbers = {
    "block_count": config.num_layers,
    "context_length": config.max_context_tokens,
    "embedding_length": config.width,
    "feed_forward_length": config.mlp_width,
    "attention.head_count": config.num_heads,
    "attention.head_count_kv": config.num_kv_heads,
    "attention.key_length": config.head_size,
    "attention.layer_norm_rms_epsilon": config.norm_eps,
    "rope.freq_base": config.rope_theta,
  }
  for key, value in (numbers | FIELDS.get(family, {}) | (fields or {})).items():
    add = {int: writer.add_uint32, str: writer.add_string}
    add.get(type(value), writer.add_float32)(f"{family}.{key}", value)
  inner = hf_folders.vocabulary()
  by_id = sorted(inner.get_vocab(), key=inner.token_to_id)
  unused = [f"[PAD{i}]" for i in range(config.padding_ids)]
  writer.add_tokenizer_model("gpt2")
  writer.add_tokenizer_pre("qwen2")
  writer.add_token_list(by_id + unused)
  control = [3 if token in hf_folders.SPECIAL else 1 for token in by_id]
  writer.add_token_types(control + [5] * len(unused))
  merges = json.loads(inner.to_str())["model"]["merges"]
  writer.add_token_merges([" ".join(pair) for pair in merges])
  writer.add_eos_token_id(inner.token_to_id("<|im_end|>"))
  writer.add_chat_template(hf_folders.CHATML)
  for name, array in tensors.items():
    if raw is not None and name in raw:
      blocks, its_kind = raw[name]
      writer.add_tensor(name, blocks, raw_dtype=its_kind)
    elif kind is not None and array.ndim == 2:
      writer.add_tensor(name, gguf.quantize(array, kind), raw_dtype=kind)
    else:
      writer.add_tensor(name, array.astype(np.float32))
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()


def make(tmp_path, family, *, kind=None, change=None, **options):
  """A file of a random model; (path, its config, its parameters)."""
  config = FAMILIES[family]
  rows = hf_folders.vocabulary().get_vocab_size() + config.padding_ids
  config = dataclasses.replace(config, vocab_size=rows)
  rng = np.random.default_rng(0)
  params = jax.tree.map(
    lambda x: rng.standard_normal(x.shape, np.float32) * np.float32(0.3),
    jax.eval_shape(
      lambda key: transformer.init(config, key), jax.random.key(0)
    ),
  )
  tensors = stored(config, params, family)
  if family == "llama":
    plain = rope.frequencies(8, config.rope_theta, Scaling())
    scaled = rope.frequencies(8, config.rope_theta, config.rope_scaling)
    tensors["rope_freqs.weight"] = np.asarray(plain / scaled)
  if change is not None:
    change(tensors)
  path = tmp_path / "model.gguf"
  write(path, family, tensors, config, kind=kind, **options)
  return path, config, params


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_each_family_is_read(tmp_path, family):
  path, config, params = make(tmp_path, family)
  got, read, tokenizer = policy_io.load(path)
  assert got == config
  chex.assert_trees_all_close(read, params, atol=1e-6)
  assert tokenizer.vocab_size == config.num_ids


@pytest.mark.covers("P27")
def test_rows_of_queries_and_keys_are_put_back(tmp_path):
  # One head of size 4: rows 0, 1, 2, 3 are stored as 0, 2, 1, 3.
  assert to_pairs(np.arange(4), 1).tolist() == [0, 2, 1, 3]
  tokens = jnp.asarray([[5, 9, 30, 2, 77, 5, 5, 11]])
  for family in ("llama", "qwen3"):  # llama alone stores them so
    path, config, params = make(tmp_path, family)
    hf_export.export(
      tmp_path / family,
      config,
      params,
      policy_io.open_policy(path).tokenizer,
      dtype="float32",
    )
    _, of_gguf, _ = policy_io.load(path)
    same, of_safetensors, _ = policy_io.load(tmp_path / family)
    assert same == config
    forward = jax.jit(
      lambda tree, config=config: whole_rows.hidden_states(config, tree, tokens)
    )
    hidden = [forward(tree) for tree in (of_gguf, of_safetensors)]
    np.testing.assert_allclose(*hidden, atol=1e-5)


@pytest.mark.covers("P27")
def test_blocks_that_cannot_be_read_back_are_refused_by_name(tmp_path):
  path, config, params = make(tmp_path, "qwen2")
  tensors = stored(config, params, "qwen2")
  kind = gguf.GGMLQuantizationType.Q8_1
  values, block_bytes = gguf.GGML_QUANT_SIZES[kind]
  assert values == config.width
  blocks = np.zeros((config.width, block_bytes), np.uint8)
  raw = {"blk.0.attn_q.weight": (blocks, kind)}
  write(path, "qwen2", tensors, config, raw=raw)
  refused(path, "blk.0.attn_q.weight is quantized as Q8_1")


@pytest.mark.parametrize("kind,error", [("Q8_0", 0.01), ("BF16", 0.01)])
def test_blocks_become_numbers(tmp_path, kind, error):
  path, config, params = make(
    tmp_path, "qwen2", kind=gguf.GGMLQuantizationType[kind]
  )
  _, read, _ = policy_io.load(path)
  chex.assert_trees_all_close(read, params, atol=error)
  exact = jax.tree.map(lambda a, b: bool((a == b).all()), read, params)
  assert not exact["blocks"]["gate"]["kernel"]
  assert exact["final_norm"]["scale"]


def test_the_tokenizer_is_that_of_the_file(tmp_path):
  path, *_ = make(tmp_path, "qwen2")
  v = policy_io.open_policy(path).tokenizer
  text = "  if (i < n)\n\t out[i] = <|im_end|> 3.5f; // é 中文 \u0301e"
  assert v.decode(v.encode(text)) == text
  assert v.inner.token_to_id("<|im_end|>") not in v.encode(text)
  assert v.stop_tokens == (
    v.inner.token_to_id("<|im_end|>"),
    v.inner.token_to_id("<|endoftext|>"),
  )
  written = v.inner.decode(
    v.opening(Message("user", "Hi")), skip_special_tokens=False
  )
  assert written == (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    "<|im_start|>assistant\n"
  )


def test_sentence_pieces_join_the_best_pair_first():
  # Scores rank the merges: "bc" (-1) before "ab" (-2); "abc" (-3) is reached
  # from either side.
  tokens = [
    "<unk>",
    "<eos>",
    "a",
    "b",
    "c",
    "ab",
    "bc",
    "abc",
    "\u2581",
    "\n\n",
  ]
  tokens += [f"<0x{i:02X}>" for i in range(256)]
  scores = [0.0, 0.0, -9.0, -9.0, -9.0, -2.0, -1.0, -3.0, -9.0, 0.0]
  types = [2, 3, 1, 1, 1, 1, 1, 1, 1, 4]
  metadata = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.scores": scores + [0.0] * 256,
    "tokenizer.ggml.token_type": types + [6] * 256,
    "tokenizer.ggml.add_space_prefix": False,
  }
  file = gguf_file.GgufFile("a file", metadata, {})
  inner = gguf_tokenizer.vocabulary_of(file)
  pieces = lambda text: inner.encode(text, add_special_tokens=False).tokens
  assert pieces("abc") == ["abc"]
  assert pieces("bcb") == ["bc", "b"]
  assert pieces("ab b\n\n") == ["ab", "\u2581", "b", "\n\n"]
  assert pieces("é") == ["<0xC3>", "<0xA9>"]
  for text in ("ab b\n\nabé", " a  b"):
    ids = inner.encode(text, add_special_tokens=False).ids
    assert inner.decode(ids) == text
  metadata["tokenizer.ggml.add_space_prefix"] = True
  with pytest.raises(PolicyError, match="puts a space before a text"):
    gguf_tokenizer.vocabulary_of(file)


# ------------------------------------------------------------------- faults


def refused(path, text):
  with pytest.raises(PolicyError, match=text) as caught:
    policy_io.load(path)
  assert "\n" not in str(caught.value)


def test_a_truncated_file_is_named(tmp_path):
  path, *_ = make(tmp_path, "qwen2")
  raw = path.read_bytes()
  path.write_bytes(raw[:-1000])
  refused(path, "is truncated: .* ends at byte")
  path.write_bytes(raw[:1000])
  refused(path, "its header does not end in 1000 bytes")
  path.write_bytes(b"GGML" + raw[4:])
  refused(path, "is no GGUF file")
  path.write_bytes(b"")
  refused(path, "is no GGUF file")


@pytest.mark.parametrize(
  "fields,text",
  [
    ({"expert_count": 8}, "experts is not supported"),
    ({"rope.dimension_count": 4}, "partial rotation is not supported"),
    ({"rope.scaling.type": "longrope"}, "rope scaling 'longrope'"),
    ({"rope.scaling.attn_factor": 1.2}, "rope.scaling.attn_factor is not"),
    *(
      (
        {
          "rope.scaling.type": "yarn",
          "rope.scaling.factor": 4.0,
          f"rope.scaling.{name}": value,
        },
        f"rope.scaling.{name}={value:g} is not supported; it must be",
      )
      for name, value in {
        "yarn_attn_factor": 1.0,
        "yarn_ext_factor": 0.5,
        "yarn_log_multiplier": 0.1,
      }.items()
    ),
    ({"block_count": 3}, r"blk\.2\.\S+ is missing"),
    ({"feed_forward_length": 65}, "ffn_down.weight has shape"),
    ({"final_logit_softcapping": 30.0}, "final_logit_softcapping is not supp"),
    ({"attention.head_count": 0}, "attention.head_count=0 must be an integer"),
    ({"attention.head_count": "4"}, "attention.head_count='4' must be an"),
    ({"attention.head_count_kv": 3}, "damaged: num_kv_heads=3 must divide"),
    ({"attention.key_length": 7}, "damaged: head_size=7 must be even"),
    ({"block_count": 0}, "damaged: num_layers=0 must be an integer above 0"),
  ],
)
def test_a_model_that_is_not_ours_is_named(tmp_path, fields, text):
  path, *_ = make(tmp_path, "qwen3", fields=fields)
  refused(path, text)


@pytest.mark.parametrize("merges", [["a"], ["zzz yyy"], ["a b c"]])
def test_damaged_merges_are_named(tmp_path, merges):
  path, *_ = make(tmp_path, "qwen3")
  file = gguf_file.open_file(path)
  file.metadata["tokenizer.ggml.merges"] = merges
  with pytest.raises(PolicyError, match="damaged merges"):
    gguf_tokenizer.load(file, ChatOverrides())


def test_an_unknown_architecture_is_named(tmp_path):
  path, config, params = make(tmp_path, "qwen3")
  write(path, "phi3", stored(config, params, "qwen3"), config)
  refused(path, "architecture phi3 is not supported; those that are: llama, ")


def test_weights_that_are_not_finite_are_named(tmp_path):
  def damage(tensors):
    tensors["blk.1.ffn_up.weight"][3, 5] = np.nan

  path, *_ = make(tmp_path, "qwen2", change=damage)
  refused(path, "blk.1.ffn_up.weight holds 1 values that are not finite")


def test_other_divisors_than_llamas_are_refused(tmp_path):
  def other(tensors):
    tensors["rope_freqs.weight"] = np.asarray([1, 2, 3, 4], np.float32)

  path, *_ = make(tmp_path, "llama", change=other)
  refused(path, "rope_freqs.weight does not follow Llama 3's rule")


def test_a_tensor_too_many_is_named(tmp_path):
  def more(tensors):
    tensors["blk.0.attn_sinks.weight"] = np.zeros(4, np.float32)

  path, *_ = make(tmp_path, "qwen3", change=more)
  refused(path, "1 tensors belong to no part .* blk.0.attn_sinks.weight")


def test_without_the_package_the_command_is_told(tmp_path, monkeypatch):
  import sys

  path, *_ = make(tmp_path, "qwen3")
  monkeypatch.setitem(sys.modules, "gguf", None)
  refused(path, r"pip install 'leap-jax\[gguf\]'")
