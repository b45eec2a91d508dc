"""Memory is checked by arithmetic, and the setting that would fit is named."""

import dataclasses
import importlib
import re

import jax
import pytest

from experiments import memory_check
from experiments.config_file import UsageError
from experiments.configs import bench_update_0_5b, quickstart
from leap_jax import draws, lora, memory, sampling, sharding
from leap_jax.models import sizes, transformer
from leap_jax.types import RolloutShape

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
  needs = memory.needs(model, memory_check.plan_of(config, model, 1))
  count = memory.num_params(model)
  assert needs.held == {"parameters": 4 * count, "moments": 8 * count}
  assert needs.update["weights"] == 2 * count
  # 256 rows of 1,024 tokens and a spare one, 24 layers of 2 x 2 heads of 64,
  # float32.
  assert needs.sampling["caches"] == 256 * 1025 * 24 * 2 * 2 * 64 * 4
  # Two devices hold half of what is kept, each, and half of the rows.
  two = memory.needs(model, memory_check.plan_of(config, model, 2))
  assert two.held["moments"] == needs.held["moments"] // 2
  assert two.update["activations"] == needs.update["activations"] // 2
  # Adapters have masters and moments of their own only.
  config.policy.lora_rank = 8
  small = memory.needs(model, memory_check.plan_of(config, model, 1))
  assert small.held["moments"] < needs.held["moments"] / 50
  assert small.held["parameters"] > 2 * count


def test_memory_falls_from_policy_to_policy():
  config = bench_update_0_5b.get_config()
  model = sizes.model_config(config.policy.size)
  plan = memory_check.plan_of(config, model, 1)
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
  needs = memory.needs(model, memory_check.plan_of(config, model, 1))
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
    (24, "config.policy.remat=block would fit"),
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


@pytest.mark.parametrize("present_gib", [9, 12])
def test_the_advice_fits_and_asks_for_no_more_than_it_takes(present_gib):
  config = bench_update_0_5b.get_config()
  model = sizes.model_config(config.policy.size)
  present = present_gib * GIB
  with pytest.raises(UsageError) as error:
    memory_check.check(config, model, present=present)
  advised = re.findall(r"config\.([a-z_.]+)=(\w+)", str(error.value))
  assert advised

  def fits(changes):
    changed = config.copy_and_resolve_references()
    changed.update_from_flattened_dict(
      {name: int(x) if x.isdigit() else x for name, x in changes}
    )
    needs = memory.needs(model, memory_check.plan_of(changed, model, 1))
    return needs.peak <= present

  assert fits(advised)
  for one in advised:
    assert not fits([other for other in advised if other != one])


@pytest.mark.parametrize(
  "part, phases",
  [
    (memory_check.whole_run, ("held", "update", "sampling")),
    (memory_check.update_alone, ("held", "update")),
    (memory_check.sampling_alone, ("sampling",)),
  ],
)
def test_a_program_needs_memory_for_what_it_does(part, phases):
  config = bench_update_0_5b.get_config()
  model = sizes.model_config(config.policy.size)
  needs = memory.needs(model, memory_check.plan_of(config, model, 1))
  found = part(needs)
  for name in ("held", "update", "sampling"):
    assert getattr(found, name) == (
      getattr(needs, name) if name in phases else {}
    )
  with pytest.raises(UsageError, match="would fit"):
    memory_check.check(config, model, found.peak - 1, part)
  memory_check.check(config, model, found.peak, part)


GROUPS = RolloutShape(
  num_problems=64,
  group_size=16,
  num_turns=3,
  max_prompt_tokens=512,
  max_feedback_tokens=64,
  max_new_tokens=256,
  max_context_tokens=1344,
  row_buckets=(64,),
)


