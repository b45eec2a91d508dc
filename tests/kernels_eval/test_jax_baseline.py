"""The JAX baseline: values and the way of times, on the CPU. Times themselves
need a GPU."""

import contextlib
import math
import pathlib
import subprocess
import sys

import msgspec
import pytest

from kernels_eval import problems
from kernels_eval.cuda import jax_reference, presence
from kernels_eval.jax_baseline import __main__ as process
from kernels_eval.jax_baseline import references
from kernels_eval.problems import composer
from kernels_eval.schema import Evaluation, Phase, Status, Timing

_FAKE = pathlib.Path(__file__).parent / "fake_jax.py"
_ROOT = pathlib.Path(__file__).parents[2]
# Every operator and every reduction.
_CHAINS = tuple(f"chain-{o}-mul_y" for o in composer.OPERATORS) + tuple(
  f"chain-add_1-{r}" for r in composer.REDUCTIONS
)


@pytest.mark.parametrize("name", (*problems.FAMILIES, *_CHAINS))
def test_jax_is_right_by_the_measure_for_candidates(name):
  problem = problems.get(name)
  assert references.find_mismatch(problem, problem.cases[1], seed=3) is None


def test_a_wrong_answer_of_jax_is_found(monkeypatch):
  monkeypatch.setitem(references._IN_JAX, "axpy", lambda x, y, alpha: x + y)
  problem = problems.get("axpy")
  mismatch = references.find_mismatch(problem, problem.cases[1], seed=3)
  assert mismatch.num_wrong > 0


@pytest.mark.parametrize("name", ("bfloat16_scale", "embedding_bag_mean"))
def test_every_call_has_a_time(monkeypatch, name):
  monkeypatch.setattr(process, "_FLUSH_ITEMS", 1024)
  problem = problems.get(name)
  times_ms = process.measure(problem, problem.cases[2].dims)
  assert len(times_ms) == process.NUM_READINGS
  assert all(math.isfinite(t) for t in times_ms)


def test_without_a_gpu_the_process_says_so():
  if presence.has_device():
    pytest.skip("here is a GPU")
  done = subprocess.run(
    [*jax_reference._COMMAND, "--problem=relu", '--dims={"n": 5}'],
    cwd=_ROOT,
    env={"PYTHONPATH": str(_ROOT)},
    capture_output=True,
    timeout=60,
  )
  report = msgspec.json.decode(done.stdout, type=jax_reference.Report)
  assert report.is_lasting and report.times_ms == ()
  assert report.reason.startswith("JAX has no GPU here: ")


class _Lab:
  """A JaxReference over stand-ins for JAX."""

  def __init__(self, folder):
    self.journal = folder / "journal"
    self.num_alone = 0
    self.reference = jax_reference.JaxReference(
      folder,
      0,
      1.5,
      self._alone,
      (sys.executable, str(_FAKE), "--journal", str(self.journal)),
    )

  @contextlib.contextmanager
  def _alone(self):
    self.num_alone += 1
    yield

  def starts(self):
    return self.journal.read_text().split()


@pytest.fixture
def lab(tmp_path):
  return _Lab(tmp_path)


def test_a_problem_is_measured_once_at_each_size(lab, tmp_path):
  for _ in range(2):
    assert lab.reference.measure("well", {"n": 5}).median_ms == 2.0
  assert lab.starts() == ["well"]
  _ = lab.reference.measure("well", {"n": 6})
  assert lab.starts() == ["well"] * 2
  # Another judge of the same pool knows it, too.
  other = _Lab(tmp_path)
  assert other.reference.measure("well", {"n": 5}).median_ms == 2.0
  assert other.num_alone == 0


@pytest.mark.parametrize(
  "what, words",
  [
    ("memory", "JAX failed: out of memory"),
    ("short", "too short"),
    ("hang", "more than 1.5 s"),
    ("die", "ended with -6"),
  ],
)
def test_without_a_time_there_is_a_reason(lab, what, words):
  for _ in range(2):
    report = lab.reference.measure(what, {"n": 5})
    assert report.median_ms is None and words in report.reason
  assert lab.starts() == [what]
  assert lab.reference.measure("well", {"n": 5}).median_ms == 2.0


def test_what_holds_for_every_problem_is_asked_once(lab):
  for what in ("absent", "well", "hang"):
    report = lab.reference.measure(what, {"n": 5})
    assert report.reason == "JAX is not installed"
  assert lab.starts() == ["absent"]


def test_the_record_holds_both_baselines():
  timing = Timing("n=1", 2.0, 3.0, 0.01, 0.01, 20, 0.5, "canonical", "", "")
  base = Evaluation(
    *("1", "p", Status.PASSED, Phase.TIME, "right", "cuda"),
    candidate_ms=2.0,
    reference_ms=3.0,
    timing=timing,
  )
  assert (base.speedup, base.speedup_over_jax) == (1.5, None)
  timing = msgspec.structs.replace(timing, jax_reference_ms=5.0)
  both = msgspec.structs.replace(base, timing=timing)
  assert (both.speedup, both.speedup_over_jax) == (1.5, 2.5)
