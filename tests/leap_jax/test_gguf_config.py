"""What a GGUF file says of its decoder: stretched turns, local layers."""

import dataclasses
import math

import numpy as np
import pytest

from leap_jax import policy_io
from leap_jax.models import layer_rules, rope
from leap_jax.models.rope import Scaling
from leap_jax.pretrained import gguf_config, gguf_file
from tests.leap_jax.test_gguf import FIELDS, make


@pytest.mark.parametrize(
  "fields, expected",
  [
    (
      {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
      ("linear", 8.0),
    ),
    # A factor alone, under its name of today and of before.
    ({"rope.scaling.factor": 8.0}, ("linear", 8.0)),
    ({"rope.scale_linear": 8.0}, ("linear", 8.0)),
    ({"rope.scaling.type": "none", "rope.scaling.factor": 8.0}, ()),
    ({"rope.scaling.type": "linear", "rope.scaling.factor": 1.0}, ()),
    ({"rope.scaling.type": "linear"}, ()),
    ({}, ()),
    (
      {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 64,
      },
      ("yarn", 4.0, 64),
    ),
    # Of the file's context where it does not say.
    (
      {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0},
      ("yarn", 4.0, 128),
    ),
    (
      {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.yarn_beta_fast": 16.0,
        "rope.scaling.yarn_beta_slow": 2.0,
        "rope.scaling.yarn_attn_factor": 0.1 * math.log(4.0) + 1.0,
        "rope.scaling.yarn_ext_factor": 1.0,
      },
      ("yarn", 4.0, 128, 1.0, 4.0, 16.0, 2.0),
    ),
  ],
)
def test_turns_are_stretched_as_the_file_says(tmp_path, fields, expected):
  path, *_ = make(tmp_path, "qwen2", fields=fields)
  expected = Scaling(*expected)
  if expected.kind == "yarn":  # 0.1 ln(factor) + 1
    expected = dataclasses.replace(
      expected, attention_factor=1.1386294361119891
    )
  assert policy_io.open_policy(path).config.rope_scaling == expected


def test_gemmas_global_layers_alone_are_stretched(tmp_path):
  fields = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
  path, *_ = make(tmp_path, "gemma3", fields=FIELDS["gemma3"] | fields)
  config = policy_io.open_policy(path).config
  assert config.rope_scaling == Scaling("linear", 8.0)
  turns = rope.frequencies(8, 1e4, Scaling())
  rule = layer_rules.rule_of(config, config.local_layers[0])
  np.testing.assert_array_equal(rule.frequencies, turns)


@pytest.mark.parametrize(
  "pattern, local",
  [
    (2, (0,)),
    ([True, False], (0,)),
    ([False, True], (1,)),
    ([True], "sliding_window_pattern has 1 of 2 layers"),
  ],
)
def test_which_layers_are_local_may_be_listed(tmp_path, pattern, local):
  path, *_ = make(tmp_path, "gemma3")
  file = gguf_file.open_file(path)
  file.metadata["gemma3.attention.sliding_window_pattern"] = pattern
  if isinstance(local, str):
    with pytest.raises(ValueError, match=local):
      gguf_config.model_config(file)
  else:
    assert gguf_config.model_config(file).local_layers == local
