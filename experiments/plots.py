"""Pictures of a table's runs: accuracy over cost, where time goes, the gate."""

import pathlib
from collections.abc import Sequence

import numpy as np

from experiments import columns, time_to_accuracy
from experiments.columns import Runs
from experiments.intervals import Draws
from experiments.records import Record
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
  """Draws all pictures of a table; that of the gate takes two seeds.

  Args:
    folder: made if it is not there.
    table: for names and the order of rows.
    runs: by row; those without runs are left out.
    draws: weights of the intervals.

  Returns:
    The paths.
  """
  names = [x for x in _PICTURES if x != "gate" or len(draws.seeds) > 1]
  return [draw_one(folder, table, name, runs, draws) for name in names]


def draw_one(
  folder: pathlib.Path, table: str, name: str, runs: Runs, draws: Draws
) -> pathlib.Path:
  """Draws one picture of a table.

  Args:
    folder: made if it is not there.
    table: for names and the order of rows.
    name: "accuracy", "step_time" or "gate".
    runs: by row; those without runs are left out.
    draws: weights of the intervals.
  """
  import matplotlib

  matplotlib.use("Agg")
  from matplotlib import pyplot

  folder.mkdir(parents=True, exist_ok=True)
  labels = {
    row.name: row.label.strip("*") for row in TABLES[table] if runs[row.name]
  }
  figure = _PICTURES[name](pyplot, labels, runs, draws)
  path = folder / f"{table}_{name}.png"
  # Without the library's version: it alone would make another file.
  figure.savefig(path, dpi=120, metadata={"Software": None})
  pyplot.close(figure)
  return path


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
  records: Sequence[Record], every: Sequence[Record], num_bins: int = _BINS
) -> tuple[np.ndarray, np.ndarray]:
  """How often the gate opened, by how difficult a problem is elsewhere.

  A problem's difficulty is the share of first turns that failed in the runs of
  other seeds. A gate decides by the samples of its own visit: by those it would
  seem to know exactly what it only guesses.

  Args:
    records: of one row; their training problems are taken together.
    every: of all rows, which tell of the difficulty.
    num_bins: of the fail rate, from 0 to 1.

  Returns:
    ([bins] mean fail rate, [bins] visits with an open gate over visits); NaN
    where no problem falls. Problems that no other seed met are left out.
  """
  rates, visits, opened = [], [], []
  for record in records:
    elsewhere = _samples(r for r in every if r.seed != record.seed)
    for problem in record.problems:
      samples, failures = elsewhere.get(problem["name"], (0, 0))
      if samples:
        rates.append(failures / samples)
        visits.append(problem["visits"])
        opened.append(problem["activations"])
  rate, weight = np.asarray(rates), np.asarray(visits, float)
  place = np.minimum((rate * num_bins).astype(int), num_bins - 1)
  total = lambda x: np.bincount(place, x, num_bins)
  with np.errstate(invalid="ignore"):
    return total(weight * rate) / total(weight), total(
      np.asarray(opened, float)
    ) / total(weight)


def _samples(records):
  """First turns of each training problem, and how many of them failed."""
  found: dict[str, tuple[int, int]] = {}
  for record in records:
    for problem in record.problems:
      samples, failures = found.get(problem["name"], (0, 0))
      found[problem["name"]] = (
        samples + problem["samples"],
        failures + problem["failures"],
      )
  return found


def _gate(pyplot, labels, runs, draws):
  del draws
  figure, axes = _figure(pyplot, 1, 1, 7, 4.8)
  axis = axes[0, 0]
  every = [record for records in runs.values() for record in records]
  for number, (name, label) in enumerate(labels.items()):
    x, y = activation_by_difficulty(runs[name], every)
    axis.plot(
      100 * x,
      100 * y,
      marker="o",
      color=f"C{number % 10}",
      linestyle="-" if number < 10 else "--",
      label=label,
    )
  axis.set(
    xlabel="first turns of a problem that failed, runs of other seeds, %",
    ylabel="visits with an open gate, %",
    xlim=(0, 100),
    ylim=(-3, 103),
  )
  _legend_below(figure, axis)
  return figure


_PICTURES = {"accuracy": _accuracy, "step_time": _step_time, "gate": _gate}
