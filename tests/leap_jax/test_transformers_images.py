"""Random models that see images, as transformers writes them: text alone has
the same logits here, and after an export there again.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import policy_io
from leap_jax.models import transformer, whole_rows
from leap_jax.models.rope import Scaling
from leap_jax.pretrained import hf_export, safetensors_file
from tests.leap_jax import hf_folders

_REASON = "needs the extra `parity`"
torch = pytest.importorskip("torch", reason=_REASON)
transformers = pytest.importorskip("transformers", reason=_REASON)

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours

ROWS = 302  # of the embedding; the tokenizer has 298 ids

# Sizes and settings as published; what is a default has its default here too,
# but for the number of rows and layers.
TEXT = dict(
  vocab_size=ROWS,
  hidden_size=32,
  intermediate_size=48,
  num_hidden_layers=7,  # the sixth is global
  sliding_window=6,
  rope_scaling=dict(rope_type="linear", factor=8.0),
)
LARGEST = TEXT | dict(
  head_dim=8,
  num_attention_heads=4,
  num_key_value_heads=2,
  query_pre_attn_scalar=24,
)
VISION = dict(
  hidden_size=8,
  image_size=28,
  intermediate_size=12,
  num_attention_heads=2,
  num_hidden_layers=1,
  patch_size=14,
)


def _model(text, tied):
  config = transformers.Gemma3Config(
    text_config=dict(text) | {"tie_word_embeddings": tied},
    vision_config=dict(VISION),
    mm_tokens_per_image=4,
    tie_word_embeddings=tied,
  )
  torch.manual_seed(0)
  model = transformers.Gemma3ForConditionalGeneration(config).eval().float()
  with torch.no_grad():
    for parameter in model.parameters():
      parameter += 0.3 * torch.randn_like(parameter)
  return model


def _spell_as_published(folder, text):
  """Defaults left out, and the field names of before transformers 5."""
  path = folder / "config.json"
  record = json.loads(path.read_text())
  default = transformers.Gemma3TextConfig().to_dict()
  assert all(default[name] != text[name] for name in text if name in default)
  record["text_config"] = dict(text) | {"model_type": "gemma3_text"}
  del record["tie_word_embeddings"]
  path.write_text(json.dumps(record))


def _text_logits(model, tokens):
  with torch.inference_mode():
    return model(torch.tensor(tokens)).logits.numpy()


@pytest.mark.parametrize("in_original_names", [True, False])
@pytest.mark.parametrize(
  "text, tied, is_published",
  [(TEXT, True, True), (LARGEST, True, False), (LARGEST, False, False)],
  ids=["as published", "as the largest", "untied"],
)
def test_text_has_the_same_logits(
  tmp_path, text, tied, is_published, in_original_names
):
  theirs = _model(text, tied)
  folder = tmp_path / "in"
  theirs.save_pretrained(
    folder,
    max_shard_size="40KB",
    save_original_format=in_original_names,
  )
  assert len(list(folder.glob("*.safetensors"))) > 1
  names = safetensors_file.open_folder(folder).shapes
  root = "language_model.model" if in_original_names else "model.language_model"
  assert f"{root}.norm.weight" in names
  if is_published:
    _spell_as_published(folder, text)
  hf_folders.write_tokenizer(folder, hf_folders.vocabulary())
  # As a user of theirs would load it.
  theirs, loading = transformers.AutoModelForCausalLM.from_pretrained(
    folder, output_loading_info=True
  )
  assert not any(loading.values()), loading
  opened = policy_io.open_policy(folder)
  (note,) = opened.notes
  assert "projector and vision tower" in note
  config, params = opened.config, opened.read()
  assert config.rope_scaling == Scaling("linear", 8.0)

  @jax.jit
  def logits(params, tokens):
    hidden = whole_rows.hidden_states(config, params, tokens)
    return transformer.logits_of(config, params, hidden)

  tokens = np.random.default_rng(0).integers(0, config.num_ids, (2, 16))
  got = np.asarray(logits(params, jnp.asarray(tokens)))[..., : config.num_ids]
  expected = _text_logits(theirs.eval().float(), tokens)
  np.testing.assert_allclose(got, expected[..., : config.num_ids], atol=1e-4)

  out = tmp_path / "out"
  hf_export.export(out, config, params, opened.tokenizer, dtype="float32")
  alone, loading = transformers.AutoModelForCausalLM.from_pretrained(
    out, output_loading_info=True
  )
  assert type(alone) is transformers.Gemma3ForCausalLM
  assert not any(loading.values()), loading
  np.testing.assert_allclose(
    _text_logits(alone.eval(), tokens), expected, atol=1e-5
  )
