"""Fixtures of the harness's tests."""

import pathlib

import pytest

from tests.kernels_eval import lab as lab_lib

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def lab(judge):
  """Runs kernels that belong to no problem."""
  return lab_lib.Lab(judge._executor)


@pytest.fixture
def start(tmp_path, monkeypatch):
  """Starts servers of a GPU without one."""
  from tests.kernels_eval import gpu_lab

  monkeypatch.setenv("PYTHONPATH", str(_ROOT))
  labs = []

  def make(*options):
    labs.append(gpu_lab.Lab(tmp_path, *options))
    return labs[-1]

  yield make
  for lab in labs:
    lab.close()
