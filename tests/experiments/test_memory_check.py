"""Memory is checked by arithmetic, and the setting that would fit is named."""

import dataclasses
import importlib

import jax
import pytest

from experiments import memory_check
from experiments.config_file import UsageError
from experiments.configs import bench_update_0_5b, quickstart
from leap_jax import lora, memory
from leap_jax.models import sizes, transformer

GIB = 2**30


def test_parameters_are_counted_without_making_them():
  model = sizes.model_config("micro", 64)
  params = transformer.init(model, jax.random.key(0))
  assert memory.num_params(model) == transformer.num_params(params)
  for targets in (("query", "key", "value", "out"), lora.TARGETS):
    adapters = lora.init(
      lora.LoraConfig(3, 6.0, targets), params, jax.random.key(1)
    )
    got = memory.num_adapter_params(model, 3, targets)
    assert got == transformer.num_params(adapters)


def test_each_part_of_half_a_billion_parameters():
  config = bench_update_0_5b.get_config()
  model = sizes.model_config(config.policy.size)
  needs = memory.needs(model, memory_check.plan_of(config, 1))
  count = memory.num_params(model)
  assert needs.held == {"parameters": 4 * count, "moments": 8 * count}
  assert needs.update["weights"] == 2 * count
  # 256 rows of 1,024 tokens, 24 layers of 2 x 2 heads of 64, float32.
  assert needs.sampling["caches"] == 256 * 1024 * 24 * 2 * 2 * 64 * 4
  # Two devices hold half of what is kept, each, and half of the rows.
  two = memory.needs(model, memory_check.plan_of(config, 2))
  assert two.held["moments"] == needs.held["moments"] // 2
  assert two.update["activations"] == needs.update["activations"] // 2
  # Adapters have masters and moments of their own only.
  config.policy.lora_rank = 8
  small = memory.needs(model, memory_check.plan_of(config, 1))
  assert small.held["moments"] < needs.held["moments"] / 50
  assert small.held["parameters"] > 2 * count


def test_memory_falls_from_policy_to_policy():
  config = bench_update_0_5b.get_config()
  model = sizes.model_config(config.policy.size)
  plan = memory_check.plan_of(config, 1)
  peaks = [
    memory.needs(model, dataclasses.replace(plan, remat=remat)).peak
    for remat in ("none", "dots", "block")
  ]
  assert peaks == sorted(peaks, reverse=True)


# GiB of the compiled update on an H200 (jax 0.11.2), bench_update_*.py.
@pytest.mark.parametrize(
  "name, remat, measured",
  [
    ("135m", "none", 76.1),
    ("135m", "dots", 26.0),
    ("0_5b", "none", 81.9),
    ("0_5b", "dots", 35.8),
    ("0_5b", "block", 17.2),
    ("0_6b", "dots", 42.3),
  ],
)
def test_the_estimate_is_what_an_h200_has_used(name, remat, measured):
  module = importlib.import_module(f"experiments.configs.bench_update_{name}")
  config = module.get_config()
  config.policy.remat = remat
  model = sizes.model_config(config.policy.size)
  needs = memory.needs(model, memory_check.plan_of(config, 1))
  total = sum(needs.held.values()) + sum(needs.update.values())
  assert measured * 0.99 < total / GIB < measured * 1.06


def test_what_fits_is_one_line():
  config = quickstart.get_config()
  model = sizes.model_config("tiny", 640)
  line = memory_check.check(config, model, present=8 * GIB)
  assert "of 8.00" in line and "\n" not in line


@pytest.mark.parametrize(
  "present_gib, words",
  [
    (20, "config.policy.remat=block would fit"),
    (9, "together would fit"),
    (0.1, "take a smaller one"),
  ],
)
def test_too_little_memory_names_what_would_fit(present_gib, words):
  config = bench_update_0_5b.get_config()
  model = sizes.model_config(config.policy.size)
  with pytest.raises(UsageError) as error:
    memory_check.check(config, model, present=int(present_gib * GIB))
  assert words in str(error.value), error.value
  assert "\n" not in str(error.value)
