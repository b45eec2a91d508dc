"""How the program ends when something fails."""

import errno
import json
import pathlib

import jax
import pytest

from experiments import endings, run, settings, state, workdir
from experiments import start as start_lib
from kernels_eval import client
from leap_jax import checkpoint, policy_io
from tests.experiments import tiny_run

ROOT = pathlib.Path(__file__).parents[2]
QUICKSTART = ROOT / "experiments" / "configs" / "quickstart.py"


def start(workdir, *arguments):
  return run.main(
    ["run", f"--config={QUICKSTART}", f"--workdir={workdir}", *arguments]
  )


class FakePool:
  description = "a pool"

  def __init__(self, **_):
    pass

  def __enter__(self):
    return self

  def __exit__(self, *_):
    pass


@pytest.mark.parametrize(
  "error,code,words,resumes",
  [
    (settings.UsageError("a bad setting"), 2, "a bad setting", False),
    (policy_io.PolicyError("no policy in x"), 2, "no policy in x", False),
    (client.HarnessError("no compiler"), 4, "_error: no compiler", False),
    (state.NonFinite("iteration 3: loss nan"), 3, "3: loss nan", True),
    (checkpoint.CheckpointError("cannot save 3"), 1, "cannot save 3", True),
    (
      OSError(errno.ENOSPC, "No space left on device", "m.jsonl"),
      1,
      "No space left on device (m.jsonl)",
      True,
    ),
    (
      jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory.\nat ..."),
      1,
      "a device has no more memory (Out of memory.); lower config.learner.",
      True,
    ),
    (KeyboardInterrupt(), 1, "interrupted", True),
  ],
)
@pytest.mark.parametrize(
  "folders,last",
  [
    ([], "there is no checkpoint yet"),
    (["5.orbax-checkpoint-tmp"], "there is no checkpoint yet"),
    (["5", "10", "15.orbax-checkpoint-tmp"], "checkpoint is of step 10"),
  ],
  ids=["none", "half", "two"],
)
def test_a_failure_is_one_line_and_an_exit_code(
  monkeypatch, tmp_path, capsys, error, code, words, resumes, folders, last
):
  def fail(*_):
    for name in folders:
      (tmp_path / "run" / "checkpoints" / name).mkdir(parents=True)
    raise error

  monkeypatch.setattr(client, "Pool", FakePool)
  monkeypatch.setattr(start_lib, "choose", lambda *_: None)
  monkeypatch.setattr(run, "_train", fail)
  got = start(tmp_path / "run")
  assert got == code
  line = capsys.readouterr().err.strip().splitlines()[-1]
  assert line.startswith("experiments.run: ") and words in line
  assert (last in line) == resumes


@pytest.mark.parametrize("source", ["shipped", "folder", "random"])
def test_a_policy_comes_from_where_the_config_says(tmp_path, source):
  from leap_jax import sharding, tokenizer

  config = tiny_run.get_config()
  config.policy.source = source
  if source == "folder":
    config.policy.source = str(policy_io.SHIPPED)
  if source == "random":
    vocabulary = policy_io.SHIPPED / "tokenizer.json"
    tokenizer.load(vocabulary).save(tmp_path / "tokenizer.json")
  said = []
  chosen = start_lib.choose(config, said.append)
  assert (chosen.cards is None) == (source == "random")
  opened = start_lib.open_policy(config, chosen, tmp_path, pool=None)
  params = opened.read(sharding.make_mesh())
  rows = params["embedding"]["embedding"].shape[0]
  assert rows == opened.model.vocab_size == opened.tokenizer.vocab_size
  assert said[0].startswith("memory of each device")


@pytest.mark.covers("P22")
def test_a_machine_without_a_compiler_says_so_once(
  monkeypatch, tmp_path, capsys
):
  monkeypatch.setenv("PATH", str(tmp_path))
  got = start(tmp_path / "run")
  lines = capsys.readouterr().err.strip().splitlines()
  assert got == endings.EXIT_MACHINE
  assert "infrastructure_error: no C++ compiler" in lines[-1]
  assert sum("no C++ compiler" in line for line in lines) == 1


def test_a_taken_folder_is_one_line_and_left_alone(
  monkeypatch, tmp_path, capsys
):
  monkeypatch.setattr(run, "_train", lambda *_: pytest.fail("it ran"))
  folder = tmp_path / "run"
  with workdir.held(folder):
    got = start(folder)
  assert got == endings.EXIT_MACHINE
  assert "is working in" in capsys.readouterr().err.strip().splitlines()[-1]
  assert not (folder / "config.json").exists()


def finished_folder(path, iterations):
  """What a run of so many iterations leaves in its records."""
  argv = ["run", f"--config={QUICKSTART}"]
  config, _ = settings.parse(
    [*argv, f"--config.run.num_iterations={iterations}"], lambda _: None
  )
  path.mkdir()
  workdir.record(path, settings.flat(config))
  cost = {"tokens": 1, "harness_calls": 1, "kernels_judged": 1, "seconds": 1.0}
  side = {"acc_at_1": 0.5, "num_problems": 2, "num_samples": 8}
  workdir.write_json(
    path / "results.json",
    {
      "before": side,
      "after": side,
      "run": {
        "method": "leap",
        "seed": 0,
        "iterations": iterations,
        "seconds": {},
        "seconds_total": 1.0,
        "activation": 0.5,
        "training": cost,
        "evaluation": cost,
      },
    },
  )


@pytest.mark.parametrize("wanted,goes_on", [(3, False), (5, False), (9, True)])
def test_a_finished_run_goes_on_when_more_is_asked_for(
  monkeypatch, tmp_path, capsys, wanted, goes_on
):
  folder = tmp_path / "run"
  finished_folder(folder, 5)
  trained = []
  monkeypatch.setattr(client, "Pool", FakePool)
  monkeypatch.setattr(start_lib, "choose", lambda *_: None)
  monkeypatch.setattr(run, "_train", lambda *a: trained.append(a) or 0)
  assert start(folder, f"--config.run.num_iterations={wanted}") == 0
  assert bool(trained) == goes_on
  stored = json.loads((folder / "config.json").read_text())
  assert stored["run.num_iterations"] == (wanted if goes_on else 5)
  assert ("is finished" in capsys.readouterr().out) != goes_on
