"""How a launcher ends a job that has failed: whom it blames, and what it leaves
to the next one. The driver is a stand-in (`host_gpu.py`)."""

import types

import numpy as np
import pytest

from kernels_eval.cuda import jobs
from tests.kernels_eval import host_gpu

pytest.importorskip("cuda.bindings.driver", reason="no bindings of CUDA")
from kernels_eval.cuda import launcher as launcher_lib  # noqa: E402
from kernels_eval.cuda import module  # noqa: E402
from kernels_eval.cuda.driver import DriverError  # noqa: E402

TOTAL, IMAGE_BYTES = 1000, 512
REFUSED = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"


class _Driver(host_gpu.Driver):
  """Has a kernel's error ready for whoever waits for the stream."""

  CUlimit = types.SimpleNamespace(CU_LIMIT_STACK_SIZE=0)

  def __init__(self):
    super().__init__()
    self.pending = ""
    self.stack_bytes = 1024  # of a thread
    self.free_bytes = TOTAL

  def cuStreamSynchronize(self, _):  # noqa: N802, as CUDA has it
    if self.pending:
      raise DriverError(0, self.pending, "cuStreamSynchronize")

  def cuMemGetInfo(self):  # noqa: N802
    return self.free_bytes - _stack_share(self.stack_bytes), TOTAL

  def cuCtxGetLimit(self, _):  # noqa: N802
    return self.stack_bytes

  def cuCtxSetLimit(self, _, value):  # noqa: N802
    self.stack_bytes = value


def _stack_share(stack_bytes):
  """Of the device's memory, for all of its threads."""
  return stack_bytes // 100


class _Lab:
  """A launcher without a GPU, and the arena in which it runs jobs."""

  def __init__(self, monkeypatch):
    self.driver = _Driver()
    self._arena = np.zeros(4096, np.uint8)
    self._kernels = []
    self.held_bytes = 0  # by the program
    self.load_error = ""
    monkeypatch.setattr(launcher_lib, "ARENA_BYTES", self._arena.size)
    for place in (launcher_lib, launcher_lib.timed_calls):
      monkeypatch.setattr(place, "cuda", self.driver)
      monkeypatch.setattr(place, "call", lambda f, *a: f(*a))
    monkeypatch.setattr(launcher_lib.module_lib, "Program", self._load)
    made = launcher_lib.Launcher.__new__(launcher_lib.Launcher)
    made.stream = None
    made.hello = host_gpu.Launcher.hello
    made._arena = self._arena.ctypes.data
    made._stack_bytes = 1024
    made._log = types.SimpleNamespace(take=lambda: "")
    made.helper = lambda *_: _kernel(lambda: None)
    self.launcher = made

  def _load(self, *_):
    if self.load_error:
      error = DriverError(0, self.load_error, "cuModuleLoadData")
      raise module.judged(error, module._LOAD_ERRORS, jobs.Outcome.LOAD_FAILED)
    self.driver.free_bytes -= self.held_bytes
    return types.SimpleNamespace(
      kernel=lambda i, base: _kernel(self._kernels[i]),
      unload=self._unload,
      num_registers=0,
      shared_bytes=0,
      local_bytes=0,
    )

  def _unload(self):
    self.driver.free_bytes += self.held_bytes

  def run(self, *kernels):
    """The report of a job whose launches these functions are."""
    self._kernels = kernels
    launches = tuple(range(len(kernels)))
    job = jobs.Run(0, (0,), IMAGE_BYTES, (launches,), 1.0, 1.0)
    return self.launcher.answer(job, bytearray(b"\x07" * IMAGE_BYTES))

  @property
  def image(self):
    """What the arena holds where the job's image was."""
    return self._arena[-IMAGE_BYTES:]


def _kernel(run):
  return types.SimpleNamespace(enqueue=lambda _: run())


def _refuse(name):
  """A launch that the driver refuses."""

  def launch():
    raise DriverError(0, name, "cuLaunchKernel")

  return launch


@pytest.fixture
def lab(monkeypatch):
  return _Lab(monkeypatch)


def test_a_job_that_ends_well_leaves_nothing(lab):
  seen = []
  report = lab.run(lambda: seen.append(lab.image.copy()))
  assert report.outcome == jobs.Outcome.DONE
  assert (seen[0] == 7).all() and (lab.image == 0xDD).all()


