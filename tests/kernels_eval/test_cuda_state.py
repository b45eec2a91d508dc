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
