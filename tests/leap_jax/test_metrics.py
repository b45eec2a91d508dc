"""Metrics files."""

import json

import pytest

from leap_jax import metrics


def test_undeclared_names_are_errors(tmp_path):
  writer = metrics.Writer(tmp_path, 0)
  with pytest.raises(metrics.UndeclaredMetric, match="update/los"):
    writer.write(0, {"update/los": 1.0})
  writer.close()


def test_lines_come_back_and_nan_is_left_out(tmp_path):
  writer = metrics.Writer(tmp_path, 0)
  writer.write(0, {"update/loss": 0.1 + 0.2, "update/kl": float("nan")})
  writer.close()
  (line,) = metrics.read(tmp_path / "metrics.jsonl")
  assert line == {"step": 0, "update/loss": 0.1 + 0.2}
  assert list((tmp_path / "tensorboard").iterdir())


def test_resuming_drops_what_will_be_done_again(tmp_path):
  writer = metrics.Writer(tmp_path, 0)
  for step in range(5):
    writer.write(step, {"update/loss": step})
  writer.close()
  with open(tmp_path / "metrics.jsonl", "a") as file:
    file.write('{"step": 5, "upda')  # killed while writing
  writer = metrics.Writer(tmp_path, 3)
  writer.write(3, {"update/loss": 30})
  writer.close()
  lines = metrics.read(tmp_path / "metrics.jsonl")
  assert [line["step"] for line in lines] == [0, 1, 2, 3]
  assert lines[-1]["update/loss"] == 30


def test_times_are_not_reproducible_and_results_are():
  record = {
    "step": 3,
    "update/loss": 1.0,
    "seconds/total": 2.0,
    "compile/count": 4,
    "kernels/judged": 7,
    "kernels/passed": 0.5,
  }
  assert metrics.reproducible(record) == {
    "step": 3,
    "update/loss": 1.0,
    "kernels/passed": 0.5,
  }


def test_every_metric_has_a_unit_and_a_meaning():
  for name, (unit, meaning) in metrics.METRICS.items():
    group, _, rest = name.partition("/")
    assert group and rest and unit and meaning, name
  json.dumps(metrics.METRICS)
