"""Fixtures: a scripted harness of iterations, a stand-in for runs of sweeps."""

from tests.experiments.fake_runs import fake  # noqa: F401
from tests.experiments.scripted_harness import (  # noqa: F401
  lucky_later,
  setup,
  stopping,
)
