"""Timed calls without a GPU: every call is looked at, and nothing is left."""

import ctypes
import types

import msgspec
import numpy as np
import pytest

from kernels_eval import correctness, dtypes
from kernels_eval.cuda import jobs
from kernels_eval.problems import timing_inputs
from tests.kernels_eval import host_gpu

pytest.importorskip("cuda.bindings.driver", reason="no bindings of CUDA")
from kernels_eval.cuda import helper_trial, timed_calls  # noqa: E402

N, TABLE = 1000, 4096
NUM_WARM, NUM_CALLS, CHECKED = 2, 6, 4
X, OUT = 0, 4096  # places in the image


@pytest.fixture(scope="module")
def helpers(tmp_path_factory):
  return host_gpu.compile_helpers(tmp_path_factory.mktemp("helpers"))


def view(address, dtype=np.float32, count=N):
  items = ctypes.c_char * (np.dtype(dtype).itemsize * count)
  return np.frombuffer(items.from_address(address), dtype)


def double(base, _=None):
  view(base + OUT)[:] = 2 * view(base + X)


def timed(monkeypatch, helpers, candidate, gap=1e-5, share=1e-4):
  """(report, checked output, inputs of the checked call, driver)."""
  table = np.random.default_rng(0).standard_normal(TABLE, np.float32)
  raw = table.tobytes()
  memory = bytearray(raw + bytes(-len(raw) % 256 + 4 * N))
  start = len(raw) + -len(raw) % 256
  job = jobs.Timing(
    subjects=(
      jobs.Subject(0, 0, (None,)),
      jobs.Subject(0, 0, (None,)),
    ),
    image_bytes=OUT + 4 * N + 96,
    inputs=(jobs.Input(X, N, 4, 0, TABLE),),
    keys=tuple(2**60 + 7 * c for c in range(NUM_WARM + NUM_CALLS)),
    num_warm=NUM_WARM,
    checked=CHECKED,
    guards=((4 * N, OUT - 4 * N), (OUT + 4 * N, 96)),
    outputs=(jobs.Output(OUT, start, 4 * N, N, "float32", 0xFF, gap, share),),
    wall_s=1.0,
  )
  driver = host_gpu.install(monkeypatch, timed_calls, [candidate, double])
  report = timed_calls.measure(host_gpu.Launcher(helpers), job, memory)
  inputs = table[timing_inputs.places(N, job.keys[CHECKED], 0, TABLE)]
  output = np.frombuffer(memory, np.float32, N, start)
  return report, output, inputs, driver


def num_far(report):
  return [row[0].num_far for row in report.compared]


def test_an_honest_program_is_near_in_each_call(monkeypatch, helpers):
  report, output, inputs, driver = timed(monkeypatch, helpers, double)
  np.testing.assert_array_equal(output, 2 * inputs)
  assert num_far(report) == [0] * NUM_CALLS and report.is_intact
  assert report.times_ms == ((1.0,) * NUM_CALLS,) * 2
  for row in report.compared:
    assert row[0].squared_gaps == 0 and 3 * N < row[0].squares < 5 * N
  assert not driver.memory
  assert all((array == 0xDD).all() for array in driver.freed if array.any())
  assert (
    msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=jobs.Report)
    == report
  )


