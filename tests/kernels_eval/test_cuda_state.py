"""Which devices the management library is asked about."""

import pytest

state = pytest.importorskip(
  "kernels_eval.cuda.state", reason="needs nvidia-ml-py"
)
UUIDS = ["GPU-aa11", "GPU-aa22", "GPU-bb33"]


@pytest.mark.parametrize(
  ("visible", "chosen"),
  [
    (None, [0, 1, 2]),
    ("", []),
    ("1", [1]),
    ("2, 0", [2, 0]),
    ("GPU-bb33,GPU-aa11", [2, 0]),
    ("GPU-b", [2]),
    ("GPU-a", []),  # names two
    ("1,-1,2", [1]),  # what follows an unknown entry is not seen
    ("1,7,2", [1]),
  ],
)
def test_devices_that_cuda_shows(visible, chosen):
  assert state.choose(UUIDS, visible) == chosen


def test_memory_where_no_driver_answers(monkeypatch):
  def init():
    raise state.pynvml.NVMLError(state.pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

  monkeypatch.setattr(state.pynvml, "nvmlInit", init)
  assert state.used_bytes() is None
  assert state.describe("GPU-1").startswith("device state unknown: ")


def test_a_device_is_named_as_the_library_does():
  name = state.name_of(bytes(range(16)))
  assert name == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
