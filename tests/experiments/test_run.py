"""The whole program: real policy, real kernels, real judge; killed, resumed."""

import gzip
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from leap_jax import metrics

ROOT = pathlib.Path(__file__).parents[2]
CONFIG = pathlib.Path(__file__).parent / "tiny_run.py"


def start(workdir, *arguments):
  return subprocess.Popen(
    [
      sys.executable,
      "-m",
      "experiments.run",
      f"--config={CONFIG}",
      f"--workdir={workdir}",
      *arguments,
    ],
    cwd=ROOT,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env={**os.environ, "JAX_PLATFORMS": "cpu"},
  )


def run(workdir, *arguments):
  process = start(workdir, *arguments)
  out, err = process.communicate(timeout=600)
  return process.returncode, out, err


def lines(workdir):
  path = workdir / "metrics.jsonl"
  return metrics.read(path) if path.exists() else []


def complete_lines(workdir):
  path = workdir / "metrics.jsonl"
  return path.read_text().count("\n") if path.exists() else 0


def conversations(path):
  with gzip.open(path, "rt") as file:
    return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
  """A run without interruption."""
  workdir = tmp_path_factory.mktemp("straight")
  code, out, err = run(workdir)
  assert code == 0, err[-3000:]
  return workdir, out, err


def test_a_run_ends_with_its_table_and_records(straight):
  workdir, out, err = straight
  assert "Acc@1" in out and "before" in out and "groups" in out
  assert "sandbox:" in err
  result = json.loads((workdir / "results.json").read_text())
  for side in ("before", "after"):
    for key in ("acc_at_1", "acc_at_2", "turns_per_pass", "recovery_rate"):
      assert key in result[side]
  record = result["run"]
  assert set(record["seconds"]) >= {"sample", "harness", "update", "evaluate"}
  for key in (
    "tokens",
    "harness_calls",
    "activation",
    "seed",
    "hardware",
    "commit",
  ):
    assert record[key] is not None
  for name in ("learning_curve.png", "config.json", "policy", "tensorboard"):
    assert (workdir / name).exists()


def test_training_and_evaluation_are_counted_apart(straight):
  """What results.json says is what metrics and conversations add up to."""
  workdir, _, _ = straight
  record = json.loads((workdir / "results.json").read_text())["run"]
  training, evaluation = record["training"], record["evaluation"]
  for key in ("tokens", "harness_calls", "kernels_judged"):
    assert record[key] == training[key] + evaluation[key]
  records = lines(workdir)
  total = lambda name: sum(r[name] for r in records)
  assert training["tokens"] == total("rollout/tokens")
  assert training["harness_calls"] == total("kernels/submitted")
  assert training["kernels_judged"] == total("kernels/judged")
  for cost, names in ((training, "iteration_*"), (evaluation, "heldout_*")):
    turns = [
      turn
      for path in (workdir / "trajectories").glob(names)
      for conversation in conversations(path)
      for turn in conversation["turns"]
    ]
    assert cost["harness_calls"] == len(turns) > 0
    assert cost["tokens"] == sum(turn["num_tokens"] for turn in turns)
  assert record["turns"] == training["harness_calls"]
  assert training["seconds"] > 0 and evaluation["seconds"] > 0


