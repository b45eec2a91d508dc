"""The one number: how much sooner LEAP reaches what a baseline has learnt.

    python -m experiments.headline --runs=RESULTS [--write=FILE]
        [--readme=FILE]

RESULTS holds the rows leap, grpo_multi_turn and grpo_single_turn of a sweep, of
the same budget: as many iterations, or the same time and all of it. Prints
headline.json, or writes it. A ratio of 0: LEAP never gets there; null: there is
nothing to reach, or the accuracy does not exist. Its `warnings`, printed as
well, say which ratios are not to be trusted, and why. `--readme` puts the same,
as a table, between the markers of a Markdown file.
"""

import argparse
import json
import math
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from experiments import intervals, paper, records, tables, time_to_accuracy
from experiments.records import TableError
from experiments.rows import GRPO_MULTI, GRPO_SINGLE, LEAP

_BASELINES = {"multi_turn": GRPO_MULTI, "single_turn": GRPO_SINGLE}
_COSTS = {"seconds": "time", "tokens": "tokens", "harness_calls": "calls"}
_TARGETS = {  # ending of a field's name: share of the baseline's gain
  "": time_to_accuracy.GAIN,
  "_at_95_percent": 0.95,
  "_at_maximum": 1.0,
}
_DEFINITION = (
  "ratio of training costs, baseline over LEAP, to first reach start + q * "
  "(best - start) of the baseline's held-out accuracy, curves averaged over "
  f"{100 * time_to_accuracy.SHARE:g} % of the cost to either side: "
  f"q = {time_to_accuracy.GAIN:g}; "
  "_at_95_percent: q = .95; _at_maximum: q = 1, which noise decides"
)


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
    for ending, gain in _TARGETS.items():
      for turn in (1, 3):
        for short, row in _BASELINES.items():
          ratios = time_to_accuracy.ratios(
            curves[row.name, turn], curves["leap", turn], gain
          )
          key = f"{word}_to_acc{turn}_ratio_vs_{short}{ending}"
          _put(out, key, intervals.estimate(ratios))
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


def _gaps(runs, draws):
  """How finely the targets are resolved, and what to warn of."""
  out, warnings = {}, []
  for turn in (1, 3):
    for short, row in _BASELINES.items():
      gaps = time_to_accuracy.gaps_to_target(
        runs[row.name], runs["leap"], turn, draws
      )
      key = f"time_to_acc{turn}_ratio_vs_{short}"
      out[f"{key}_gaps"] = round(gaps, 2) if math.isfinite(gaps) else None
      if gaps < time_to_accuracy.MIN_GAPS:
        warnings.append(f"{key}, {gaps:.1f} gaps: {time_to_accuracy.COARSE}")
  if len(draws.seeds) == 1:
    warnings.append("one seed: intervals are of the problems alone, too narrow")
  return out | {"warnings": warnings}


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
  value, (low, high) = record[key], record[f"{key}_interval"]
  if value is None:
    return "-"
  text = f"{scale * value:.{digits}f}"
  if low is not None:
    text += f" [{scale * low:.{digits}f}, {scale * high:.{digits}f}]"
  return text + unit


def _ratio_cells(record, turn, ending):
  return [
    _shown(record, f"time_to_acc{turn}_ratio_vs_{short}{ending}", unit="×")
    for short in _BASELINES
  ]


def markdown(record: dict[str, Any]) -> str:
  """The record of headline.json as two tables and what they are made of."""
  header = "against unpruned multi-turn | against single-turn | paper"
  lines = [f"| LEAP | {header} |", "|---|---|---|---|"]
  for ending, gain in list(_TARGETS.items())[:2]:
    for turn in (1, 3):
      cells = _ratio_cells(record, turn, ending)
      is_headline = turn == 1 and not ending
      reported = f'{record["paper_ratio"]}× to "the same performance"'
      lines.append(
        f"| time to {100 * gain:g} % of the baseline's gain in Acc@{turn} | "
        f"{' | '.join(cells)} | {reported if is_headline else '-'} |"
      )
  for turn in (1, 3):
    cells = [
      _shown(record, f"acc_at_{turn}_minus_{short}", 100, 1)
      for short in _BASELINES
    ]
    lines.append(
      f"| Acc@{turn} after {record['acc_minus_after_seconds']:.0f} s of "
      f"training, points more | {' | '.join(cells)} | - |"
    )
  lines += [
    "",
    "| method at its end | iterations | training, s | Acc@1, % | Acc@2, % | "
    "Acc@3, % | paper |",
    "|---|---|---|---|---|---|---|",
  ]
  for row in (LEAP, *_BASELINES.values()):
    of = record["methods"][row.name]
    cells = [
      ", ".join(str(n) for n in of["iterations"]),
      ", ".join(f"{s:.0f}" for s in of["training_seconds_by_seed"]),
      *(_shown(of, f"acc_at_{turn}", 100, 1) for turn in (1, 2, 3)),
    ]
    reported = paper.REPORTED["main"].get(row.name)
    told = "-"
    if reported:
      told = " / ".join(f"{reported[f'acc_at_{t}']:.1f}" for t in (1, 2, 3))
    lines.append(f"| {row.label} | {' | '.join(cells)} | {told} |")
  seeds = ", ".join(str(seed) for seed in record["seeds"])
  at_maximum = "; ".join(
    f"Acc@{turn} {' and '.join(_ratio_cells(record, turn, '_at_maximum'))}"
    for turn in (1, 3)
  )
  lines += [
    "",
    f"Times: {record['ratio_definition']}; 0: LEAP never gets there. To the "
    f"maximum itself, against the two: {at_maximum}.",
    "",
    f"{record['num_heldout_problems']} held-out problems, seeds {seeds}; 95 % "
    "intervals, paired bootstrap over problems and seeds. Time is of training. "
    "All methods have the same learning rate. "
    + "".join(f"**{warning}.** " for warning in record["warnings"])
    + f"Hardware: {record['hardware']}. Commit: {record['commit']}. "
    f"{record['paper_note']}",
  ]
  return "\n".join(lines)


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
      f"python -m experiments.sweep --table=main --rows={','.join(missing)}"
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


def main(argv: Sequence[str]) -> int:
  """Prints or writes headline.json."""
  parser = argparse.ArgumentParser(
    prog="python -m experiments.headline",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  parser.add_argument("--runs", type=pathlib.Path, required=True)
  parser.add_argument("--write", type=pathlib.Path)
  parser.add_argument("--readme", type=pathlib.Path)
  parser.add_argument("--allow_mixed", action="store_true")
  arguments = parser.parse_args(argv)
  try:
    loaded = load(arguments.runs, allow_mixed=arguments.allow_mixed)
    record = headline(*loaded) | {"runs": arguments.runs.name}
    for warning in record["warnings"]:
      print(f"experiments.headline: {warning}", file=sys.stderr)
    text = json.dumps(record, indent=2) + "\n"
    if arguments.readme is not None:
      markers = tables.markers("headline")
      tables.write(arguments.readme, markdown(record), *markers)
    if arguments.write is None:
      print(text, end="")
    else:
      arguments.write.write_text(text)
  except (TableError, OSError) as error:
    print(f"experiments.headline: {error}", file=sys.stderr)
    return 2
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
