"""Everything that is compiled before the first iteration."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tqdm

from experiments import compute
from experiments.config_file import UsageError
from experiments.state import Run
from leap_jax import (
  batching,
  buffer,
  corrections,
  draw_kernels,
  draws,
  fitting,
  methods,
  optimizer,
  sampler,
  sampling,
  sharding,
  update,
)
from leap_jax.models import attention, attention_choice, joined_layers
from leap_jax.types import Bucket, TrainState


@dataclasses.dataclass(frozen=True)
class Programs:
  """What is compiled before the first iteration."""

  method: methods.Method
  sampler: sampler.Sampler
  buffer: buffer.Programs
  update: Callable[..., tuple[TrainState, dict]]
  specs: tuple[batching.BucketSpec, ...]
  # What the sampler gets of a state.
  policy: Callable[[TrainState], Any] = lambda state: state.params


def make_optimizer(config):
  """Of the LEAP iterations."""
  l = config.learner
  return optimizer.make_optimizer(
    learning_rate=l.learning_rate,
    warmup_steps=l.warmup_updates,
    total_steps=None,
    final_fraction=1.0,
    max_grad_norm=l.max_grad_norm,
    weight_decay=l.weight_decay,
    b1=l.b1,
    b2=l.b2,
  )


def sampler_settings(config, model, stop_tokens) -> sampling.Settings:
  """How a run samples.

  Raises:
    UsageError: this machine or this model cannot sample so.
  """
  s, group_size = config.sampler, config.rollout.group_size
  implementation = s.attention
  if implementation == "auto":
    implementation = attention_choice.choose(s.dtype, model)
  elif implementation == attention.CUDNN:
    fault = attention_choice.fault_of_cudnn(s.dtype, model)
    if fault is not None:
      raise UsageError(f"config.sampler.attention=cudnn: {fault}")
  if s.shared_prompts:
    fault = attention_choice.fault_of_sharing(s.dtype, model, group_size)
    if fault is not None:
      raise UsageError(f"config.sampler.shared_prompts=True: {fault}")
  joins_kernels = joined_layers.are_usable(s.dtype, model, implementation)
  return sampling.Settings(
    rule=draws.Rule(config.rollout.temperature, s.top_k, s.top_p, s.min_p),
    stop_tokens=tuple(stop_tokens),
    dtype=s.dtype,
    implementation=implementation,
    max_slots=s.max_slots,
    slot_ratio=s.slot_ratio,
    least_slots=s.least_slots,
    idle_fraction=s.idle_fraction,
    prefix_step=s.prefix_step,
    prompts_per_call=s.prompts_per_call,
    shares_prompts=s.shared_prompts,
    joins_kernels=joins_kernels,
    draws_by_kernel=draw_kernels.is_usable(joins_kernels),
    token_implementation=attention_choice.choose_for_one_token(
      s.dtype, model, implementation, group_size if s.shared_prompts else 0
    ),
  )


def fault_of_dtypes(config) -> str | None:
  """What it costs that sampler and trainer compute in different types."""
  policy, sampling_ = config.policy.dtype, config.sampler.dtype
  if policy == sampling_:
    return None
  return (
    f"config.policy.dtype={policy} and config.sampler.dtype={sampling_}: they "
    "round differently (update/log_ratio_mean), and weights are held in both"
  )


def make_method(method) -> methods.Method:
  """From the section `method` of a config."""
  return methods.make_method(
    method.name,
    gate=method.gate,
    reward=method.reward,
    credit=method.credit,
    f_lo=method.f_lo,
    f_hi=method.f_hi,
    gamma=method.gamma,
  )


def compile_update(
  run: Run, state: TrainState, buckets: tuple[Bucket, ...]
) -> fitting.Fitted:
  """The update that the settings ask for, with their optimizer and loss.

  Args:
    run: settings, model, devices, and what is trained.
    state: only shapes and shardings matter.
    buckets: likewise.

  Raises:
    DoesNotFit: into the memory of a device.
  """
  return compute.compile_update(
    run,
    state,
    make_optimizer(run.config),
    make_policy_loss(run.config),
    buckets,
  )


def make_policy_loss(config) -> update.Objective:
  """The loss of an iteration, with the correction if there is one."""
  objective = update.make_policy_loss(
    temperature=config.rollout.temperature,
    clip_low=config.learner.clip_low,
    clip_high=config.learner.clip_high,
    kl_coef=config.learner.kl_coef,
  )
  if config.method.correction == "none":
    return objective
  correction = corrections.CORRECTIONS[config.method.correction](
    config.method.mirror_pop_delta
  )
  return objective._replace(
    loss_fn=corrections.corrected(
      objective.loss_fn, correction, lambda stats, micro: stats.logprobs
    )
  )


def _say_idle(run):
  """Tells of devices that a share of the rollout leaves without work."""
  problems, devices = run.shape.num_problems, run.mesh.shape["data"]
  idle = -problems % devices
  if idle:
    run.say(
      f"config.rollout.num_problems={problems} on {devices} devices: room for "
      f"{idle} more is left empty; a multiple of {devices} fills it"
    )


def compile_programs(run: Run, state: TrainState) -> Programs:
  """Compiles everything, the largest first; shows what it is doing."""
  config = run.config
  method = make_method(config.method)
  fault = fault_of_dtypes(config)
  if fault is not None:
    run.say(f"warning: {fault}")
  specs = batching.bucket_specs(
    config.learner.bucket_tokens,
    config.learner.micro_tokens,
    run.mesh.shape["data"],
  )
  _say_idle(run)
  with tqdm.tqdm(desc="compile", unit="program") as bar:

    def on_compile(name):
      bar.set_postfix_str(name)
      bar.update()

    on_compile("update")
    empty, _ = batching.pack_rows([], specs, run.shape.num_rows)
    update_fn = compile_update(
      run, state, tuple(sharding.shard_rows(run.mesh, b) for b in empty)
    )
    on_compile("policy")
    policy = compute.compile_policy(run, state)
    samples = sampler.make_sampler(
      run.model,
      run.shape,
      sampler_settings(config, run.model, run.tokenizer.stop_tokens),
      policy(state),
      mesh=run.mesh,
      on_compile=on_compile,
    )
    on_compile("buffer")
    buffers = buffer.compile_programs(run.shape)
  return Programs(method, samples, buffers, update_fn, specs, policy)
