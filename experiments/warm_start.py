"""The supervised stage: conversations before reinforcement learning."""

import time
from collections.abc import Sequence

import jax

from experiments import compute
from experiments.state import Progress, Run, check_finite, save
from leap_jax import batching, conversations, optimizer, sharding, update
from leap_jax.types import Message, Rollouts, TrainState


def make_optimizer(config):
  """Of the supervised stage."""
  w = config.warm_start
  return optimizer.make_optimizer(
    learning_rate=w.learning_rate,
    warmup_steps=w.warmup_steps,
    total_steps=w.num_steps,
    final_fraction=0.05,
    max_grad_norm=1.0,
    weight_decay=0.01,
    b1=0.9,
    b2=0.95,
  )


def warm_start(
  run: Run,
  state: TrainState,
  progress: Progress,
  rollouts: Rollouts,
  dataset: Sequence[Sequence[Message]],
) -> TrainState:
  """Supervised steps on conversations."""
  config = run.config.warm_start
  longest = run.config.learner.bucket_tokens[-1]
  rows = [conversations.make_row(run.tokenizer, c, longest) for c in dataset]
  fitting = [row for row in rows if row is not None]
  run.say(
    f"warm start: {len(fitting)} conversations "
    f"({len(rows) - len(fitting)} too long)"
  )
  specs = batching.bucket_specs(
    run.config.learner.bucket_tokens,
    run.config.learner.micro_tokens,
    run.mesh.shape["data"],
  )

  def batch_at(step):
    picked = conversations.at_step(
      fitting, run.config.seed, step, config.batch_rows
    )
    buckets, _ = batching.pack_rows(
      conversations.normalized(picked), specs, config.batch_rows
    )
    return tuple(sharding.shard_rows(run.mesh, b) for b in buckets)

  step_fn = compute.compile_update(
    run,
    state,
    make_optimizer(run.config),
    update.SUPERVISED,
    batch_at(0),
    stage="warm_start",
  )
  with run.bar(config.num_steps, "warm start", progress.warm_steps) as bar:
    while progress.warm_steps < config.num_steps:
      started = time.perf_counter()
      step = progress.warm_steps
      state, values = step_fn(state, batch_at(step))
      values = jax.device_get(values)
      check_finite(values, f"warm-start step {step}")
      progress.warm_steps += 1
      progress.spend("warm_start", time.perf_counter() - started)
      if (
        step % config.log_every == 0 or progress.warm_steps == config.num_steps
      ):
        run.writer.write(
          step,
          {
            "warm/loss": values["loss"],
            "warm/entropy": values["entropy"],
            "warm/grad_norm": values["grad_norm"],
            "seconds/total": time.perf_counter() - started,
          },
        )
        bar.set_postfix(loss=f"{values['loss']:.4f}", refresh=False)
      bar.update()
      left = config.num_steps - progress.warm_steps
      if left and progress.warm_steps % config.checkpoint_every == 0:
        save(run, state, rollouts, progress)
  return state
