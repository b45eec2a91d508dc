"""The one number: how much sooner LEAP reaches a baseline's best accuracy.

    python -m experiments.headline [--runs=RESULTS] [--write=FILE]
        [--readme=FILE]

RESULTS (experiments/results/headline_0_5b) holds the rows leap, grpo_multi_turn
and grpo_single_turn of a sweep, of the same budget: as many iterations, or the
same time and all of it. Prints headline.json, or writes it. A ratio of 0: LEAP
never gets there; null: there is nothing to reach, or the accuracy does not
exist. Its `warnings`, printed as well, say which ratios are not to be trusted,
and why. `--readme` puts the same, as a table, between the markers of a Markdown
file.
"""

import argparse
import json
import math
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from experiments import (
  intervals,
  paper,
  provenance,
  records,
  tables,
  time_to_accuracy,
)
from experiments.comparison import NOT_RUN
from experiments.records import TableError
from experiments.rows import GRPO_MULTI, GRPO_SINGLE, LEAP

_RESULTS = pathlib.Path(__file__).parent / "results"
FOLDER = "headline_0_5b"
"""Of the results, where the runs of the README's headline are."""
FILE = "headline.json"
"""Beside it."""

_BASELINES = {"multi_turn": GRPO_MULTI, "single_turn": GRPO_SINGLE}
_COSTS = {"seconds": "time", "tokens": "tokens", "harness_calls": "calls"}
_DEFINITION = (
  "ratio of training costs, baseline over LEAP, to first reach the baseline's "
  "best held-out accuracy, curves averaged over "
  f"{100 * time_to_accuracy.SHARE:g} % of the cost to either side; "
  "_at_95_percent, _at_90_percent: to start + q * (best - start), q = .95 and "
  ".9. On a plateau noise decides when the best is reached: .9 is the sounder"
)


_SHOWN = {  # of `time_to_accuracy.GAINS`
  "": "the baseline's best",
  "_at_90_percent": "90 % of the baseline's gain in",
}


def _put(out, key, estimate, digits=4):
  """A number and its interval; null where there is none."""
  tidy = lambda x: round(x, digits) if math.isfinite(x) else None
  out[key] = tidy(estimate.value)
  out[f"{key}_interval"] = [tidy(estimate.low), tidy(estimate.high)]


def headline(runs, draws) -> dict[str, Any]:
  """The record of headline.json; intervals are 95 %.

  Args:
    runs: of the three rows, each with a run.
    draws: weights.
  """
  out: dict[str, Any] = {}
  every = [record for found in runs.values() for record in found]
  for cost, word in _COSTS.items():
    curves = {
      (name, turn): time_to_accuracy.smooth(
        time_to_accuracy.curve(found, turn, cost, draws)
      )
      for name, found in runs.items()
      for turn in (1, 3)
    }
    for ending, gain in time_to_accuracy.GAINS.items():
      for turn in (1, 3):
        for short, row in _BASELINES.items():
          ratios = time_to_accuracy.ratios(
            curves[row.name, turn], curves["leap", turn], gain
          )
          key = f"{word}_to_acc{turn}_ratio_vs_{short}{ending}"
          _put(out, key, intervals.estimate(ratios))
  out |= _by_seed(runs, draws)
  out |= _gaps(runs, draws)
  # The longest time that every run has trained.
  common_s = min(record.evaluations[-1]["seconds"] for record in every)
  for turn in (1, 2, 3):
    at = {
      name: time_to_accuracy.accuracy_at(
        found, turn, "seconds", common_s, draws
      )
      for name, found in runs.items()
    }
    for short, row in _BASELINES.items():
      difference = intervals.estimate(at["leap"] - at[row.name])
      _put(out, f"acc_at_{turn}_minus_{short}", difference)
  out["acc_minus_after_seconds"] = round(common_s, 1)
  totals = {
    name: intervals.heldout_totals(found, -1, draws)
    for name, found in runs.items()
  }
  out["methods"] = {name: _method(name, runs, totals, draws) for name in runs}
  origin = records.origins(every)
  after = every[0].result["after"]
  return out | {
    "ratio_definition": _DEFINITION,
    "paper_ratio": paper.SPEEDUP,
    "paper_note": paper.NOTE,
    "num_heldout_problems": after["num_problems"],
    "seeds": list(draws.seeds),
    "hardware": "; ".join(origin["hardware"]),
    "commit": "; ".join(origin["commit"]),
  }


