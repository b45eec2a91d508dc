"""Fixtures of the harness's tests."""

import pytest

from tests.kernels_eval import lab as lab_lib


@pytest.fixture(scope="session")
def lab(judge):
  """Runs kernels that belong to no problem."""
  return lab_lib.Lab(judge._executor)
