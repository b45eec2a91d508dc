"""Pictures of a table's runs: accuracy over cost, where time goes, the gate."""

import pathlib
from collections.abc import Sequence

import numpy as np

from experiments import columns, time_to_accuracy
from experiments.columns import Runs
from experiments.intervals import Draws
from experiments.report import TRAINING_STAGES
from experiments.rows import TABLES

_AXES = {
  "seconds": "training, s",
  "tokens": "tokens sampled in training",
  "harness_calls": "kernels submitted in training",
}
_BINS = 8


def draw(
  folder: pathlib.Path, table: str, runs: Runs, draws: Draws
) -> list[pathlib.Path]:
  """Draws all pictures of a table.

  Args:
    folder: made if it is not there.
    table: for names and the order of rows.
    runs: by row; those without runs are left out.
    draws: weights of the intervals.

  Returns:
    The paths.
  """
  import matplotlib

  matplotlib.use("Agg")
  from matplotlib import pyplot

  folder.mkdir(parents=True, exist_ok=True)
  labels = {
    row.name: row.label.strip("*") for row in TABLES[table] if runs[row.name]
  }
  paths = []
  for name, picture in (
    ("accuracy", _accuracy),
    ("step_time", _step_time),
    ("gate", _gate),
  ):
    figure = picture(pyplot, labels, runs, draws)
    paths.append(folder / f"{table}_{name}.png")
    figure.savefig(paths[-1], dpi=120)
    pyplot.close(figure)
  return paths


def _figure(pyplot, rows, columns, width, height):
  figure, axes = pyplot.subplots(
    rows,
    columns,
    figsize=(width, height),
    layout="constrained",
    squeeze=False,
  )
  for axis in axes.flat:
    axis.spines[["top", "right"]].set_visible(False)
  return figure, axes


# Of a legend: small letters in an inch, and as many for a line and its margins.
_LETTERS_PER_INCH, _LINE_LETTERS = 14, 8


def _legend_below(figure, axis):
  handles, names = axis.get_legend_handles_labels()
  letters = figure.get_figwidth() * _LETTERS_PER_INCH
  widest = max(map(len, names), default=0) + _LINE_LETTERS
  figure.legend(
    handles,
    names,
    loc="outside lower center",
    ncols=max(1, min(len(names), int(letters / widest))),
    frameon=False,
    fontsize="small",
  )


def _accuracy(pyplot, labels, runs, draws):
  """Held-out Acc@1 and Acc@3 over seconds, tokens and harness calls."""
  turns = [t for t in (1, 3) if t <= _num_turns(runs)]
  figure, axes = _figure(pyplot, len(turns), len(_AXES), 12, 3.5 * len(turns))
  for line, turn in zip(axes, turns, strict=True):
    for axis, (cost, text) in zip(line, _AXES.items(), strict=True):
      for number, (name, label) in enumerate(labels.items()):
        curve = time_to_accuracy.smooth(
          time_to_accuracy.curve(runs[name], turn, cost, draws)
        )
        x = curve.cost
        color = f"C{number % 10}"
        spread = 100 * curve.accuracy[1:]
        low, high = np.nanpercentile(spread, [2.5, 97.5], axis=0)
        axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        axis.plot(
          x,
          100 * curve.accuracy[0],
          color=color,
          linestyle="-" if number < 10 else "--",
          label=label,
        )
      axis.set(xlabel=text, ylabel=f"held-out Acc@{turn}, %", xlim=(0, None))
  figure.suptitle(
    f"mean over {100 * time_to_accuracy.SHARE:g} % of what training had used, "
    "to either side; 95 % intervals"
  )
  _legend_below(figure, axes[0, 0])
  return figure


def _num_turns(runs) -> int:
  """T of the held-out evaluations."""
  record = next(records[0] for records in runs.values() if records)
  return len(next(iter(record.evaluations[0]["problems"].values()))) - 2


def _step_time(pyplot, labels, runs, draws):
  """Seconds of an iteration by stage, mean over seeds."""
  del draws
  figure, axes = _figure(pyplot, 1, 1, 8, 0.45 * len(labels) + 1.6)
  axis = axes[0, 0]
  names = list(labels)[::-1]
  left = np.zeros(len(names))
  for number, stage in enumerate(TRAINING_STAGES):
    seconds = [
      np.mean([columns.stage_seconds(record, stage) for record in runs[name]])
      for name in names
    ]
    axis.barh(
      [labels[name] for name in names],
      seconds,
      left=left,
      color="0.7" if stage == "other" else f"C{number}",
      label=stage,
    )
    left += seconds
  axis.set(xlabel="s an iteration")
  _legend_below(figure, axis)
  return figure


def activation_by_difficulty(
  records: Sequence, num_bins: int = _BINS
) -> tuple[np.ndarray, np.ndarray]:
  """How often the gate opened, by a problem's own fail rate.

  A problem's fail rate is over all its first turns of the whole run: with
  several visits it knows more than the group that a gate decides by.

  Args:
    records: of one row; their training problems are taken together.
    num_bins: of the fail rate, from 0 to 1.

  Returns:
    ([bins] mean fail rate, [bins] visits with an open gate over visits); NaN
    where no problem falls.
  """
  seen = [p for record in records for p in record.problems if p["samples"]]
  rate = np.asarray([p["failures"] / p["samples"] for p in seen])
  visits = np.asarray([p["visits"] for p in seen], float)
  opened = np.asarray([p["activations"] for p in seen], float)
  place = np.minimum((rate * num_bins).astype(int), num_bins - 1)
  total = lambda weight: np.bincount(place, weight, num_bins)
  with np.errstate(invalid="ignore"):
    return total(visits * rate) / total(visits), total(opened) / total(visits)


def _gate(pyplot, labels, runs, draws):
  del draws
  figure, axes = _figure(pyplot, 1, 1, 7, 4.8)
  axis = axes[0, 0]
  for number, (name, label) in enumerate(labels.items()):
    x, y = activation_by_difficulty(runs[name])
    axis.plot(
      100 * x,
      100 * y,
      marker="o",
      color=f"C{number % 10}",
      linestyle="-" if number < 10 else "--",
      label=label,
    )
  axis.set(
    xlabel="first turns of a problem that failed, whole run, %",
    ylabel="visits with an open gate, %",
    xlim=(0, 100),
    ylim=(-3, 103),
  )
  _legend_below(figure, axis)
  return figure
