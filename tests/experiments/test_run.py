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
def test_nothing_compiles_after_the_first_full_step(straight):
  workdir, _, _ = straight
  records = lines(workdir)
  assert [r["compile/count"] for r in records[1:]] == [0, 0, 0]


def test_conversations_are_on_disk(straight):
  workdir, _, _ = straight
  path = workdir / "trajectories" / "iteration_000000.jsonl.gz"
  with gzip.open(path, "rt") as file:
    conversations = [json.loads(line) for line in file]
  assert len(conversations) == 8
  for one in conversations:
    turn = one["turns"][0]
    assert turn["evaluation"]["status"] and turn["completion"]
    if len(one["turns"]) == 2:
      assert turn["feedback"]


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