def test_evaluations_and_problems_are_on_disk(straight):
  workdir, _, _ = straight
  read = lambda name: metrics.read(workdir / name)
  result = json.loads((workdir / "results.json").read_text())
  records = lines(workdir)
  evaluations = read("heldout.jsonl")
  assert [e["iteration"] for e in evaluations] == [0, 2, 4, 4]
  assert evaluations[3]["label"] == "random feedback"
  control = result["random_feedback"]
  assert control["feedback_swapped"] > 0 and control["feedback_kept"] >= 0
  # The first turn is the same: nobody has read anything yet.
  assert control["acc_at_1"] == result["after"]["acc_at_1"]
  for evaluation, side in ((0, "before"), (2, "after")):
    # Turn 1, turn 2, not solved, turns used; by problem.
    counts = [
      sum(c)
      for c in zip(*evaluations[evaluation]["problems"].values(), strict=True)
    ]
    solved = result[side]
    assert sum(counts[:3]) == solved["num_samples"]
    assert counts[0] / sum(counts[:3]) == solved["acc_at_1"]
    assert counts[3] == solved["harness_calls"]
  # Costs are those of the iterations so far.
  assert evaluations[0]["tokens"] == 0 == evaluations[0]["seconds"]
  assert evaluations[1]["tokens"] == sum(
    r["rollout/tokens"] for r in records[:2]
  )
  seconds = sum(r["seconds/total"] - r["compile/seconds"] for r in records)
  assert evaluations[2]["seconds"] == pytest.approx(seconds)
  seen = read("problems.jsonl")
  rounds = 4 + sum(r["rollout/refill_rounds"] for r in records)
  assert sum(one["visits"] for one in seen) == 2 * rounds
  assert sum(one["samples"] for one in seen) == 8 * rounds


def test_every_line_has_the_metrics_of_an_iteration(straight):
  workdir, _, _ = straight
  records = lines(workdir)
  assert [r["step"] for r in records] == [0, 1, 2, 3]
  for record in records:
    assert record["rollout/faults"] == 0
    assert record["kernels/submitted"] >= 8
    if not record["update/skipped"]:
      assert record["update/log_ratio_max"] < 1e-4
      assert record["update/clip_fraction"] == 0
  assert any(not r["update/skipped"] for r in records)


@pytest.mark.covers("P28")
def test_no_iteration_compiles_anything(straight):
  workdir, _, _ = straight
  records = lines(workdir)
  assert [r["compile/count"] for r in records] == [0, 0, 0, 0]


def test_conversations_are_on_disk(straight):
  workdir, _, _ = straight
  path = workdir / "trajectories" / "iteration_000000.jsonl.gz"
  found = conversations(path)
  assert len(found) == 8
  for one in found:
    turn = one["turns"][0]
    assert turn["evaluation"]["status"] and turn["completion"]
    if len(one["turns"]) == 2:
      assert turn["feedback"]


def test_checkpoints_say_how_updates_were_computed(straight):
  workdir, _, _ = straight
  records = list(workdir.glob("checkpoints/*/record/metadata"))
  assert records
  for path in records:
    assert json.loads(path.read_text())["remat"] == {"update": "none"}


def test_a_finished_run_says_so(straight):
  workdir, out, _ = straight
  code, again, _ = run(workdir)
  assert code == 0 and "is finished" in again
  assert "Acc@1" in again


def test_another_configuration_does_not_touch_the_folder(straight):
  workdir, _, _ = straight
  before = (workdir / "metrics.jsonl").read_bytes()
  code, _, err = run(workdir, "--config.seed=1")
  assert code == 2
  assert "config.seed=0, now it is 1" in err.strip().splitlines()[-1]
  assert (workdir / "metrics.jsonl").read_bytes() == before


@pytest.mark.covers("P13")
def test_a_killed_run_resumes_to_the_same_bits(straight, tmp_path):
  reference, _, _ = straight
  workdir = tmp_path / "killed"
  # Killed in the middle of an iteration after one to three finished ones.
  finished = random.randint(1, 3)
  process = start(workdir)
  deadline = time.monotonic() + 300
  while complete_lines(workdir) < finished:
    assert process.poll() is None, process.communicate()[1][-3000:]
    assert time.monotonic() < deadline
    time.sleep(0.01)
  time.sleep(random.random())
  process.send_signal(signal.SIGKILL)
  process.communicate()
  code, _, err = run(workdir)
  assert code == 0, err[-3000:]
  assert "resuming from checkpoint" in err
  got = [metrics.reproducible(r) for r in lines(workdir)]
  expected = [metrics.reproducible(r) for r in lines(reference)]
  assert got == expected, f"killed after {finished} iterations"
  results = [
    json.loads((w / "results.json").read_text())["after"]
    for w in (workdir, reference)
  ]
  for result in results:
    for key in ("sample_seconds", "harness_seconds"):
      del result[key]
  assert results[0] == results[1]
