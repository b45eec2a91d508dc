"""Held-out evaluation as a stage of a run."""

import time
from typing import Any

import jax

from experiments import workdir
from experiments.programs import Programs
from experiments.state import Progress, Run
from leap_jax import policy_eval, random_feedback
from leap_jax.types import TrainState

RANDOM_FEEDBACK = "random feedback"
"""Label of the control's line in heldout.jsonl."""


def evaluate(
  run: Run,
  programs: Programs,
  state: TrainState,
  progress: Progress,
  label: str,
) -> dict[str, Any]:
  """Held-out accuracy of the policy as it is.

  Tokens and calls are those of the problems that count. The last batch is
  filled up with repeats; their kernels show in `kernels_judged` alone.
  """
  return _evaluate(run, programs, state, progress, label, list)


def evaluate_with_random_feedback(
  run: Run, programs: Programs, state: TrainState, progress: Progress
) -> dict[str, Any]:
  """The same with feedback on other problems (leap_jax/random_feedback.py).

  `feedback_swapped` of the result are the failed answers whose feedback became
  that on another problem, `feedback_kept` those that kept their own. Both count
  the last turn's, which nobody is told of, and those of the repeats.
  """
  told = random_feedback.Told()
  tell = random_feedback.swapped(run.config.seed, told)
  found = _evaluate(run, programs, state, progress, RANDOM_FEEDBACK, tell)
  return found | {
    "feedback_swapped": told.failed - told.own_problem,
    "feedback_kept": told.own_problem,
  }


def _evaluate(run, programs, state, progress, label, tell):
  started = time.perf_counter()
  judged = run.pool.num_evaluated
  batches = -(-len(run.heldout) // run.shape.num_problems)
  with run.bar(batches, f"held-out, {label}") as bar:
    outcome, trajectories = policy_eval.evaluate_policy(
      programs.sampler,
      programs.buffer,
      run.shape,
      run.tokenizer,
      programs.policy(state),
      # The same samples' keys before and after: a paired comparison.
      jax.random.fold_in(jax.random.key(run.config.seed), 1),
      run.heldout,
      run.pool.evaluate,
      ks=tuple(run.config.eval.ks),
      tell=tell,
      on_batch=bar.update,
    )
  if run.config.run.save_trajectories:
    name = f"heldout_{label.replace(' ', '_')}"
    workdir.save_trajectories(run.workdir, name, trajectories)
  progress.spend("evaluate", time.perf_counter() - started)
  turns = [turn for trajectory in trajectories for turn in trajectory.turns]
  cost = {
    "sampled_tokens": sum(turn.num_tokens for turn in turns),
    "harness_calls": len(turns),
  }
  progress.evaluation.sampled_tokens += cost["sampled_tokens"]
  progress.evaluation.harness_calls += cost["harness_calls"]
  progress.evaluation.kernels_judged += run.pool.num_evaluated - judged
  progress.evaluations.append(
    {
      "label": label,
      "iteration": progress.iterations,
      # What training has used up to here.
      "seconds": progress.training_seconds,
      "tokens": progress.training.sampled_tokens,
      "harness_calls": progress.training.harness_calls,
      "problems": policy_eval.by_problem(trajectories, run.shape.num_turns),
    }
  )
  workdir.write_lines(run.workdir / "heldout.jsonl", progress.evaluations)
  return outcome.as_dict() | cost


def eval_metrics(seen: dict[str, Any]) -> dict[str, float]:
  """Held-out results as metrics; those without a value are left out."""
  names = (
    "acc_at_1",
    "acc_at_2",
    "acc_at_3",
    "turns_per_pass",
    "recovery_rate",
  )
  return {f"eval/{n}": seen[n] for n in names if seen.get(n) is not None}