def _by_seed(runs, draws):
  """Each seed's own ratios of time to the baseline's best, as estimated."""
  out: dict[str, Any] = {}
  estimate = intervals.without_spread(draws)
  for turn in (1, 3):
    for short, row in _BASELINES.items():
      found = []
      for seed in draws.seeds:
        own = lambda name, seed=seed: [r for r in runs[name] if r.seed == seed]
        (ratio,) = time_to_accuracy.compare(
          own(row.name), own("leap"), turn, 1.0, estimate
        )
        found.append(round(float(ratio), 4) if math.isfinite(ratio) else None)
      out[f"time_to_acc{turn}_ratio_vs_{short}_by_seed"] = found
  return out


def _gaps(runs, draws):
  """How finely the targets are resolved, and what to warn of."""
  out, warnings, found = {}, [], []
  for ending, gain in time_to_accuracy.GAINS.items():
    for turn in (1, 3):
      for short, row in _BASELINES.items():
        gaps = time_to_accuracy.gaps_to_target(
          runs[row.name], runs["leap"], turn, gain, draws
        )
        key = f"time_to_acc{turn}_ratio_vs_{short}{ending}"
        out[f"{key}_gaps"] = round(gaps, 2) if math.isfinite(gaps) else None
        found.append(gaps)
  few = [gaps for gaps in found if gaps < time_to_accuracy.MIN_GAPS]
  if few:
    warnings.append(
      f"{len(few)} of {len(found)} ratios of time are coarse ({min(few):.1f} "
      f"to {max(few):.1f} gaps, by ratio in {FILE}): {time_to_accuracy.COARSE}"
    )
  few_seeds = intervals.told_of_seeds(draws)
  if few_seeds:
    warnings.append(few_seeds)
  warnings += [
    text.rstrip(".")
    for text in provenance.mixtures(
      [record.result for found in runs.values() for record in found]
    )
  ]
  return out | {
    "cold_starts": records.told_of_cold_starts(
      [record for found in runs.values() for record in found]
    ).strip(),
    "warnings": warnings,
  }


def _method(name, runs, totals, draws):
  out: dict[str, Any] = {"seeds": [record.seed for record in runs[name]]}
  for turn in (1, 2, 3):
    accuracy = intervals.estimate(intervals.accuracy(totals[name], turn))
    _put(out, f"acc_at_{turn}", accuracy)
  out["iterations"] = [r.result["run"]["iterations"] for r in runs[name]]
  for cost in time_to_accuracy.COSTS:
    values = [record.evaluations[-1][cost] for record in runs[name]]
    mean = intervals.mean_over_seeds(runs[name], values, draws)
    out[f"training_{cost}"] = round(float(mean[0]), 1)
  out["training_seconds_by_seed"] = [
    round(record.evaluations[-1]["seconds"], 1) for record in runs[name]
  ]
  return out


def _shown(record, key, scale=1.0, digits=2, unit=""):
  """A number of the record with its interval."""
  if record is None:
    return NOT_RUN
  value, interval = record[key], record[f"{key}_interval"]
  if value is None:
    return "-"
  text = f"{scale * value:.{digits}f}"
  if None not in interval:
    text += " [{}, {}]".format(*(f"{scale * x:.{digits}f}" for x in interval))
  return text + unit


def _against(record, key, **format_of):
  return " | ".join(
    _shown(record, key.format(short), **format_of) for short in _BASELINES
  )


def _comparison(record):
  """LEAP against each baseline."""
  lines = [
    "| LEAP | against unpruned multi-turn | against single-turn | paper |",
    "|---|---|---|---|",
  ]
  for turn in (1, 3):
    for ending, target in _SHOWN.items():
      key = f"time_to_acc{turn}_ratio_vs_{{}}{ending}"
      reported = "-"
      if turn == 1 and not ending:
        reported = f'{paper.SPEEDUP}× to "the same performance"'
      lines.append(
        f"| times as fast to {target} Acc@{turn} | "
        f"{_against(record, key, unit='×')} | {reported} |"
      )
  after = "the same time of training"
  if record is not None:
    after = f"{record['acc_minus_after_seconds']:.0f} s of training"
  for turn in (1, 3):
    cells = _against(record, f"acc_at_{turn}_minus_{{}}", scale=100, digits=1)
    lines.append(f"| Acc@{turn} after {after}, points more | {cells} | - |")
  return lines