def sampling_of(num_problems=64, **changes):
  """GiB by what they are for: 16 samples, Qwen2.5-0.5B, cuDNN's layout."""
  config = bench_update_0_5b.get_config()
  model = sizes.model_config(config.policy.size)
  shares = changes.pop("shares_prompts", False)
  plan = dataclasses.replace(
    memory_check.plan_of(config, model, 1),
    shape=dataclasses.replace(GROUPS, num_problems=num_problems),
    sampler=sampling.Settings(
      draws.Rule(),
      (),
      dtype="bfloat16",
      implementation="cudnn",
      shares_prompts=shares,
    ),
    **changes,
  )
  return {k: b / GIB for k, b in memory.needs(model, plan).sampling.items()}


def test_shared_prompts_are_held_once():
  # A token: 24 layers of 2 x 2 heads of 64 in 16 bits, 12 KiB. Alone: 1,024
  # rows of 21 tiles of 64 and a spare one. Shared: 64 prompts of 512 tokens,
  # and 1,024 rows of 256 + 2 x (256 + 64) in 14 tiles and a spare one.
  token = 24 * 2 * 2 * 64 * 2 / GIB
  alone, shared = sampling_of(), sampling_of(shares_prompts=True)
  assert alone["caches"] == pytest.approx(1024 * 22 * 64 * token)
  assert shared["caches"] == pytest.approx((64 * 512 + 1024 * 15 * 64) * token)


def test_devices_share_problems_that_do_not_divide():
  one, eight = sampling_of(60), sampling_of(60, data_devices=8)
  # 8 problems on each device, logits too, but all of the weights.
  assert eight["caches"] == pytest.approx(one["caches"] * 8 / 60)
  assert eight["logits"] == pytest.approx(one["logits"] * 8 / 60)
  weights = 2 * memory.num_params(sizes.model_config("qwen2.5-0.5b")) / GIB
  assert eight["weights"] == pytest.approx(weights * (1 + 1 / 8))


def test_devices_that_do_not_divide_are_one_line():
  config = bench_update_0_5b.get_config()
  config.run.model_devices = 2
  model = sizes.model_config(config.policy.size)
  with pytest.raises(sharding.MeshError, match="model_devices=2 does not"):
    memory_check.plan_of(config, model, 1)


def test_shared_prompts_are_named_where_they_would_fit(monkeypatch):
  config = bench_update_0_5b.get_config()
  config.policy.remat = "block"
  config.rollout.num_problems, config.rollout.group_size = 64, 16
  model = sizes.model_config(config.policy.size)
  plan = memory_check.plan_of(config, model, 1)
  with_cudnn = dataclasses.replace(
    plan.sampler, dtype="bfloat16", implementation="cudnn"
  )
  plan = dataclasses.replace(plan, sampler=with_cudnn)
  monkeypatch.setattr(memory_check, "plan_of", lambda *_: plan)
  with pytest.raises(UsageError, match="shared_prompts=True would fit"):
    memory_check.check(config, model, present=24 * GIB)


def test_what_reading_takes_is_what_the_compiler_says(model):
  shape = RolloutShape(4, 8, 2, 64, 48, 16, 144, (16,))
  config = quickstart.get_config()
  plan = dataclasses.replace(
    memory_check.plan_of(config, model, 1), shape=shape
  )
  state = jax.eval_shape(
    lambda: sampling.empty_state(model, shape, plan.sampler)
  )
  params = jax.eval_shape(
    lambda key: transformer.init(model, key), jax.random.key(0)
  )
  weights = jax.eval_shape(
    lambda p: sampling.weights_of(model, plan.sampler, p), params
  )
  vector = lambda n: jax.ShapeDtypeStruct((n,), "int32")
  read = lambda *inputs: sampling.read_more(
    model, shape, plan.sampler, 145, *inputs
  )
  compiled = (
    jax.jit(read, donate_argnums=1)
    .lower(
      weights,
      state,
      vector(32),
      jax.ShapeDtypeStruct((32, 48), "int32"),
      vector(32),
    )
    .compile()
  )
  measured = compiled.memory_analysis().temp_size_in_bytes
  needs = memory.needs(model, plan).sampling
  assert needs["working memory"] == pytest.approx(measured, rel=0.35)
