"""How the program ends when something fails."""

import errno
import pathlib

import pytest

from experiments import run, settings, state
from kernels_eval import client
from leap_jax import checkpoint, policy_io

ROOT = pathlib.Path(__file__).parents[2]


class FakePool:
  description = "a pool"

  def __init__(self, **_):
    pass

  def __enter__(self):
    return self

  def __exit__(self, *_):
    pass


@pytest.mark.parametrize(
  "error,code,words",
  [
    (settings.UsageError("a bad setting"), 2, "a bad setting"),
    (policy_io.PolicyError("no policy in x"), 2, "no policy in x"),
    (state.NonFinite("iteration 3: loss nan"), 3, "iteration 3: loss nan"),
    (checkpoint.CheckpointError("cannot save 3"), 1, "cannot save 3"),
    (
      OSError(errno.ENOSPC, "No space left on device", "m.jsonl"),
      1,
      "No space",
    ),
    (KeyboardInterrupt(), 1, "goes on from the last checkpoint"),
  ],
)
def test_a_failure_is_one_line_and_an_exit_code(
  monkeypatch, tmp_path, capsys, error, code, words
):
  def fail(*_):
    raise error

  monkeypatch.setattr(client, "Pool", FakePool)
  monkeypatch.setattr(run, "_train", fail)
  got = run.main(
    [
      "run",
      f"--config={ROOT / 'experiments/configs/quickstart.py'}",
      f"--workdir={tmp_path / 'run'}",
    ]
  )
  assert got == code
  last = capsys.readouterr().err.strip().splitlines()[-1]
  assert last.startswith("experiments.run: ") and words in last


@pytest.mark.parametrize("remat", ["none", "block"])
@pytest.mark.parametrize("source", ["shipped", "folder", "random"])
def test_every_policy_is_executed_as_the_config_says(tmp_path, source, remat):
  from experiments.configs import quickstart
  from leap_jax import tokenizer

  config = quickstart.get_config()
  config.policy.remat = remat
  config.policy.source = source
  if source == "folder":
    config.policy.source = str(policy_io.SHIPPED)
  if source == "random":
    vocabulary = policy_io.SHIPPED / "tokenizer.json"
    tokenizer.load(vocabulary).save(tmp_path / "tokenizer.json")
  model, params, _, _ = run._policy(config, tmp_path, [], None)
  assert model.remat == remat
  assert params["embedding"]["embedding"].shape[0] == model.vocab_size


@pytest.mark.covers("P22")
def test_a_machine_without_a_compiler_says_so_once(
  monkeypatch, tmp_path, capsys
):
  monkeypatch.setenv("PATH", str(tmp_path))
  got = run.main(
    [
      "run",
      f"--config={ROOT / 'experiments/configs/quickstart.py'}",
      f"--workdir={tmp_path / 'run'}",
    ]
  )
  lines = capsys.readouterr().err.strip().splitlines()
  assert got == 2
  assert "infrastructure_error: no C++ compiler" in lines[-1]
  assert sum("no C++ compiler" in line for line in lines) == 1