@pytest.mark.parametrize("lazy_call", range(NUM_WARM + NUM_CALLS))
@pytest.mark.parametrize(
  ("work", "share_far"),
  [("nothing", 1.0), ("zeros", 0.99), ("half", 0.49), ("the last one", 0.99)],
)
def test_one_lazy_call_is_seen(
  monkeypatch, helpers, lazy_call, work, share_far
):
  calls, last = [], []

  def candidate(base, _):
    is_lazy = len(calls) == lazy_call
    calls.append(base)
    out = view(base + OUT)
    if not is_lazy:
      double(base)
    elif work == "zeros":
      out[:] = 0
    elif work == "half":
      out[: N // 2] = 2 * view(base + X)[: N // 2]
    elif work == "the last one" and last:
      out[:] = last[-1]
    last.append(out.copy())

  report, *_ = timed(monkeypatch, helpers, candidate)
  far = [n >= share_far * N for n in num_far(report)]
  want = [c + NUM_WARM == lazy_call for c in range(NUM_CALLS)]
  assert far == want and sum(num_far(report)) == max(num_far(report))


def test_less_precision_is_seen_in_the_rms(monkeypatch, helpers):
  def rounded(base, _):
    x = view(base + X).astype(np.float16).astype(np.float32)
    view(base + OUT)[:] = 2 * x

  report, *_ = timed(monkeypatch, helpers, rounded, gap=1e-2)
  near = correctness.nearness([(np.ones(N), np.ones(N))], "float32", 1.0)
  for ((found,),) in zip(report.compared, strict=True):
    assert found.num_far == 0
    rms, gap = ((x / N) ** 0.5 for x in (found.squares, found.squared_gaps))
    assert gap > near.rms_share * rms


@pytest.mark.parametrize(
  ("which", "num_bytes"),
  [("the inputs' table", 4 * TABLE), ("an output", 4 * N)],
)
def test_who_changes_what_is_not_its_own_is_seen(
  monkeypatch, helpers, which, num_bytes
):
  del which
  calls = []

  def candidate(base, driver):
    double(base)
    calls.append(base)
    if len(calls) == NUM_WARM + NUM_CALLS:  # nothing is compared behind it
      for address, memory in driver.memory.items():
        if memory.size == num_bytes:
          view(address, np.uint8, num_bytes)[-1] ^= 1

  report, *_ = timed(monkeypatch, helpers, candidate)
  assert not report.is_intact and num_far(report)[:-1] == [0] * (NUM_CALLS - 1)


def test_what_is_written_between_buffers_is_counted(monkeypatch, helpers):
  def candidate(base, _):
    double(base)
    view(base + X + 4 * N, np.uint8, 8)[:] = 1
    view(base + OUT + 4 * N, np.uint8, 96)[-1] = 1

  report, *_ = timed(monkeypatch, helpers, candidate)
  assert report.num_changed == 9 * (NUM_WARM + NUM_CALLS)
  assert report.is_intact and num_far(report) == [0] * NUM_CALLS


def test_the_helpers_pass_their_trial(monkeypatch, helpers):
  driver = host_gpu.Driver()
  monkeypatch.setattr(helper_trial, "cuda", driver)
  monkeypatch.setattr(helper_trial, "call", lambda f, *a: f(*a))
  launcher = host_gpu.Launcher(helpers)
  helper_trial.run(launcher)
  assert not driver.memory
  right = launcher.helper
  for broken in (
    "ke_count_changed",
    "ke_digest",
    "ke_compare_int8",
    "ke_draw_2",
  ):

    def idle(name, *rest, broken=broken):
      if name == broken:
        return types.SimpleNamespace(enqueue=lambda _: None)
      return right(name, *rest)

    monkeypatch.setattr(launcher, "helper", idle)
    with pytest.raises(RuntimeError, match="a kernel of the launcher's own"):
      helper_trial.run(launcher)


@pytest.mark.parametrize("name", sorted(dtypes.DTYPES))
def test_differences_of_every_dtype(helpers, name):
  is_float = dtypes.DTYPES[name].is_float
  expected = np.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
  got = np.asarray([1.0, 2.0, 4.0, 4.0, 7.0])
  e, g = (host_gpu.stored(x, name) for x in (expected, got))
  found = compared(helpers, name, g, e, 1.0 if is_float else 0.0, 0.0)
  assert found == (1 if is_float else 2, 5.0, 55.0)
  if is_float:
    found = compared(helpers, name, g, e, 0.5, 0.3)  # 1 <= 0.5 + 0.9
    assert found[0] == 0 + (2.0 > 0.5 + 0.3 * 5.0)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_what_is_no_finite_number_is_far(helpers, name):
  odd = np.asarray([np.nan, np.inf, -np.inf, 1.0, np.nan])
  plain = np.asarray([1.0, 1.0, 1.0, 1.0, 1.0])
  with np.errstate(all="ignore"):
    odd, plain = (host_gpu.stored(x, name) for x in (odd, plain))
  assert compared(helpers, name, odd, plain, 1.0, 1.0)[0] == 4
  assert compared(helpers, name, plain, odd, 1.0, 1.0)[0] == 4
  assert compared(helpers, name, odd, odd, 1.0, 1.0)[0] == 4


def compared(helpers, name, got, expected, gap, share):
  found = np.zeros(
    1, [("far", np.uint64), ("gaps", np.float64), ("squares", np.float64)]
  )
  helpers[f"ke_compare_{name}"](
    ctypes.c_void_p(got.ctypes.data),
    ctypes.c_void_p(expected.ctypes.data),
    ctypes.c_uint64(got.size),
    ctypes.c_double(gap),
    ctypes.c_double(share),
    ctypes.c_void_p(found.ctypes.data),
  )
  return found[0].tolist()


def test_the_checksum_sees_every_byte(helpers):
  data = np.random.default_rng(0).integers(0, 256, 103).astype(np.uint8)

  def digest():
    found = np.zeros(1, np.uint64)
    helpers["ke_digest"](
      ctypes.c_void_p(data.ctypes.data),
      ctypes.c_uint64(data.size),
      ctypes.c_void_p(found.ctypes.data),
    )
    return int(found[0])

  seen = {digest()}
  for i in range(data.size):
    data[i] ^= 1
    seen.add(digest())
    data[i] ^= 1
  assert len(seen) == data.size + 1
