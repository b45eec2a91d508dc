"""Results of a sweep, made by hand: what tables read."""

import gzip
import json

from experiments import intervals, records, rows

BY_NAME = {row.name: row for row in rows.TABLES["all"]}


def put(folder, row, seed, evaluations, control=None, **changes):
  """Writes one run.

  Args:
    folder: of the results.
    row: of rows.TABLES.
    seed: of the run.
    evaluations: (seconds, {problem: [turn 1, turn 2, turn 3, not, turns]}).
    control: the problems of an evaluation with random feedback.
    changes: of the run: commit, hardware, iterations; others of the config.
  """
  run = {
    "seed": seed,
    "iterations": len(evaluations) - 1,
    "activation": 0.5,
    # `other` holds 90 s of compilation.
    "seconds": {"sample": 4.0, "harness": 2.0, "update": 6.0, "other": 108.0},
    "commit": "abc",
    "hardware": "2 x X",
  }
  run |= {key: changes.pop(key) for key in list(changes) if key in run}
  config = {"seed": seed, "method.gamma": 0.4, "learner.clip_low": 0.2}
  result = {
    "run": run,
    "config": config | dict(row.settings) | changes,
    "after": {
      "num_problems": 2,
      "num_samples": 8,
      "num_faults": 0,
      "pass_at_1": 0.5,
      "pass_at_4": 0.75,
    },
  }
  heldout = [
    {
      "label": str(i),
      "iteration": i,
      "seconds": seconds,
      "tokens": 1000 * i,
      "harness_calls": 10 * i,
      "problems": problems,
    }
    for i, (seconds, problems) in enumerate(evaluations)
  ]
  if control is not None:
    heldout.append({**heldout[-1], "label": "random feedback"})
    heldout[-1]["problems"] = control
  metrics = [
    {
      "step": i,
      "rollout/acc_at_1": 0.5,
      "rollout/recovery_rate": 0.25,
      "update/rows": 6.0,
      "update/rows_dropped": 2.0,
    }
    for i in range(run["iterations"])
  ]
  problems = [
    {"name": "t", "visits": 4, "samples": 32, "failures": 20, "activations": 3}
  ]
  path = folder / row.name / f"seed{seed}"
  path.mkdir(parents=True, exist_ok=True)
  (path / "results.json").write_text(json.dumps(result))
  for name, lines in (
    ("metrics", metrics),
    ("heldout", heldout),
    ("problems", problems),
  ):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (path / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
  return path


def curve(seconds, *solved):
  """Evaluations of two problems, four samples each, all solved at turn 1 or
  not at all: `solved` are the first problem's, the second's are half."""
  return [
    (
      seconds * i,
      {"p": [n, 0, 0, 4 - n, 12 - 2 * n], "q": [n // 2, 0, 0, 4 - n // 2, 8]},
    )
    for i, n in enumerate(solved)
  ]


def climbing(folder):
  """LEAP climbs twice as fast as multi-turn; single-turn never moves.

  In straight lines, which smoothing leaves as they are.
  """
  for seed in (0, 1):
    put(folder, BY_NAME["leap"], seed, curve(10, 0, 2, 4))
    put(folder, BY_NAME["grpo_multi_turn"], seed, curve(20, 0, 2, 4))
    put(folder, BY_NAME["grpo_single_turn"], seed, curve(5, 0, 0, 0))
  return folder


def load(folder, table="main", **options):
  """The runs of a table, and 200 draws over them."""
  options = {"allow_mixed": False} | options
  runs = records.load(folder, rows.TABLES[table], **options)
  return runs, intervals.draw(runs, 200)
