"""Everything that is compiled before the first iteration."""

import dataclasses
from collections.abc import Callable

import tqdm

from experiments.state import Run
from leap_jax import (
  batching,
  buffer,
  corrections,
  losses,
  methods,
  optimizer,
  sampler,
  sharding,
  update,
)
from leap_jax.types import TrainState


@dataclasses.dataclass(frozen=True)
class Programs:
  """What is compiled before the first iteration."""

  method: methods.Method
  sampler: sampler.Sampler
  buffer: buffer.Programs
  update: Callable[..., tuple[TrainState, dict]]
  specs: tuple[batching.BucketSpec, ...]


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


def make_policy_loss(config) -> update.LossFn:
  """The loss of an iteration, with the correction if there is one."""
  temperature = config.rollout.temperature
  loss_fn = update.make_policy_loss(
    temperature=temperature,
    clip_low=config.learner.clip_low,
    clip_high=config.learner.clip_high,
    kl_coef=config.learner.kl_coef,
  )
  if config.method.correction == "none":
    return loss_fn
  correction = corrections.CORRECTIONS[config.method.correction](
    config.method.mirror_pop_delta
  )
  return corrections.corrected(
    loss_fn,
    correction,
    lambda logits, micro: losses.token_logprobs(
      logits, micro.tokens, temperature=temperature
    ),
  )


def compile_programs(run: Run, state: TrainState) -> Programs:
  """Compiles everything, the largest first; shows what it is doing."""
  config = run.config
  method = make_method(config.method)
  specs = batching.bucket_specs(
    config.learner.bucket_tokens,
    config.learner.micro_tokens,
    run.mesh.shape["data"],
  )
  with tqdm.tqdm(desc="compile", unit="program") as bar:

    def on_compile(name):
      bar.set_postfix_str(name)
      bar.update()

    on_compile("update")
    empty, _ = batching.pack_rows([], specs, run.shape.num_rows)
    update_fn = update.compile_update(
      update.make_update(
        run.model,
        make_optimizer(config),
        make_policy_loss(config),
      ),
      state,
      tuple(sharding.shard_rows(run.mesh, b) for b in empty),
    )
    sampling = sampler.make_sampler(
      run.model,
      run.shape,
      state.params,
      temperature=config.rollout.temperature,
      stop_tokens=run.tokenizer.stop_tokens,
      on_compile=on_compile,
    )
    on_compile("buffer")
    buffers = buffer.compile_programs(run.shape)
  return Programs(method, sampling, buffers, update_fn, specs)
