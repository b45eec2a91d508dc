"""Shipping a policy: all of it, or what was there before."""

import jax
import numpy as np
import pytest

from experiments import ship
from leap_jax import policy_io
from leap_jax.models import transformer


@pytest.fixture
def shipped(monkeypatch, tmp_path, model, params, vocabulary):
  """A package that ships one policy, and a run that has made another."""
  folder = tmp_path / "package" / "tiny"
  policy_io.save(folder, model, params, vocabulary, np.float16)
  monkeypatch.setattr(policy_io, "SHIPPED", folder)
  other = transformer.init(model, jax.random.key(7))
  policy_io.save(
    tmp_path / "run" / "policy", model, other, vocabulary, np.float32
  )
  return folder, tmp_path / "run", other


def contents(folder):
  return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_new_policy_is_shipped_in_half_precision(shipped):
  folder, run, other = shipped
  assert ship.main(["ship", str(run)]) == 0
  _, params, _ = policy_io.load(folder)
  for got, wanted in zip(
    jax.tree.leaves(params), jax.tree.leaves(other), strict=True
  ):
    half = np.asarray(wanted).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(got, half)
  assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


def test_one_that_is_too_large_replaces_nothing(shipped, monkeypatch, capsys):
  folder, run, _ = shipped
  before = contents(folder)
  monkeypatch.setattr(ship, "MAX_BYTES", 1000)
  assert ship.main(["ship", str(run)]) == 1
  assert "MiB; at most" in capsys.readouterr().err
  assert contents(folder) == before
  assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


def test_a_write_that_fails_replaces_nothing(shipped, monkeypatch, capsys):
  folder, run, _ = shipped
  before = contents(folder)
  write = policy_io.save

  def half(*arguments):
    write(*arguments)
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(policy_io, "save", half)
  assert ship.main(["ship", str(run)]) == 1
  assert "No space left on device; nothing" in capsys.readouterr().err
  assert contents(folder) == before
  assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


def test_a_run_without_a_policy_is_one_line(shipped, tmp_path, capsys):
  folder, _, _ = shipped
  before = contents(folder)
  assert ship.main(["ship", str(tmp_path / "nowhere")]) == 2
  assert "no policy in" in capsys.readouterr().err
  assert contents(folder) == before
