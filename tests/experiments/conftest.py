"""Fixtures of iterations against a scripted harness."""

from tests.experiments.scripted_harness import (  # noqa: F401
  lucky_later,
  setup,
  stopping,
)
