"""Memory needed against memory present, before anything is loaded."""

import dataclasses
import os
import pathlib
from collections.abc import Iterator

import jax

from experiments import programs
from experiments.config_file import UsageError
from experiments.state import rollout_shape
from leap_jax import fitting, hosts, memory, sharding
from leap_jax.models import attention
from leap_jax.models.config import ModelConfig

_GIB = 2**30


def plan_of(config, model: ModelConfig, num_devices: int) -> memory.Plan:
  """The sizes of a run. `auto` counts as the policy that needs least.

  Args:
    config: all settings.
    model: of the policy.
    num_devices: of all processes.

  Raises:
    MeshError: the devices do not divide.
  """
  policy, learner = config.policy, config.learner
  data = sharding.data_devices(num_devices, config.run.model_devices)
  return memory.Plan(
    dtype=policy.dtype,
    remat="block" if policy.remat == "auto" else policy.remat,
    # A micro-batch holds a row on each device at least.
    micro_tokens=max(learner.micro_tokens, learner.bucket_tokens[-1] * data),
    head=learner.head,
    head_tokens=learner.head_tokens,
    lora_rank=policy.lora_rank,
    lora_targets=tuple(policy.lora_targets),
    shape=rollout_shape(config),
    # What ends an answer takes no memory.
    sampler=programs.sampler_settings(config, model, stop_tokens=()),
    data_devices=data,
    model_devices=config.run.model_devices,
  )


def _smaller(config, model, plan) -> Iterator[tuple[str, dict]]:
  """Settings that would need less, the one that costs least first."""
  sampler = plan.sampler
  if (
    sampler.implementation == attention.CUDNN
    and not sampler.shares_prompts
    and not model.local_layers
  ):
    sampler = dataclasses.replace(sampler, shares_prompts=True)
    yield "sampler.shared_prompts=True", {"sampler": sampler}
  if plan.remat != "block":
    yield "policy.remat=block", {"remat": "block"}
  if plan.head != "chunked":
    yield "learner.head=chunked", {"head": "chunked"}
  least = config.learner.bucket_tokens[-1] * plan.data_devices
  tokens = plan.micro_tokens
  while tokens // 2 >= least:
    tokens //= 2
    yield f"learner.micro_tokens={tokens}", {"micro_tokens": tokens}
  if plan.head == "chunked" and plan.head_tokens > 1024:
    yield "learner.head_tokens=1024", {"head_tokens": 1024}
  if plan.dtype == "float32":
    yield "policy.dtype=bfloat16", {"dtype": "bfloat16"}
  if sampler.dtype == "float32":
    sampler = dataclasses.replace(sampler, dtype="bfloat16")
    yield "sampler.dtype=bfloat16", {"sampler": sampler}
  problems = plan.shape.num_problems
  while problems > plan.data_devices:
    problems = max(problems // 2, plan.data_devices)
    fewer = dataclasses.replace(plan.shape, num_problems=problems)
    yield f"rollout.num_problems={problems}", {"shape": fewer}
  if plan.lora_rank == 0:
    yield "policy.lora_rank=16", {"lora_rank": 16}


def _advice(config, model, plan, present):
  """The setting that would fit; several where no single one does."""
  fits = lambda changes: (
    memory.needs(model, dataclasses.replace(plan, **changes)).peak <= present
  )
  choices = list(_smaller(config, model, plan))
  for name, changes in choices:
    if fits(changes):
      return f"config.{name} would fit"
  together, names = {}, {}
  for name, changes in choices:
    together |= changes
    names[name.split("=")[0]] = f"config.{name}"
    if fits(together):
      return f"{', '.join(names.values())} together would fit"
  return "no setting of this policy fits; take a smaller one, or more devices"


def present_bytes() -> int:
  """Bytes of each device that a run may use: of the process that has least.

  All processes of a run call this, and get the same.
  """
  return min(hosts.from_all(_own_bytes()))


def _own_bytes():
  limit = fitting.limit_bytes(jax.local_devices()[0])
  if limit is not None:
    return limit
  total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
  # A container may have less than its machine.
  try:
    total = min(
      total, int(pathlib.Path("/sys/fs/cgroup/memory.max").read_text())
    )
  except (OSError, ValueError):
    pass
  return total // jax.local_device_count()


def check(config, model: ModelConfig, present: int | None = None) -> str:
  """Refuses a run that cannot fit.

  Args:
    config: all settings.
    model: of the policy.
    present: bytes of each device; None asks the devices.

  Returns:
    A line about what is needed.

  Raises:
    UsageError: with what is needed, what is present, and what would fit.
  """
  present = present_bytes() if present is None else present
  plan = plan_of(config, model, jax.device_count())
  needs = memory.needs(model, plan)
  update, sampling = (
    sum(phase.values()) for phase in (needs.update, needs.sampling)
  )
  largest = needs.held | (needs.update if update > sampling else needs.sampling)
  parts = ", ".join(
    f"{name} {size / _GIB:.2f}"
    for name, size in sorted(largest.items(), key=lambda item: -item[1])
    if size > 0.005 * needs.peak
  )
  phase = "the update" if update > sampling else "sampling"
  text = (
    f"memory of each device, at {phase}: about {needs.peak / _GIB:.2f} GiB "
    f"({parts}) of {present / _GIB:.2f}"
  )
  if needs.peak > present:
    raise UsageError(f"{text}; {_advice(config, model, plan, present)}")
  return text