@pytest.mark.parametrize(
  ("name", "outcome"),
  [
    (REFUSED, jobs.Outcome.LAUNCH_FAILED),
    ("CUDA_ERROR_INVALID_VALUE", jobs.Outcome.LAUNCH_FAILED),
    ("CUDA_ERROR_ILLEGAL_ADDRESS", jobs.Outcome.KERNEL_FAILED),
    ("CUDA_ERROR_ECC_UNCORRECTABLE", jobs.Outcome.MACHINE_FAILED),
  ],
)
def test_whom_a_refused_launch_blames(lab, name, outcome):
  report = lab.run(_refuse(name))
  assert (report.outcome, report.error) == (outcome, name)
  # A launcher that serves on has nothing of the job any more.
  if outcome not in jobs.SPOILING:
    assert (lab.image == 0xDD).all()


@pytest.mark.parametrize(
  ("name", "outcome"),
  [
    ("CUDA_ERROR_ILLEGAL_ADDRESS", jobs.Outcome.KERNEL_FAILED),
    ("CUDA_ERROR_LAUNCH_FAILED", jobs.Outcome.KERNEL_FAILED),
    ("CUDA_ERROR_ECC_UNCORRECTABLE", jobs.Outcome.MACHINE_FAILED),
  ],
)
def test_the_first_fault_counts_though_the_second_is_known_sooner(
  lab, name, outcome
):
  """The second launch is refused while the first has yet to fail."""
  report = lab.run(
    lambda: setattr(lab.driver, "pending", name), _refuse(REFUSED)
  )
  assert (report.outcome, report.error) == (outcome, name)


def test_an_error_that_comes_late_is_not_the_next_job_s(lab):
  lab.load_error = "CUDA_ERROR_INVALID_IMAGE"
  assert lab.run().outcome == jobs.Outcome.LOAD_FAILED
  lab.driver.pending = "CUDA_ERROR_UNKNOWN"
  assert lab.run().outcome == jobs.Outcome.MACHINE_FAILED


@pytest.mark.parametrize("when", ["load", "launch"])
@pytest.mark.parametrize("others_bytes", [0, 400, 600, 950])
def test_memory_that_others_have_is_missed_by_nobody_s_fault(
  lab, when, others_bytes
):
  lab.driver.free_bytes -= others_bytes
  if when == "load":
    lab.load_error = module.OUT_OF_MEMORY
  report = lab.run(_refuse(module.OUT_OF_MEMORY))
  if others_bytes > TOTAL // 2:
    assert report.outcome == jobs.Outcome.MACHINE_FAILED
    assert "only" in report.message and "are free" in report.message
  else:
    assert report.outcome in (
      jobs.Outcome.LAUNCH_FAILED,
      jobs.Outcome.LOAD_FAILED,
    )


@pytest.mark.parametrize(
  ("free_gib", "total_gib", "outcome"),
  [
    (35, 140, jobs.Outcome.LOAD_FAILED),  # a learner has three quarters
    (3, 140, jobs.Outcome.MACHINE_FAILED),
    (3, 6, jobs.Outcome.LOAD_FAILED),
    (2, 6, jobs.Outcome.MACHINE_FAILED),
  ],
)
def test_a_program_may_count_on_some_memory(free_gib, total_gib, outcome):
  end = jobs.Report(jobs.Outcome.LOAD_FAILED, "no", module.OUT_OF_MEMORY)
  found = module.out_of_memory(end, free_gib * 2**30, total_gib * 2**30)
  assert found.outcome == outcome


def test_memory_that_a_program_has_itself_is_no_excuse(lab):
  lab.held_bytes = 900
  report = lab.run(_refuse(module.OUT_OF_MEMORY))
  assert report.outcome == jobs.Outcome.LAUNCH_FAILED
  assert lab.driver.free_bytes == TOTAL


@pytest.mark.parametrize(
  ("stack_bytes", "kept_bytes"), [(2048, 2048), (90_000, 1024)]
)
def test_much_local_memory_is_given_back(lab, stack_bytes, kept_bytes):
  def grow():
    lab.driver.stack_bytes = stack_bytes

  assert lab.run(grow).outcome == jobs.Outcome.DONE
  assert lab.driver.stack_bytes == kept_bytes
  # What a program's first launch has taken is no excuse for its second.
  report = lab.run(grow, _refuse(module.OUT_OF_MEMORY))
  assert report.outcome == jobs.Outcome.LAUNCH_FAILED
  assert lab.driver.stack_bytes == kept_bytes
