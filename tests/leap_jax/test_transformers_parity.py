"""Random models that transformers writes: the same logits and greedy text here,
and there again after an export. (test_pretrained.py holds some of its logits.)
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import policy_io
from leap_jax.models import transformer, whole_rows
from leap_jax.pretrained import hf_export
from leap_jax.types import Message
from tests.golden import tiny_models
from tests.leap_jax import hf_folders

_REASON = "needs the extra `parity`"
torch = pytest.importorskip("torch", reason=_REASON)
transformers = pytest.importorskip("transformers", reason=_REASON)

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours

ROWS = 302  # of the embedding; the tokenizer has 298 ids
NEW = 24  # tokens of greedy text


@pytest.fixture(params=tiny_models.CONFIGS, scope="module")
def written(request, tmp_path_factory):
  """A folder with shards, and the model that wrote it."""
  class_name, _ = tiny_models.CONFIGS[request.param]
  arguments = tiny_models.arguments(request.param) | {"vocab_size": ROWS}
  torch.manual_seed(0)
  config = getattr(transformers, class_name)(**arguments)
  theirs = transformers.AutoModelForCausalLM.from_config(config).eval().float()
  with torch.no_grad():
    for parameter in theirs.parameters():
      parameter += 0.3 * torch.randn_like(parameter)
  folder = tmp_path_factory.mktemp("theirs")
  theirs.save_pretrained(folder, max_shard_size="20KB")
  assert len(list(folder.glob("*.safetensors"))) > 1
  hf_folders.write_tokenizer(folder, hf_folders.vocabulary())
  return folder, theirs


def their_logits(model, tokens):
  with torch.inference_mode():
    return model(torch.tensor(tokens)).logits.numpy()


def test_the_same_logits_and_greedy_text_there_and_back(written, tmp_path):
  folder, theirs = written
  config, params, tokenizer = policy_io.load(folder)

  @jax.jit
  def logits(params, tokens):
    hidden = whole_rows.hidden_states(config, params, tokens)
    return transformer.logits_of(config, params, hidden)

  tokens = np.random.default_rng(0).integers(0, config.num_ids, (2, 16))
  got = np.asarray(logits(params, jnp.asarray(tokens)))[..., : config.num_ids]
  expected = their_logits(theirs, tokens)[..., : config.num_ids]
  np.testing.assert_allclose(got, expected, atol=1e-4)

  # Greedy text; what stands behind the last token has no effect.
  text = np.zeros((1, 8 + NEW), np.int64)
  text[:, :8] = tokens[:1, :8]
  for i in range(8, 8 + NEW):
    text[0, i] = logits(params, jnp.asarray(text))[0, i - 1].argmax()
  with torch.inference_mode():
    expected = theirs.generate(
      torch.tensor(text[:, :8]),
      max_new_tokens=NEW,
      do_sample=False,
      eos_token_id=None,
      pad_token_id=0,
      # Ids that no token has are never sampled here.
      suppress_tokens=list(range(config.num_ids, ROWS)),
    ).numpy()
  np.testing.assert_array_equal(text, expected)

  hf_export.export(
    tmp_path,
    config,
    params,
    tokenizer,
    dtype="float32",
    max_shard_bytes=20_000,
  )
  again, loading = transformers.AutoModelForCausalLM.from_pretrained(
    tmp_path, output_loading_info=True
  )
  assert type(again) is type(theirs)
  assert not any(loading.values()), loading
  np.testing.assert_array_equal(
    their_logits(again.eval(), tokens), their_logits(theirs, tokens)
  )


def test_an_exported_tokenizer_writes_the_same_conversation(written, tmp_path):
  folder, _ = written
  config, params, tokenizer = policy_io.load(folder)
  hf_export.export(tmp_path, config, params, tokenizer, dtype="bfloat16")
  theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
  conversation = [
    {"role": "user", "content": "int i;"},
    {"role": "assistant", "content": "n < 3"},
    {"role": "user", "content": "Wrong."},
  ]
  first = tokenizer.opening(Message("user", "int i;"))
  ours = first + tokenizer.completion("n < 3")
  ours += tokenizer.context(Message("user", "Wrong."))
  for messages, ids in ((conversation[:1], first), (conversation, ours)):
    expected = theirs.apply_chat_template(messages, add_generation_prompt=True)
    expected = getattr(expected, "input_ids", expected)
    assert list(expected) == ids
