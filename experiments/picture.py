"""learning_curve.png: what a run has learnt, and where its time went."""

import pathlib
from collections.abc import Sequence
from typing import Any

from leap_jax import metrics

_WINDOW = 5  # iterations of a running mean
_STAGES = ("sample", "harness", "update")


def draw(run_folder: pathlib.Path, result: dict[str, Any]) -> pathlib.Path:
  """Draws the picture from a run's metrics.

  Args:
    run_folder: holds metrics.jsonl.
    result: of `report.results`.

  Returns:
    The path of the picture.
  """
  import matplotlib

  matplotlib.use("Agg")
  from matplotlib import pyplot, ticker

  records = metrics.read(run_folder / "metrics.jsonl")
  warm = [r for r in records if "warm/loss" in r]
  trained = [r for r in records if "rollout/acc_at_1" in r]
  panels = []
  if warm:
    panels.append((_warm_start, warm))
  if trained or not warm:
    panels += [(_solved, trained), (_debugged, trained), (_seconds, trained)]
  figure, axes = pyplot.subplots(
    1,
    len(panels),
    figsize=(4.4 * len(panels), 4.2),
    layout="constrained",
    squeeze=False,
  )
  run = result["run"]
  figure.suptitle(f"{run['method']}, seed {run['seed']}")
  for axis, (panel, lines) in zip(axes[0], panels, strict=True):
    panel(axis, lines, result)
    axis.xaxis.set_major_locator(
      ticker.MaxNLocator(integer=True, min_n_ticks=1)
    )
    axis.spines[["top", "right"]].set_visible(False)
    if axis.get_legend_handles_labels()[0]:
      # Below the axes: no curve runs behind it.
      axis.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        frameon=False,
        fontsize="small",
      )
  path = run_folder / "learning_curve.png"
  figure.savefig(path, dpi=120)
  pyplot.close(figure)
  return path


def _mean(values: Sequence[float]) -> list[float]:
  """Running mean over the last iterations."""
  out = []
  for i in range(len(values)):
    window = values[max(0, i - _WINDOW + 1) : i + 1]
    out.append(sum(window) / len(window))
  return out


def _iterations(records):
  """1, 2, ..., also behind a warm start and after a resume."""
  return [r["step"] - records[0]["step"] + 1 for r in records]


def _curve(axis, records, name, color, label):
  """A metric as percent: each iteration faintly, the running mean on top."""
  x = _iterations(records)
  values = [100 * r[name] for r in records]
  axis.plot(x, values, color=color, alpha=0.25, linewidth=1, zorder=1)
  # One iteration is a point, no line.
  marker = "o" if len(x) == 1 else ""
  axis.plot(x, _mean(values), color=color, marker=marker, label=label)


def _warm_start(axis, records, result):
  del result
  axis.plot(
    [r["step"] + 1 for r in records], [r["warm/loss"] for r in records], "C4"
  )
  axis.set(
    xlabel="step",
    ylabel="nats per token",
    title="warm start: loss",
    ylim=(0, None),
  )


def _solved(axis, records, result):
  x = _iterations(records)
  _curve(axis, records, "rollout/acc_at_1", "C0", "training, turn 1")
  _curve(axis, records, "rollout/acc_at_last", "C1", "training, last turn")
  held_out = [
    (0, result["before"]["acc_at_1"]),
    *(
      (i, r["eval/acc_at_1"])
      for i, r in zip(x, records, strict=True)
      if "eval/acc_at_1" in r
    ),
    (len(x), result["after"]["acc_at_1"]),
  ]
  # Without a sample that counts there is no accuracy.
  held_out = [(i, value) for i, value in held_out if value is not None]
  axis.plot(
    [i for i, _ in held_out],
    [100 * value for _, value in held_out],
    "ko--",
    linewidth=1,
    markersize=5,
    label="held out, turn 1",
    clip_on=False,
    zorder=3,
  )
  axis.set(
    xlabel=f"iteration (strong lines: mean of {_WINDOW})",
    ylabel="% of samples",
    ylim=(0, 100),
    xlim=(0, len(x) + 0.5),
    title="solved",
  )


def _debugged(axis, records, result):
  del result
  _curve(axis, records, "rollout/activation", "black", f"mean of {_WINDOW}")
  axis.set(
    xlabel="iteration",
    ylabel="% of groups",
    ylim=(0, 100),
    xlim=(0, len(records) + 0.5),
    title="given debugging turns",
  )


def _seconds(axis, records, result):
  del result
  x = _iterations(records)
  stages = {s: [r[f"seconds/{s}"] for r in records] for s in _STAGES}
  stages["other"] = [
    max(r["seconds/total"] - sum(r[f"seconds/{s}"] for s in _STAGES), 0.0)
    for r in records
  ]
  below = [0.0] * len(x)
  for number, (stage, values) in enumerate(stages.items()):
    color = "0.7" if stage == "other" else f"C{number}"
    axis.bar(x, values, bottom=below, width=1.0, color=color, label=stage)
    below = [a + b for a, b in zip(below, values, strict=True)]
  axis.set(
    xlabel="iteration",
    ylabel="s",
    xlim=(0, len(x) + 0.5),
    title="where the time goes",
  )
