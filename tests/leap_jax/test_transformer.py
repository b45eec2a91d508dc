"""The decoder: a NumPy reference of every family, the cache, padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax.models import decoding, sizes, transformer, whole_rows
from leap_jax.models.config import ModelConfig
from leap_jax.models.rope import Scaling
from tests.leap_jax.decoder_reference import reference_forward

# A small model of each family, with every part that the family has.
SMALL = dict(
  vocab_size=50, width=24, num_layers=3, num_heads=4, num_kv_heads=2,
  head_size=8, mlp_width=40,
)  # fmt: skip
FAMILIES = {
  "ours": ModelConfig(**SMALL),
  "llama": ModelConfig(
    **SMALL, has_qk_norm=False, tied_head=False,
    rope_scaling=Scaling("llama3", 8.0, 64),
  ),
  "llama with biases": ModelConfig(
    **SMALL, has_qk_norm=False, has_qkv_bias=True, has_out_bias=True,
    rope_scaling=Scaling("linear", 4.0),
  ),
  "qwen2": ModelConfig(
    **SMALL, has_qk_norm=False, has_qkv_bias=True, padding_ids=6,
    rope_scaling=Scaling("yarn", 4.0, 32, attention_factor=1.14),
  ),
  "qwen3": ModelConfig(**SMALL | dict(head_size=16), rope_theta=1e6),
  "gemma3": ModelConfig(
    **SMALL, has_post_norms=True, norm_offset=1.0, embedding_scale=24**0.5,
    activation="gelu_tanh", attention_scale=0.3, local_layers=(0, 2),
    local_window=3, local_rope_theta=100.0, rope_theta=1e6,
  ),
}  # fmt: skip


@pytest.fixture(params=FAMILIES)
def family(request):
  """A model and parameters of which none is at its initial 0 or 1."""
  config = FAMILIES[request.param]
  params = jax.jit(lambda key: transformer.init(config, key))(jax.random.key(0))
  leaves, tree = jax.tree.flatten(params)
  rng = np.random.default_rng(0)
  moved = [x + 0.2 * rng.standard_normal(x.shape, np.float32) for x in leaves]
  return config, jax.tree.unflatten(tree, moved)


TOKENS = np.asarray([5, 9, 30, 2, 47, 5, 5, 11])


def test_forward_equals_the_reference(family):
  config, params = family
  got = whole_rows.hidden_states(config, params, jnp.asarray(TOKENS)[None])
  hidden, logits = reference_forward(config, params, TOKENS)
  np.testing.assert_allclose(got[0], hidden, rtol=1e-4, atol=1e-4)
  got = transformer.logits_of(config, params, got)[0]
  np.testing.assert_allclose(
    got[:, : config.num_ids], logits, rtol=1e-4, atol=2e-4
  )


def test_an_id_that_no_token_has_is_never_likely():
  config = FAMILIES["qwen2"]
  params = transformer.init(config, jax.random.key(0))
  hidden = whole_rows.hidden_states(config, params, jnp.asarray(TOKENS)[None])
  logits = transformer.logits_of(config, params, hidden)
  assert (jax.nn.softmax(logits)[..., config.num_ids :] == 0).all()
  assert np.isfinite(logits).all()


def test_every_family_reads_in_parts_as_at_once(family):
  config, params = family
  tokens = jnp.asarray([TOKENS, TOKENS[::-1]])

  @jax.jit
  def in_parts(params):
    weights = decoding.weights_of(config, params, jnp.float32)
    caches = decoding.empty_caches(config, 2, 16, jnp.float32)
    full = lambda n: jnp.full(2, n, jnp.int32)
    rows = jnp.arange(2)
    first, caches = decoding.read_prompts(
      config, weights, caches, tokens[:, :4], full(4), rows[:, None], "xla"
    )
    idle = jnp.zeros(2, bool)
    second, caches = decoding.add_token(
      config, weights, caches, None, tokens[:, 4], full(4), idle, None, "xla"
    )
    third, _ = decoding.read_more(
      config,
      weights,
      caches,
      None,
      tokens[:, 5:],
      full(3),
      full(5),
      rows,
      12,
      "xla",
    )
    return jnp.stack([first, second, third], 1)

  whole = whole_rows.hidden_states(config, params, tokens)[
    :, jnp.asarray([3, 4, 7])
  ]
  np.testing.assert_allclose(in_parts(params), whole, rtol=1e-4, atol=1e-4)


def test_rows_of_different_lengths_share_a_cache(model, params):
  # Row 0 has 3 tokens, row 1 has 5; padding of row 0 must leave no trace.
  told = [[4, 8, 15], [16, 23, 42, 4, 8]]
  padded = jnp.asarray([told[0] + [99, 98], told[1]])
  lengths, rows = jnp.asarray([3, 5]), jnp.arange(2)
  more = jnp.asarray([[7, 6], [5, 4]])

  @jax.jit
  def read(params):
    weights = decoding.weights_of(model, params, jnp.float32)
    caches = decoding.empty_caches(model, 2, 12, jnp.float32)
    _, caches = decoding.read_prompts(
      model, weights, caches, padded, lengths, rows[:, None], "xla"
    )
    told = jnp.asarray([1, 2])
    return decoding.read_more(
      model, weights, caches, None, more, told, lengths, rows, 12, "xla"
    )[0]

  got = read(params)
  for i, row in enumerate(told):
    full = jnp.asarray([row + more[i].tolist()[: i + 1]])
    expected = whole_rows.hidden_states(model, params, full)[0, -1]
    np.testing.assert_allclose(got[i], expected, atol=2e-5)


def test_padding_behind_a_row_changes_nothing_before_it(model, params):
  tokens = jnp.asarray([[4, 8, 15, 16]])
  padded = jnp.asarray([[4, 8, 15, 16, 0, 0, 7]])
  np.testing.assert_allclose(
    whole_rows.hidden_states(model, params, padded)[:, :4],
    whole_rows.hidden_states(model, params, tokens),
    atol=1e-6,
  )


# Of the published models, as counted by those who published them; a tied head
# counts once.
@pytest.mark.parametrize(
  "size,count",
  [
    ("smollm2-135m", 134_515_008),
    ("smollm2-360m", 361_821_120),
    ("smollm2-1.7b", 1_711_376_384),
    ("qwen2.5-0.5b", 494_032_768),
    ("qwen2.5-1.5b", 1_543_714_304),
    ("qwen2.5-7b", 7_615_616_512),
    ("qwen3-0.6b", 596_049_920),
    ("qwen3-1.7b", 1_720_574_976),
    ("qwen3-4b", 4_022_468_096),
    ("qwen3-8b", 8_190_735_360),
    ("llama3.2-1b", 1_235_814_400),
    ("llama3.2-3b", 3_212_749_824),
    ("gemma3-270m", 268_098_176),
    ("gemma3-1b", 999_885_952),
  ],
)
def test_a_published_size_has_the_published_number_of_parameters(size, count):
  config = sizes.model_config(size)
  shapes = jax.eval_shape(
    lambda key: transformer.init(config, key), jax.random.key(0)
  )
  assert transformer.num_params(shapes) == count


@pytest.mark.parametrize(
  "fields,text",
  [
    ({}, "local_window=None: layers \\(0,\\) see only so many tokens"),
    (
      {
        "local_window": 4,
        "local_rope_theta": 100.0,
        "rope_scaling": Scaling("yarn", 4.0, 64, attention_factor=1.1),
      },
      "attention_factor=1.1 cannot be with layers of their own",
    ),
  ],
)
def test_parts_that_do_not_go_together_are_refused(fields, text):
  with pytest.raises(ValueError, match=text):
    ModelConfig(**SMALL, local_layers=(0,), **fields)
