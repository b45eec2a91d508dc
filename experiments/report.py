"""The end of a run: results.json, a table, a picture."""

import pathlib
from typing import Any

from experiments import workdir
from leap_jax import metrics

_ROWS = (  # key, label, percent
  ("acc_at_1", "Acc@1", True),
  ("acc_at_2", "Acc@2", True),
  ("acc_at_3", "Acc@3", True),
  ("turns_per_pass", "turns per pass", False),
  ("recovery_rate", "recovery rate", True),
)


def results(
  settings: dict[str, Any],
  progress: Any,
  after: dict[str, Any],
  num_params: int,
) -> dict[str, Any]:
  """The record of a finished run.

  Args:
    settings: flat config.
    progress: experiments.state.Progress.
    after: held-out results at the end.
    num_params: of the policy.
  """
  groups = max(progress.groups, 1)
  return {
    "before": progress.before,
    "after": after,
    "run": {
      "method": settings["method.name"],
      "seed": settings["seed"],
      "iterations": progress.iterations,
      "warm_start_steps": progress.warm_steps,
      "num_params": num_params,
      "seconds": {k: round(v, 3) for k, v in progress.seconds.items()},
      "seconds_total": round(sum(progress.seconds.values()), 3),
      "tokens": progress.sampled_tokens,
      "harness_calls": progress.harness_calls,
      "kernels_judged": progress.kernels_judged,
      "turns": progress.turns,
      "activation": progress.active_groups / groups,
      "faults": progress.faults,
      "hardware": workdir.hardware(),
      "commit": workdir.commit(),
    },
    "config": settings,
  }


def _cell(value, percent):
  if value is None:
    return "-"
  return f"{100 * value:.1f} %" if percent else f"{value:.2f}"


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
  seconds = ", ".join(
    f"{stage} {value:.0f}" for stage, value in run["seconds"].items()
  )
  lines += [
    "",
    f"{run['iterations']} iterations; DCP gave debugging turns to "
    f"{100 * run['activation']:.0f} % of the groups",
    f"{run['harness_calls']} kernels submitted, {run['kernels_judged']} "
    f"different ones judged; {run['tokens']} tokens sampled",
    f"seconds: {seconds}; {run['seconds_total']:.0f} in all",
  ]
  return "\n".join(lines)


def _smooth(values, width):
  out = []
  for i in range(len(values)):
    window = values[max(0, i - width + 1) : i + 1]
    out.append(sum(window) / len(window))
  return out


def plot(run_folder: pathlib.Path, result: dict[str, Any]) -> pathlib.Path:
  """Draws learning_curve.png from the metrics; returns its path."""
  import matplotlib

  matplotlib.use("Agg")
  from matplotlib import pyplot

  records = [
    r
    for r in metrics.read(run_folder / "metrics.jsonl")
    if "rollout/acc_at_1" in r
  ]
  first_step = records[0]["step"] if records else 0
  x = [r["step"] - first_step + 1 for r in records]
  figure, (left, right) = pyplot.subplots(
    1, 2, figsize=(11, 4), layout="constrained"
  )
  acc = [100 * r["rollout/acc_at_1"] for r in records]
  last = [100 * r["rollout/acc_at_last"] for r in records]
  left.plot(x, acc, color="C0", alpha=0.3, linewidth=1)
  left.plot(x, _smooth(acc, 5), color="C0", label="training, turn 1")
  left.plot(x, _smooth(last, 5), color="C1", label="training, last turn run")
  ends = [
    (0, result["before"]["acc_at_1"]),
    *(
      (r["step"] - first_step + 1, r["eval/acc_at_1"])
      for r in records
      if "eval/acc_at_1" in r
    ),
    (len(x), result["after"]["acc_at_1"]),
  ]
  ends = [(step, 100 * acc) for step, acc in ends if acc is not None]
  left.plot(
    [step for step, _ in ends],
    [acc for _, acc in ends],
    "ko--",
    linewidth=1,
    label="held out, turn 1",
  )
  left.set(
    xlabel="iteration",
    ylabel="solved, %",
    ylim=(0, 100),
    title=f"{result['run']['method']}, seed {result['run']['seed']}",
  )
  left.legend(loc="lower right", frameon=False)
  stages = ("sample", "harness", "update")
  right.stackplot(
    x,
    [[r.get(f"seconds/{stage}", 0.0) for r in records] for stage in stages],
    labels=stages,
    alpha=0.8,
  )
  right.set(xlabel="iteration", ylabel="seconds", title="where the time goes")
  twin = right.twinx()
  twin.plot(
    x,
    _smooth([100 * r["rollout/activation"] for r in records], 5),
    color="black",
    linewidth=1,
    label="groups debugged, %",
  )
  twin.set(ylim=(0, 100), ylabel="groups debugged, %")
  right.legend(loc="upper right", frameon=False)
  path = run_folder / "learning_curve.png"
  figure.savefig(path, dpi=120)
  pyplot.close(figure)
  return path
