"""Settings and fixtures shared by all tests."""

import pathlib
import signal
import tempfile

import jax
import pytest

pytest_plugins = ["tests.micro_policy"]

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard():
  """Who runs tests in the background (`nohup`, `&`) ignores them, and so would
  every process that a test starts and interrupts."""
  before = signal.getsignal(signal.SIGINT)
  if before is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def judge():
  """A judge of this process with the CPU executor."""
  from kernels_eval import judge_process
  from kernels_eval.settings import Settings

  with tempfile.TemporaryDirectory() as root:
    judging, _, close = judge_process.make(
      pathlib.Path(root), 0, Settings(run_cpu_s=2.0)
    )
    yield judging
    close()


@pytest.fixture(scope="session")
def check(judge):
  """check(problem, text) -> Evaluation."""
  from kernels_eval.schema import Request

  return lambda problem, text: judge.evaluate(Request("test", problem, text))
