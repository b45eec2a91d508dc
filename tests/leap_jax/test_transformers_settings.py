"""Settings of each family, and stored dtypes: the same logits as transformers.

Random models that the library writes itself; those of test_transformers_parity
have fewer settings and are compared more closely.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import policy_io
from leap_jax.models import transformer, whole_rows
from tests.leap_jax import hf_folders

_REASON = "needs the extra `parity`"
torch = pytest.importorskip("torch", reason=_REASON)
transformers = pytest.importorskip("transformers", reason=_REASON)

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours

SIZES = dict(
  vocab_size=302,  # the tokenizer has 298 ids
  hidden_size=32,
  intermediate_size=48,
  num_hidden_layers=3,
  num_attention_heads=4,
  num_key_value_heads=2,
  max_position_embeddings=256,
)
LINEAR = dict(rope_type="linear", factor=2.0, rope_theta=1e6)
LLAMA3 = dict(
  rope_type="llama3",
  factor=8.0,
  low_freq_factor=1.0,
  high_freq_factor=4.0,
  original_max_position_embeddings=64,
  rope_theta=5e5,
)
YARN = dict(
  rope_type="yarn",
  factor=4.0,
  original_max_position_embeddings=64,
  rope_theta=1e4,
)
OWN_YARN = YARN | dict(attention_factor=1.3, beta_fast=16.0, beta_slow=2.0)
WINDOW = dict(use_sliding_window=True, sliding_window=5, max_window_layers=2)
LAYERS = ["full_attention", "sliding_attention", "full_attention"]
GEMMA = dict(head_dim=8, sliding_window=6, num_hidden_layers=7)

CASES = {
  "llama": ("LlamaConfig", dict()),
  "llama, wide heads": ("LlamaConfig", dict(head_dim=16)),
  "llama, all heads": ("LlamaConfig", dict(num_key_value_heads=4)),
  "llama, tied": ("LlamaConfig", dict(tie_word_embeddings=True)),
  "llama, biases": ("LlamaConfig", dict(attention_bias=True)),
  "llama, gelu": ("LlamaConfig", dict(hidden_act="gelu_pytorch_tanh")),
  "llama, llama3": ("LlamaConfig", dict(rope_parameters=LLAMA3)),
  "llama, yarn": ("LlamaConfig", dict(rope_parameters=OWN_YARN)),
  "qwen2, untied": ("Qwen2Config", dict(tie_word_embeddings=False)),
  "qwen2, wide heads": ("Qwen2Config", dict(head_dim=16)),
  "qwen2, linear": ("Qwen2Config", dict(rope_parameters=LINEAR)),
  "qwen2, window": ("Qwen2Config", WINDOW),
  "qwen2, layers": ("Qwen2Config", WINDOW | dict(layer_types=LAYERS)),
  "qwen3, biases": ("Qwen3Config", dict(head_dim=8, attention_bias=True)),
  "qwen3, tied": ("Qwen3Config", dict(head_dim=16, tie_word_embeddings=True)),
  "qwen3, yarn": ("Qwen3Config", dict(head_dim=16, rope_parameters=YARN)),
  "qwen3, window": ("Qwen3Config", WINDOW | dict(head_dim=16)),
  "gemma3": ("Gemma3TextConfig", GEMMA),
  "gemma3, untied": (
    "Gemma3TextConfig",
    GEMMA | dict(tie_word_embeddings=False),
  ),
  "gemma3, biases": ("Gemma3TextConfig", GEMMA | dict(attention_bias=True)),
  "gemma3, linear": ("Gemma3TextConfig", GEMMA | dict(rope_scaling=LINEAR)),
  "gemma3, llama3": ("Gemma3TextConfig", GEMMA | dict(rope_scaling=LLAMA3)),
}


def _compare(folder, case, stored_as):
  """Logits of what lies in the folder, on both sides in float32."""
  class_name, settings = CASES[case]
  config = getattr(transformers, class_name)(**(SIZES | settings))
  torch.manual_seed(0)
  made = transformers.AutoModelForCausalLM.from_config(config).float()
  with torch.no_grad():
    for parameter in made.parameters():
      parameter += 0.3 * torch.randn_like(parameter)
  made.to(getattr(torch, stored_as)).save_pretrained(folder)
  hf_folders.write_tokenizer(folder, hf_folders.vocabulary())
  theirs = transformers.AutoModelForCausalLM.from_pretrained(
    folder, dtype=torch.float32
  ).eval()
  config, params, _ = policy_io.load(folder)
  # Longer than the windows.
  tokens = np.random.default_rng(0).integers(0, config.num_ids, (2, 40))

  @jax.jit
  def logits(params, tokens):
    hidden = whole_rows.hidden_states(config, params, tokens)
    return transformer.logits_of(config, params, hidden)

  got = np.asarray(logits(params, jnp.asarray(tokens)))
  with torch.inference_mode():
    expected = theirs(torch.tensor(tokens)).logits.numpy()
  np.testing.assert_allclose(
    got[..., : config.num_ids], expected[..., : config.num_ids], atol=1e-4
  )


@pytest.mark.parametrize("case", CASES)
def test_settings_mean_the_same(tmp_path, case):
  _compare(tmp_path, case, "float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
  "case", ["llama", "qwen2, untied", "qwen3, tied", "gemma3"]
)
def test_weights_of_sixteen_bits_are_the_same_numbers(tmp_path, case, dtype):
  _compare(tmp_path, case, dtype)
