"""The end of a run: results.json and a table."""

from typing import Any

_ROWS = (  # key, label, percent
  ("acc_at_1", "Acc@1", True),
  ("acc_at_2", "Acc@2", True),
  ("acc_at_3", "Acc@3", True),
  ("turns_per_pass", "turns per pass", False),
  ("recovery_rate", "recovery rate", True),
)


TRAINING_STAGES = ("sample", "harness", "update", "other")
"""Stages of an iteration, whose seconds add up to those of training."""


def _cost(cost, seconds):
  return {
    "tokens": cost.sampled_tokens,
    "harness_calls": cost.harness_calls,
    "kernels_judged": cost.kernels_judged,
    "seconds": seconds,
  }


def results(
  settings: dict[str, Any],
  progress: Any,
  after: dict[str, Any],
  random_feedback: dict[str, Any] | None,
  num_params: int,
) -> dict[str, Any]:
  """The record of a finished run.

  `run.training_seconds` is what curves and limits count: without compilation.
  `run.training` and `run.evaluation` hold what each of the two has used;
  `tokens`, `harness_calls` and `kernels_judged` of `run` are their sums;
  `turns`, `activation` and `faults` are of training; `hardware` and `commit`
  those of the last of the `parts` (experiments/provenance.py).

  Args:
    settings: flat config.
    progress: experiments.state.Progress.
    after: held-out results at the end.
    random_feedback: the same with feedback on other problems, or None.
    num_params: of the policy.
  """
  groups = max(progress.groups, 1)
  training, evaluation = progress.training, progress.evaluation
  seconds = {k: round(v, 3) for k, v in progress.seconds.items()}
  spent = lambda stages: round(sum(seconds.get(s, 0.0) for s in stages), 3)
  return {
    "before": progress.before,
    "after": after,
    "random_feedback": random_feedback,
    "run": {
      "method": settings["method.name"],
      "seed": settings["seed"],
      "iterations": progress.iterations,
      "training_seconds": progress.training_seconds,
      "warm_start_steps": progress.warm_steps,
      "num_params": num_params,
      "seconds": seconds,
      "seconds_total": round(sum(progress.seconds.values()), 3),
      "tokens": training.sampled_tokens + evaluation.sampled_tokens,
      "harness_calls": training.harness_calls + evaluation.harness_calls,
      "kernels_judged": training.kernels_judged + evaluation.kernels_judged,
      "training": _cost(training, spent(TRAINING_STAGES)),
      "evaluation": _cost(evaluation, spent(("evaluate",))),
      "turns": progress.turns,
      "activation": progress.active_groups / groups,
      "faults": progress.faults,
      "hardware": progress.parts[-1]["hardware"],
      "commit": progress.parts[-1]["commit"],
      "parts": progress.parts,
    },
    "config": settings,
  }


def _cell(value, percent):
  if value is None:
    return "-"
  return f"{100 * value:.1f} %" if percent else f"{value:.2f}"


def _cost_line(name, cost):
  return (
    f"{name}: {cost['tokens']} tokens sampled, {cost['harness_calls']} kernels "
    f"submitted, {cost['kernels_judged']} different ones judged, "
    f"{cost['seconds']:.0f} s"
  )


def table(result: dict[str, Any]) -> str:
  """The final table as text."""
  before, after, run = result["before"], result["after"], result["run"]
  lines = [
    f"{run['method']}, seed {run['seed']}: {after['num_problems']} held-out "
    f"problems, {after['num_samples']} samples",
    "",
    f"{'':16}{'before':>10}{'after':>10}{'change':>10}",
  ]
  for key, label, percent in _ROWS:
    if key not in after:
      continue
    old, new = before.get(key), after[key]
    change = "-"
    if old is not None and new is not None:
      change = f"{100 * (new - old):+.1f}" if percent else f"{new - old:+.2f}"
    lines.append(
      f"{label:16}{_cell(old, percent):>10}{_cell(new, percent):>10}"
      f"{change:>10}"
    )
  control = result.get("random_feedback")
  if control is not None:
    lines.append(
      f"{'':16}recovery rate with feedback on other problems: "
      f"{_cell(control['recovery_rate'], True)}"
    )
  seconds = ", ".join(
    f"{stage} {value:.0f}" for stage, value in run["seconds"].items()
  )
  lines += [
    "",
    f"{run['iterations']} iterations; DCP gave debugging turns to "
    f"{100 * run['activation']:.0f} % of the groups",
    _cost_line("training", run["training"]),
    _cost_line("evaluation", run["evaluation"]),
    f"seconds: {seconds}; {run['seconds_total']:.0f} in all",
  ]
  return "\n".join(lines)
