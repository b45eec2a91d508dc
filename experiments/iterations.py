"""LEAP iterations: roll out, rank, update."""

import dataclasses
import time

import jax

from experiments import budget, eval_schedule, heldout, workdir
from experiments.gathering import Gathered, gather
from experiments.iteration_metrics import iteration_metrics
from experiments.programs import Programs
from experiments.state import NonFinite, Progress, Run, check_finite, save
from leap_jax import batching, hosts, losses, sharding
from leap_jax.types import Rollouts, TrainState


def iterate(
  run: Run, programs: Programs, state: TrainState, index: int
) -> tuple[TrainState, Gathered, dict[str, float]]:
  """One iteration: rollouts, advantages, update.

  Returns:
    The new state, what was gathered, and the metrics.
  """
  config = run.config
  started = time.perf_counter()
  judged = run.pool.num_evaluated
  before = dataclasses.replace(run.compiled)
  gathered = gather(run, programs, programs.policy(state), index)
  update_started = time.perf_counter()
  batch = batching.make_batch(
    gathered.host,
    gathered.advantages,
    programs.specs,
    normalization=losses.NORMALIZATIONS[config.learner.normalization],
    denominator=losses.DENOMINATORS[config.learner.denominator],
    max_new_tokens=run.shape.max_new_tokens,
  )
  first, last = None, None
  if not batch.is_empty:
    buckets = tuple(sharding.shard_rows(run.mesh, b) for b in batch.buckets)
    for _ in range(config.learner.updates_per_iteration):
      state, values = programs.update(state, buckets)
      last = jax.device_get(values)
      first = first or last
      check_finite(last, f"iteration {index}")
    _check_parity(run, first, index)
  values = iteration_metrics(run, gathered, batch, first, last)
  update_seconds = time.perf_counter() - update_started
  total_seconds = time.perf_counter() - started
  busy = gathered.stats.sample_seconds + update_seconds
  values |= {
    "kernels/judged": run.pool.num_evaluated - judged,
    "kernels/judge_restarts": run.pool.num_restarts,
    "seconds/update": update_seconds,
    "seconds/total": total_seconds,
    "idle/accelerator": max(1.0 - busy / total_seconds, 0.0),
    "idle/harness": 1.0 - gathered.stats.judge_seconds / total_seconds,
    "compile/count": run.compiled.count - before.count,
    "compile/seconds": run.compiled.seconds - before.seconds,
  }
  return state, gathered, values


def _check_parity(run, first, index):
  """Sampler and trainer must agree on what was sampled."""
  gap = float(first["log_ratio_max"])
  learner = run.config.learner
  text = (
    f"iteration {index}: sampler and trainer log-probabilities differ by up to "
    f"{gap:.2e} (mean {float(first['log_ratio_mean']):.1e}, 95 % below "
    f"{float(first['log_ratio_p95']):.1e})"
  )
  if learner.stop_log_ratio is not None and gap > learner.stop_log_ratio:
    raise NonFinite(f"{text}; above learner.stop_log_ratio")
  if gap > learner.max_log_ratio:
    run.say(f"warning: {text}")
  if not bool(first["changed"]):
    run.say(
      f"warning: iteration {index}: the update changed no parameter (learning "
      "rate too small for their precision?)"
    )


def train(
  run: Run,
  programs: Programs,
  state: TrainState,
  rollouts: Rollouts,
  progress: Progress,
) -> tuple[TrainState, Rollouts]:
  """All iterations that are left."""
  config = run.config
  offset = progress.warm_steps
  total = config.run.num_iterations
  is_done = lambda: budget.is_spent(
    progress.iterations,
    progress.training_seconds,
    num_iterations=total,
    max_training_s=config.run.max_training_s,
  )
  with run.bar(total, config.method.name, progress.iterations) as bar:
    while not is_done():
      index = progress.iterations
      state, gathered, values = iterate(run, programs, state, index)
      rollouts = gathered.rollouts
      progress.iterations += 1
      progress.evaluated = None
      _count(progress, gathered, values)
      # The last one too: where the run goes on, its curve has this point.
      if eval_schedule.is_due(
        progress.iterations, config.eval.every, config.eval.growth
      ):
        progress.evaluated = heldout.evaluate(
          run, programs, state, progress, f"iteration {index + 1}"
        )
        values |= heldout.eval_metrics(progress.evaluated)
      run.writer.write(offset + index, values)
      if config.run.save_trajectories:
        for number, once in enumerate(gathered.rounds):
          name = f"iteration_{index:06d}" + (f"_refill_{number}" * (number > 0))
          workdir.save_trajectories(run.workdir, name, once.trajectories)
      if values["update/skipped"]:
        why = _why_skipped(gathered)
        run.say(f"iteration {index}: {why}; the update was skipped")
      bar.set_postfix(
        acc1=f"{values['rollout/acc_at_1']:.2f}",
        active=f"{values['rollout/activation']:.2f}",
        refresh=False,
      )
      bar.update()
      if progress.iterations % config.run.checkpoint_every == 0 or is_done():
        save(run, state, rollouts, progress)
  return state, rollouts


def _why_skipped(gathered: Gathered) -> str:
  """What to say when nothing can be learned."""
  why = "no group has both successes and failures"
  if not gathered.num_faults:
    return why
  num_samples = sum(once.ok.size for once in gathered.rounds)
  return (
    f"the harness lost {gathered.num_faults} of {num_samples} samples, and "
    f"among the others {why}"
  )


def _count(progress: Progress, gathered: Gathered, values: dict) -> None:
  """Adds an iteration to the totals."""
  stats = gathered.stats
  progress.training.sampled_tokens += stats.sampled_tokens
  progress.training.harness_calls += stats.harness_calls
  progress.training.kernels_judged += int(values["kernels/judged"])
  # One clock for all processes: they end the run at the same iteration. It
  # also runs while the first one waits for another that compiles.
  clocks = hosts.from_all(
    [float(values["seconds/total"]), float(values["compile/seconds"])]
  )
  compiling = max(seconds for _, seconds in clocks)
  progress.training_seconds += max(clocks[0][0] - compiling, 0.0)
  for once in gathered.rounds:
    progress.active_groups += int(once.active.sum())
    progress.groups += len(once.active)
  progress.turns += stats.turns
  progress.faults += gathered.num_faults
  for stage in ("sample", "harness", "update"):
    progress.spend(stage, float(values[f"seconds/{stage}"]))
  # What is left of the iteration: packing of prompts, decoding of text.
  rest = values["seconds/total"] - sum(
    values[f"seconds/{stage}"] for stage in ("sample", "harness", "update")
  )
  progress.spend("other", max(float(rest), 0.0))
