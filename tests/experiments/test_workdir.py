"""The folder of a run."""

import json
import pathlib
import subprocess
import sys

import pytest

from experiments import settings, workdir

ROOT = pathlib.Path(__file__).parents[2]
SETTINGS = {
  "seed": 0,
  "rollout.row_buckets": (32, 128),
  "run.num_iterations": 5,
}


def test_the_same_configuration_goes_on(tmp_path):
  workdir.check(tmp_path, SETTINGS)  # a new folder
  workdir.record(tmp_path, SETTINGS)
  workdir.check(tmp_path, SETTINGS)


def test_another_configuration_is_refused_by_name(tmp_path):
  workdir.record(tmp_path, SETTINGS)
  with pytest.raises(settings.UsageError, match=r"config.seed=0, now it is 1"):
    workdir.check(tmp_path, {**SETTINGS, "seed": 1})


def test_a_folder_from_before_a_setting_goes_on(tmp_path):
  workdir.record(tmp_path, SETTINGS | {"harness.device": 0})
  now = SETTINGS | {
    "harness.devices": (0,),
    "harness.sanitizer": False,
    "learner.denominator": "with_advantage",
  }
  workdir.check(tmp_path, now)
  assert workdir.settings_of(tmp_path)["harness.sanitizer"] is False
  with pytest.raises(settings.UsageError, match="sanitizer=False, now it is T"):
    workdir.check(tmp_path, now | {"harness.sanitizer": True})


def test_checking_a_longer_run_changes_no_record(tmp_path):
  workdir.record(tmp_path, SETTINGS)
  longer = {**SETTINGS, "run.num_iterations": 9}
  read = lambda: json.loads((tmp_path / "config.json").read_text())
  workdir.check(tmp_path, longer)
  assert read()["run.num_iterations"] == 5
  workdir.record(tmp_path, longer)
  assert read()["run.num_iterations"] == 9


@pytest.mark.parametrize("name", ["config.json", "results.json"])
def test_a_damaged_record_is_one_line(tmp_path, name):
  (tmp_path / name).write_text("{half")
  with pytest.raises(settings.UsageError, match=f"{name} is not readable as"):
    workdir.check(tmp_path, SETTINGS)
    workdir.outcome(tmp_path)


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(settings.UsageError, match="cannot use"):
    with workdir.held(tmp_path / "file" / "run"):
      pass


def test_one_process_at_a_time_holds_a_folder(tmp_path):
  """The second gets a line that names the first; a killed one lets go."""
  code = (
    "import pathlib, sys, time\n"
    "from experiments import workdir\n"
    "with workdir.held(pathlib.Path(sys.argv[1])):\n"
    "  print('held', flush=True)\n"
    "  time.sleep(60)\n"
  )
  first = subprocess.Popen(
    [sys.executable, "-c", code, str(tmp_path)],
    cwd=ROOT,
    stdout=subprocess.PIPE,
    text=True,
  )
  with first:
    try:
      assert first.stdout.readline() == "held\n"
      with pytest.raises(
        settings.UsageError, match=f"process {first.pid} is working in"
      ):
        with workdir.held(tmp_path):
          pass
    finally:
      first.kill()
    first.wait()
  with workdir.held(tmp_path):
    pass
  with workdir.held(tmp_path):  # and the end of the block lets go
    pass


def test_json_files_are_whole_or_not_there(tmp_path):
  path = tmp_path / "results.json"
  workdir.write_json(path, {"a": 1})
  with pytest.raises(TypeError):
    workdir.write_json(path, {"a": object()})
  assert json.loads(path.read_text()) == {"a": 1}