def _ends(record):
  """Each method at its end."""
  lines = [
    "| method at its end | iterations | training, s | Acc@1, % | Acc@2, % | "
    "Acc@3, % | paper: Acc@1, 2, 3 |",
    "|---|---|---|---|---|---|---|",
  ]
  for row in (LEAP, *_BASELINES.values()):
    of = record and record["methods"][row.name]
    cells = [NOT_RUN, NOT_RUN]
    if of is not None:
      cells = [
        ", ".join(str(n) for n in of["iterations"]),
        ", ".join(f"{s:.0f}" for s in of["training_seconds_by_seed"]),
      ]
    cells += [_shown(of, f"acc_at_{turn}", 100, 1) for turn in (1, 2, 3)]
    reported = paper.REPORTED["main"].get(row.name)
    told = "-"
    if reported:
      told = ", ".join(f"{reported[f'acc_at_{t}']:.1f}" for t in (1, 2, 3))
    lines.append(f"| {row.label} | {' | '.join(cells)} | {told} |")
  return lines


def _footnote(record):
  seeds = ", ".join(str(seed) for seed in record["seeds"])
  return [
    "Times as fast: seconds of training, baseline over LEAP, until held-out "
    "accuracy is first what the baseline's is at its best (or the start's and "
    "90 % of the baseline's gain), smoothed over "
    f"{100 * time_to_accuracy.SHARE:g} % of the time to either side. On a "
    "plateau noise decides when the best is reached: 90 % is the sounder. 0: "
    "LEAP never gets there.",
    "",
    f"{record['num_heldout_problems']} held-out problems, seeds {seeds}; 95 % "
    "intervals, paired bootstrap over problems and seeds. "
    + (f"{record['cold_starts']} " if record["cold_starts"] else "")
    + "Time is of training. "
    "All methods have the same learning rate. "
    + "".join(f"**{warning}.** " for warning in record["warnings"])
    + f"Hardware: {record['hardware']}. Commit: {record['commit']}. "
    f"{paper.NOTE}",
  ]


def markdown(record: dict[str, Any] | None) -> str:
  """The record of headline.json as two tables and what they are made of.

  Args:
    record: None where nothing has been run yet: the paper's numbers alone.
  """
  last = [paper.NOTE] if record is None else _footnote(record)
  return "\n".join([*_comparison(record), "", *_ends(record), "", *last])


def load(folder: pathlib.Path, *, allow_mixed: bool):
  """The three rows and the draws over them.

  Raises:
    TableError: a row has no run, or the runs are not to be compared.
  """
  rows = (LEAP, *_BASELINES.values())
  runs = records.load(folder, rows, allow_mixed=allow_mixed)
  missing = [name for name, found in runs.items() if not found]
  if missing:
    raise TableError(
      f"{folder} has no run of {', '.join(missing)}; run them by "
      f"python -m experiments.sweep --table=headline --rows={','.join(missing)}"
    )
  if len({tuple(r.seed for r in found) for found in runs.values()}) > 1:
    raise TableError(
      f"{folder}: the rows have different seeds: "
      + "; ".join(
        f"{name} {', '.join(str(r.seed) for r in found)}"
        for name, found in runs.items()
      )
    )
  return runs, intervals.draw(runs)


def record_of(folder: pathlib.Path, *, allow_mixed: bool) -> dict[str, Any]:
  """The record of headline.json, of what lies in a folder of results.

  Raises:
    TableError: as `load`.
  """
  loaded = load(folder, allow_mixed=allow_mixed)
  return headline(*loaded) | {"runs": folder.name}


def text(record: dict[str, Any]) -> str:
  """headline.json."""
  return json.dumps(record, indent=2) + "\n"


def main(argv: Sequence[str]) -> int:
  """Prints or writes headline.json."""
  parser = argparse.ArgumentParser(
    prog="python -m experiments.headline",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  parser.add_argument("--runs", type=pathlib.Path, default=_RESULTS / FOLDER)
  parser.add_argument("--write", type=pathlib.Path)
  parser.add_argument("--readme", type=pathlib.Path)
  parser.add_argument("--allow_mixed", action="store_true")
  arguments = parser.parse_args(argv)
  try:
    record = record_of(arguments.runs, allow_mixed=arguments.allow_mixed)
    for warning in record["warnings"]:
      print(f"experiments.headline: {warning}", file=sys.stderr)
    if arguments.readme is not None:
      markers = tables.markers("headline")
      tables.write(arguments.readme, markdown(record), *markers)
    if arguments.write is None:
      print(text(record), end="")
    else:
      arguments.write.write_text(text(record))
  except (TableError, OSError) as error:
    print(f"experiments.headline: {error}", file=sys.stderr)
    return 2
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
