"""The folder of a run."""

import json

import pytest

from experiments import settings, workdir

SETTINGS = {
  "seed": 0,
  "rollout.row_buckets": (32, 128),
  "run.num_iterations": 5,
}


def test_the_same_configuration_goes_on(tmp_path):
  assert not workdir.prepare(tmp_path / "run", SETTINGS)
  assert workdir.prepare(tmp_path / "run", SETTINGS)


def test_another_configuration_is_refused_by_name(tmp_path):
  workdir.prepare(tmp_path, SETTINGS)
  with pytest.raises(settings.UsageError, match=r"config.seed=0, now it is 1"):
    workdir.prepare(tmp_path, {**SETTINGS, "seed": 1})


def test_a_longer_run_of_the_same_kind_is_welcome(tmp_path):
  workdir.prepare(tmp_path, SETTINGS)
  assert workdir.prepare(tmp_path, {**SETTINGS, "run.num_iterations": 9})
  stored = json.loads((tmp_path / "config.json").read_text())
  assert stored["run.num_iterations"] == 9


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(settings.UsageError, match="cannot use"):
    workdir.prepare(tmp_path / "file" / "run", SETTINGS)
  (tmp_path / "config.json").write_text("{half")
  with pytest.raises(settings.UsageError, match="not readable as JSON"):
    workdir.prepare(tmp_path, SETTINGS)


def test_json_files_are_whole_or_not_there(tmp_path):
  path = tmp_path / "results.json"
  workdir.write_json(path, {"a": 1})
  with pytest.raises(TypeError):
    workdir.write_json(path, {"a": object()})
  assert json.loads(path.read_text()) == {"a": 1}
