"""Memory needed against memory present, before anything is loaded."""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

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


class _Change(NamedTuple):
  """A setting that would need less."""

  name: str
  value: object
  apply: Callable[[memory.Plan], memory.Plan]


def _sets(name, value, **fields):
  return _Change(name, value, lambda p: dataclasses.replace(p, **fields))


def _sampler_sets(name, value, **fields):
  return _Change(
    name,
    value,
    lambda p: dataclasses.replace(
      p, sampler=dataclasses.replace(p.sampler, **fields)
    ),
  )


def _smaller(config, model, plan) -> Iterator[_Change]:
  """Settings that would need less, the one that costs least first."""
  sampler = plan.sampler
  if (
    sampler.implementation == attention.CUDNN
    and not sampler.shares_prompts
    and not model.local_layers
  ):
    yield _sampler_sets("sampler.shared_prompts", True, shares_prompts=True)
  if plan.remat != "block":
    yield _sets("policy.remat", "block", remat="block")
  if plan.head != "chunked":
    yield _sets("learner.head", "chunked", head="chunked")
  least = config.learner.bucket_tokens[-1] * plan.data_devices
  tokens = plan.micro_tokens
  while tokens // 2 >= least:
    tokens //= 2
    yield _sets("learner.micro_tokens", tokens, micro_tokens=tokens)
  if plan.head == "chunked" and plan.head_tokens > 1024:
    yield _sets("learner.head_tokens", 1024, head_tokens=1024)
  if plan.dtype == "float32":
    yield _sets("policy.dtype", "bfloat16", dtype="bfloat16")
  if sampler.dtype == "float32":
    yield _sampler_sets("sampler.dtype", "bfloat16", dtype="bfloat16")
  problems = plan.shape.num_problems
  while problems > plan.data_devices:
    problems = max(problems // 2, plan.data_devices)
    fewer = dataclasses.replace(plan.shape, num_problems=problems)
    yield _sets("rollout.num_problems", problems, shape=fewer)
  if plan.lora_rank == 0:
    yield _sets("policy.lora_rank", 16, lora_rank=16)


def _fewest(choices, fits):
  """Changes that fit together, of which none can be left out or be milder."""
  chosen: dict[str, _Change] = {}
  for change in choices:
    chosen[change.name] = change
    if fits(chosen.values()):
      break
  else:
    return None
  for name in list(chosen):
    others = [change for key, change in chosen.items() if key != name]
    if fits(others):
      del chosen[name]
      continue
    milder = (c for c in choices if c.name == name)
    chosen[name] = next(c for c in milder if fits([*others, c]))
  return chosen.values()


def _advice(config, model, plan, present, part):
  """The setting that would fit; several where no single one does."""

  def fits(changes):
    changed = functools.reduce(lambda p, c: c.apply(p), changes, plan)
    return part(memory.needs(model, changed)).peak <= present

  choices = list(_smaller(config, model, plan))
  for change in choices:
    if fits([change]):
      return f"config.{change.name}={change.value} would fit"
  together = _fewest(choices, fits)
  if together is None:
    return "no setting of this policy fits; take a smaller one, or more devices"
  names = ", ".join(f"config.{c.name}={c.value}" for c in together)
  return f"{names} together would fit"


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


def whole_run(needs: memory.Needs) -> memory.Needs:
  """Both phases, and what is held over them."""
  return needs


def update_alone(needs: memory.Needs) -> memory.Needs:
  """Of a program that samples nothing."""
  return dataclasses.replace(needs, sampling={})


def sampling_alone(needs: memory.Needs) -> memory.Needs:
  """Of a program that trains nothing: no masters, no moments."""
  return memory.Needs({}, {}, needs.sampling)


def check(
  config,
  model: ModelConfig,
  present: int | None = None,
  part: Callable[[memory.Needs], memory.Needs] = whole_run,
) -> str:
  """Refuses a run that cannot fit.

  Args:
    config: all settings.
    model: of the policy.
    present: bytes of each device; None asks the devices.
    part: what the program does of it: one of the functions above.

  Returns:
    A line about what is needed.

  Raises:
    UsageError: with what is needed, what is present, and what would fit.
  """
  present = present_bytes() if present is None else present
  plan = plan_of(config, model, jax.device_count())
  needs = part(memory.needs(model, plan))
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
    advice = _advice(config, model, plan, present, part)
    raise UsageError(f"{text}; {advice}")
  return text
