"""What a launcher does with programs and launches: each launch is asked how it
went, and modules are unloaded, however it ends. The driver is a stand-in."""

import itertools
import types

import msgspec
import pytest

from kernels_eval.cuda import jobs

pytest.importorskip("cuda.bindings.driver", reason="no bindings of CUDA")
from kernels_eval.cuda import launcher  # noqa: E402
from kernels_eval.cuda import module as module_lib  # noqa: E402
from kernels_eval.cuda.driver import DriverError  # noqa: E402

LAUNCH = jobs.Launch(
  0, "k", (1, 1, 1), (32, 1, 1), 0, (jobs.Argument(True, 0, 8),)
)
PROGRAM = msgspec.msgpack.encode([b"one", b"another"])


class Driver:
  """What `Program` calls. Each kernel has one parameter of 8 bytes and 1 KiB of
  shared memory."""

  def __init__(self, fails=None):
    self.loaded, self.num_loads = set(), 0
    self._numbers, self._fails = itertools.count(), fails
    kinds = "SHARED_SIZE_BYTES NUM_REGS LOCAL_SIZE_BYTES"
    self.CUfunction_attribute = types.SimpleNamespace(
      **{f"CU_FUNC_ATTRIBUTE_{kind}": kind for kind in kinds.split()}
    )

  def _check(self, name):
    if self._fails == name:
      raise DriverError(200, "CUDA_ERROR_INVALID_IMAGE", name)

  def cuModuleLoadData(self, binary):  # noqa: N802, as CUDA has it
    assert binary.endswith(b"\0")
    if self.num_loads:
      self._check("cuModuleLoadData")
    self.num_loads += 1
    number = next(self._numbers)
    self.loaded.add(number)
    return number

  def cuModuleUnload(self, module):  # noqa: N802
    self.loaded.remove(module)

  def cuModuleGetFunction(self, module, name):  # noqa: N802
    self._check("cuModuleGetFunction")
    assert module in self.loaded
    return name

  def cuFuncGetAttribute(self, kind, _):  # noqa: N802
    return 1024 if kind == "SHARED_SIZE_BYTES" else 8

  def cuFuncGetParamInfo(self, _, number):  # noqa: N802
    if number:
      raise DriverError(1, "CUDA_ERROR_INVALID_VALUE", "cuFuncGetParamInfo")
    return 0, 8


def install(monkeypatch, driver):
  monkeypatch.setattr(module_lib, "cuda", driver)
  monkeypatch.setattr(module_lib, "call", lambda f, *a: f(*a))


def test_row_21_a_thousand_programs_leave_no_module(monkeypatch):
  driver = Driver()
  install(monkeypatch, driver)
  for _ in range(1000):
    program = module_lib.Program(PROGRAM, [LAUNCH, LAUNCH], 99 * 1024)
    assert len(driver.loaded) == 2
    program.unload()
  assert driver.num_loads == 2000 and not driver.loaded


@pytest.mark.parametrize(
  ("fails", "launch", "outcome"),
  [
    ("cuModuleLoadData", LAUNCH, jobs.Outcome.LOAD_FAILED),
    ("cuModuleGetFunction", LAUNCH, jobs.Outcome.LOAD_FAILED),
    (
      None,
      msgspec.structs.replace(LAUNCH, arguments=()),
      jobs.Outcome.BAD_PARAMETERS,
    ),
    (
      None,
      msgspec.structs.replace(LAUNCH, shared_bytes=99 * 1024),
      jobs.Outcome.LAUNCH_FAILED,
    ),
  ],
)
def test_row_21_what_cannot_be_prepared_is_unloaded(
  monkeypatch, fails, launch, outcome
):
  driver = Driver(fails)
  install(monkeypatch, driver)
  with pytest.raises(module_lib.Ended) as end:
    module_lib.Program(PROGRAM, [launch], 99 * 1024)
  assert end.value.report.outcome == outcome
  assert driver.num_loads and not driver.loaded


@pytest.mark.parametrize(
  ("error", "outcome"),
  [
    ("CUDA_ERROR_INVALID_VALUE", jobs.Outcome.LAUNCH_FAILED),  # its own
    # Of a launch before it, which has run meanwhile.
    ("CUDA_ERROR_ILLEGAL_ADDRESS", jobs.Outcome.KERNEL_FAILED),
    ("CUDA_ERROR_UNKNOWN", jobs.Outcome.MACHINE_FAILED),
  ],
)
def test_rows_3_and_4_each_launch_is_asked(monkeypatch, error, outcome):
  started, awaited = [], []
  driver = types.SimpleNamespace(cuStreamSynchronize=awaited.append)
  monkeypatch.setattr(launcher, "cuda", driver)
  monkeypatch.setattr(launcher, "call", lambda f, *a: f(*a))

  class Kernel:
    def enqueue(self, stream):
      started.append(stream)
      if len(started) == 2:
        raise DriverError(1, error, "cuLaunchKernel")

  context = types.SimpleNamespace(stream=7)
  with pytest.raises(module_lib.Ended) as end:
    launcher.Launcher.enqueue(context, [Kernel() for _ in range(3)], 5)
  assert started == [7, 7]  # nothing behind it is launched
  assert awaited == [7]  # and what was, has ended
  report = end.value.report
  assert (report.outcome, report.error, report.case) == (outcome, error, 5)
