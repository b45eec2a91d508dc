"""Images of buffers with guard zones, and sizes of timed cases."""

import ctypes.util

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from kernels_eval import client, dtypes, problem_cards, problems
from kernels_eval.cpu import protocol
from kernels_eval.cuda import image, presence
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.problems import timing_sizes


@st.composite
def run_cases(draw):
  cases = []
  for _ in range(draw(st.integers(1, 3))):
    buffers = []
    for i in range(draw(st.integers(1, 4))):
      role = draw(st.sampled_from([0, 1, 2]))
      count = draw(st.integers(0, 700))
      contents = None
      if role == protocol.INPUT:
        contents = np.arange(count, dtype=np.float32)
      buffers.append(protocol.RunBuffer(f"b{i}", role, 4 * count, 4, contents))
    cases.append(protocol.RunCase(tuple(buffers), ()))
  return cases


@hypothesis.given(run_cases(), st.sampled_from(image.PATTERNS))
@hypothesis.settings(max_examples=60, deadline=None)
def test_buffers_are_apart_and_hold_their_contents(cases, pattern):
  layout = image.lay_out(cases)
  pixels = np.zeros(layout.num_bytes, np.uint8)
  image.fill(pixels, cases, layout, pattern)
  assert image.find_damage(pixels, cases, layout, pattern) is None
  end = 0
  for case, offsets in zip(cases, layout.offsets, strict=True):
    for buffer, offset in zip(case.buffers, offsets, strict=True):
      assert offset % 256 == 0
      assert offset - end >= 4096  # bytes between any two
      end = offset + buffer.num_bytes
      stored = pixels[offset:end]
      if buffer.contents is None:
        assert (stored == pattern).all()
      else:
        assert stored.tobytes() == buffer.contents.tobytes()


@hypothesis.given(run_cases(), st.data())
@hypothesis.settings(max_examples=60, deadline=None)
def test_any_changed_byte_outside_of_buffers_is_found(cases, data):
  layout = image.lay_out(cases)
  pixels = np.zeros(layout.num_bytes, np.uint8)
  image.fill(pixels, cases, layout, image.PATTERNS[0])
  is_free = np.ones(layout.num_bytes, bool)
  places = {}
  for i, (case, offsets) in enumerate(zip(cases, layout.offsets, strict=True)):
    for buffer, offset in zip(case.buffers, offsets, strict=True):
      is_free[offset : offset + buffer.num_bytes] = False
      places[i, buffer.name] = (offset, offset + buffer.num_bytes)
  at = int(data.draw(st.sampled_from(list(np.flatnonzero(is_free)))))
  pixels[at] ^= 1
  damage = image.find_damage(pixels, cases, layout, image.PATTERNS[0])
  start, end = places[damage.case, damage.buffer]
  assert damage.num_bytes == 1
  assert at == (
    start + damage.distance_bytes
    if damage.distance_bytes < 0
    else end + damage.distance_bytes
  )
  # Whatever a kernel writes into outputs and scratch is no damage.
  pixels[at] ^= 1
  pixels[~is_free] = 3
  assert image.find_damage(pixels, cases, layout, image.PATTERNS[0]) is None


@pytest.mark.parametrize("name", sorted(problems.FAMILIES))
def test_every_problem_has_a_size_to_be_timed_at(name):
  problem = problems.get(name)
  dims = timing_sizes.dims_for(problem)
  assert set(dims) == set(problem.dims)
  total = 0
  for tensor in (*problem.inputs, *problem.outputs):
    size = dtypes.DTYPES[tensor.dtype].item_bytes
    for n in tensor.shape_for(dims):
      assert n > 0
      size *= n
    total += size
  assert total < 2**30
  read = timing_sizes.least_read_bytes(problem, dims)
  assert 0 < read <= total


def test_composed_problems_have_one_too():
  for name in problem_cards.compositions(0, 20, (1, 4), 0.5):
    problem = problems.get(name)
    assert set(timing_sizes.dims_for(problem)) == set(problem.dims)


@pytest.mark.skipif(
  ctypes.util.find_library("cuda") is not None,
  reason="this machine has the driver's library",
)
@pytest.mark.parametrize("device", [0, 3])
def test_a_device_without_its_driver_says_so(monkeypatch, capfd, device):
  """As in a container that shows /dev/nvidia0 and has no libcuda."""
  pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
  monkeypatch.setattr(presence, "has_device", lambda: True)
  assert presence.obstacle() is None
  with pytest.raises(client.HarnessError) as caught:
    client.Pool(
      num_workers=1,
      executor="cuda",
      cuda_settings=CudaSettings(devices=(device,)),
    )
  said = str(caught.value)
  assert said.startswith(
    f"GPU {device} is not usable: the NVIDIA driver's library is missing"
  )
  assert "libcuda" in said and "\n" not in said
  assert "Traceback" not in capfd.readouterr().err


@pytest.mark.skipif(presence.has_device(), reason="this machine has a GPU")
def test_a_machine_without_a_gpu_says_so():
  with pytest.raises(client.HarnessError, match="shows no NVIDIA GPU"):
    client.Pool(num_workers=1, executor="cuda")
  with pytest.raises(client.HarnessError, match="no executor `gpu`"):
    client.Pool(num_workers=1, executor="gpu")
