"""The GPU executor on a real GPU. Skipped where there is none."""

import time

import numpy as np
import pytest

from kernels_eval import candidate, client, mutations, problems, sandbox
from kernels_eval.cpu import toolchain
from kernels_eval.cuda import (
  presence,
  sanitizer,
  server_process,
  state,
  toolkit,
)
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.outcome import Stop
from kernels_eval.problems import timing_inputs, timing_sizes
from kernels_eval.schema import Finding, Phase, Request, Status
from kernels_eval.settings import Settings

_OBSTACLE = presence.obstacle()
pytestmark = pytest.mark.skipif(
  _OBSTACLE is not None, reason=f"no GPU to judge on: {_OBSTACLE}"
)
HEAD = (
  "__global__ void relu(const float* x, float* out, int n) {\n"
  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
)
GOOD = HEAD + "  if (i < n) out[i] = fmaxf(x[i], 0.0f);\n"


@pytest.fixture(scope="module")
def pool():
  with client.Pool(num_workers=2, executor="cuda") as made:
    yield made


@pytest.fixture(scope="module")
def timing_pool():
  settings = CudaSettings(with_timing=True, with_jax=True)
  with client.Pool(
    num_workers=1, executor="cuda", cuda_settings=settings
  ) as made:
    yield made


def judge(pool, text, name="relu"):
  (evaluation,) = pool.evaluate([Request("k", name, text)])
  return evaluation


def test_the_pool_names_its_gpu(pool):
  assert ", executor cuda on GPU 0 (NVRTC " in pool.description


def test_every_canonical_solution_passes(pool):
  names = sorted(problems.FAMILIES)
  answers = pool.evaluate(
    [Request(n, n, problems.get(n).canonical) for n in names]
  )
  assert [(a.id, a.message) for a in answers if not a.passed] == []
  assert all(a.num_registers for a in answers)


@pytest.mark.parametrize(
  ("extra", "status", "words"),
  [
    ("  if (i < n) out[i] = x[i];\n", "wrong_answer", "expected"),
    ("", "passed", "right"),
    ("  if (i == 0) out[n + 3] = 1.0f;\n", "runtime_error", "line 4"),
    ("  if (i == 0) out[-3] = 1.0f;\n", "runtime_error", "line 4"),
    ("  if (i == 0) out[1 << 28] = 1.0f;\n", "runtime_error", "outside"),
    ("  *(volatile float*)8 = 1.0f;\n", "runtime_error", "outside"),
    ("  *(volatile float*)((char*)out + 1) = 1;\n", "runtime_error", "misal"),
    ("  __trap();\n", "runtime_error", "trap"),
    ("  assert(n < 0);\n", "runtime_error", "assertion"),
    ("  while (((volatile float*)x)[0] < 1e30f) {}\n", "timeout", "end"),
    ("  ((float*)x)[0] = 5.0f;\n", "integrity_violation", "modified"),
    ('  if (i == 0) printf("\\xff %d\\n", n);\n', "passed", "right"),
    (
      '  for (int k = 0; i == 0 && k < 20000; k++) printf("flood %d\\n", k);\n',
      "passed",
      "right",
    ),
  ],
)
def test_what_a_kernel_does_wrong(pool, extra, status, words):
  evaluation = judge(pool, GOOD + extra + "}\n")
  assert (evaluation.status, words in evaluation.message) == (status, True), (
    evaluation
  )
  assert len(evaluation.log) <= 16 * 1024
  # The next candidate does not suffer.
  assert judge(pool, GOOD + f"}} // after {extra!r}\n").passed


def test_a_kernel_that_does_not_end_is_ended_in_time(pool):
  started = time.monotonic()
  text = GOOD + "  while (((volatile float*)x)[n - 1] < 1e30f) {}\n} // 2\n"
  assert judge(pool, text).status == "timeout"
  assert time.monotonic() - started < 25


@pytest.mark.parametrize("bytes_", [200 * 1024, 300 * 1024])
def test_shared_memory_is_the_devices(pool, bytes_):
  text = HEAD + (
    "  extern __shared__ float s[];\n"
    "  s[threadIdx.x] = i < n ? x[i] : 0.0f;\n"
    "  __syncthreads();\n"
    "  if (i < n) out[i] = fmaxf(s[threadIdx.x], 0.0f);\n}\n"
    f"// launch: relu grid=(ceil_div(n, 256)) block=(256) smem={bytes_}\n"
  )
  expected = "passed" if bytes_ < 227 * 1024 else "launch_error"
  assert judge(pool, text).status == expected


@pytest.mark.parametrize(
  "body",
  [
    "  __shared__ float s[256];\n  if (i < n) out[i] = s[threadIdx.x];\n}\n",
    # Where the last candidate's outputs lay.
    "  if (i < n) out[i] = x[i] > 0 ? x[i + (1 << 12)] : 0;\n}\n",
  ],
)
def test_nothing_right_is_left_lying_about(pool, body):
  assert judge(pool, GOOD + "} // before\n").passed
  assert judge(pool, HEAD + body).status in ("wrong_answer", "runtime_error")


def test_a_random_mistake_gets_the_same_status_on_both_executors(pool):
  names = sorted(problems.FAMILIES)
  requests = []
  for i, name in enumerate(names):
    rng = np.random.default_rng(i)
    mutated = mutations.mutate(problems.get(name).canonical, rng)
    if mutated is not None:
      requests.append(Request(name, name, mutated[1]))
  on_gpu = pool.evaluate(requests)
  with client.Pool(executor="cpu") as cpu_pool:
    on_cpu = cpu_pool.evaluate(requests)
  differing = [
    (g.id, str(g.status), str(c.status), c.finding and c.finding.kind)
    for g, c in zip(on_gpu, on_cpu, strict=True)
    if g.passed != c.passed
  ]
  # What the CPU executor's checks see and a GPU does not: races, reads of
  # memory that nothing wrote, and of neighbours' memory, that went well.
  unseen = {"data_race", "uninitialized_read", "out_of_bounds"}
  assert [d for d in differing if d[3] not in unseen] == []


def test_times_are_steady_and_above_the_floor(timing_pool):
  answers = [
    judge(timing_pool, problems.get(n).canonical + f"// {k}\n", n)
    for n in ("softmax", "relu")
    for k in range(3)
  ]
  for a in answers:
    assert a.phase == Phase.TIME and a.passed
    assert a.timing.floor_ms < a.candidate_ms
    assert 0.8 < a.speedup < 1.25  # it is the baseline
  times = [a.candidate_ms for a in answers[:3]]
  assert max(times) / min(times) < 1.1


def test_jitted_jax_is_timed_beside_it(timing_pool):
  timing = judge(
    timing_pool, problems.get("softmax").canonical, "softmax"
  ).timing
  if timing.jax_reference_ms is None:
    pytest.skip(timing.jax_note)
  assert timing.jax_note.startswith("JAX ")
  # It reads and writes the same memory as a kernel does.
  assert timing.floor_ms < timing.jax_reference_ms < 20 * timing.floor_ms
  assert 0 <= timing.jax_reference_spread < 2  # by the host's clock


@pytest.fixture(scope="module")
def explaining_pool():
  if sanitizer.find() is None:
    pytest.skip("compute-sanitizer is not installed")
  settings = CudaSettings(with_sanitizer=True)
  with client.Pool(
    num_workers=1, executor="cuda", cuda_settings=settings
  ) as made:
    yield made


# One warp adds up what the others have not written yet: those wait for half a
# millisecond first, and what shared memory held before is no number.
RACY = """\
__global__ void row_sum(const float* x, float* out, int rows, int cols) {
  __shared__ float partial[256];
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    sum += x[blockIdx.x * cols + c];
  long long start = clock64();
  while (threadIdx.x >= 32 && clock64() - start < 1000000) {}
  partial[threadIdx.x] = sum;
  if (threadIdx.x != 0) return;
  for (int k = 1; k < 256; k++) sum += partial[k];
  out[blockIdx.x] = sum;
}
"""
WRITE_LINE, READ_LINE = 8, 10


def is_the_race(finding):
  return (
    finding.kind == "data_race"
    and finding.line in (WRITE_LINE, READ_LINE)
    and f"write in line {WRITE_LINE}" in finding.message
    and f"read in line {READ_LINE}" in finding.message
  )


def test_racecheck_names_the_lines_of_a_race(explaining_pool):
  evaluation = judge(explaining_pool, RACY, "row_sum")
  assert evaluation.status == "wrong_answer", evaluation
  assert "compute-sanitizer racecheck" in evaluation.message
  assert evaluation.finding is not None, evaluation.message
  assert is_the_race(evaluation.finding), evaluation


@pytest.fixture(scope="module")
def asked_sanitizer(tmp_path_factory):
  """The tool itself, with what it prints."""
  if sanitizer.find() is None:
    pytest.skip("compute-sanitizer is not installed")
  from kernels_eval.cuda import executor as executor_lib

  folder = tmp_path_factory.mktemp("sanitizer")
  server = server_process.ServerProcess(folder, 0)
  try:
    executor = executor_lib.CudaExecutor(
      toolchain.prepare(),
      toolkit.find(),
      sandbox.probe(),
      folder,
      server.socket,
      Settings(),
      CudaSettings(),
    )
    yield sanitizer.Sanitizer(sanitizer.find(), executor, 0, 0, 60.0)
    executor.close()
  finally:
    server.stop()


@pytest.mark.parametrize("is_timed", [False, True])
def test_what_racecheck_prints_of_a_race(asked_sanitizer, is_timed):
  problem = problems.get("row_sum")
  case = problem.cases[0]
  if is_timed:
    case = timing_inputs.case_for(problem, timing_sizes.dims_for(problem))
  stop = Stop(Status.WRONG_ANSWER, "it failed", case=case)
  parsed = candidate.parse(RACY, problem)
  finding = asked_sanitizer.explain(stop, parsed, problem)
  seen = f"{finding}\n{asked_sanitizer.log}"
  assert isinstance(finding, Finding) and is_the_race(finding), seen


def test_racecheck_has_nothing_to_say_of_a_right_kernel(asked_sanitizer):
  problem = problems.get("row_sum")
  stop = Stop(Status.WRONG_ANSWER, "it failed", case=problem.cases[0])
  parsed = candidate.parse(problem.canonical, problem)
  note = asked_sanitizer.explain(stop, parsed, problem)
  seen = f"{note}\n{asked_sanitizer.log}"
  assert isinstance(note, str), seen
  assert "racecheck found nothing: RACECHECK SUMMARY: 0" in note, seen


def test_memcheck_explains_what_the_cpu_cannot_run(explaining_pool):
  text = HEAD + (
    "  unsigned lane;\n"
    '  asm("mov.u32 %0, %%laneid;" : "=r"(lane));\n'
    "  if (i < n) out[(1 << 28) + lane] = x[i];\n}\n"
  )
  evaluation = judge(explaining_pool, text)
  assert evaluation.status == "runtime_error"
  assert evaluation.finding is not None, evaluation.message
  assert evaluation.finding.line == 5
  assert "compute-sanitizer memcheck" in evaluation.message


def test_a_slower_kernel_has_a_smaller_speedup(timing_pool):
  text = HEAD + (
    "  float v = i < n ? x[i] : 0.0f;\n"
    "  for (int k = 0; k < 2000; k++) v = v * 1.0000001f;\n"
    "  for (int k = 0; k < 2000; k++) v = v / 1.0000001f;\n"
    "  if (i < n) out[i] = x[i] > 0 ? x[i] : 0.0f * v;\n}\n"
  )
  evaluation = judge(timing_pool, text)
  assert evaluation.passed and evaluation.speedup < 0.5


def test_a_kernel_for_small_sizes_only_is_found_out_when_timed(timing_pool):
  text = HEAD + "  if (i < n && n < 100000) out[i] = fmaxf(x[i], 0.0f);\n}\n"
  evaluation = judge(timing_pool, text)
  assert evaluation.status == "wrong_answer"
  assert "timed call" in evaluation.message


def test_a_kernel_that_remembers_its_answer_is_found_out(timing_pool):
  # Computes in the first calls, then trusts what it has stored.
  text = (
    "__device__ float memory[1 << 25];\n__device__ int calls;\n"
    + HEAD
    + "  if (i >= n) return;\n"
    "  if (n < 100000) { out[i] = fmaxf(x[i], 0.0f); return; }\n"
    "  if (memory[i] == 0.0f) memory[i] = fmaxf(x[i], 0.0f) + 1.0f;\n"
    "  out[i] = memory[i] - 1.0f;\n}\n"
  )
  assert judge(timing_pool, text).status == "wrong_answer"


def test_device_memory_is_given_back():
  seen = state.used_bytes()
  if not seen:
    pytest.skip("the driver's management library does not answer")
  before = seen[0]
  with client.Pool(num_workers=2, executor="cuda") as made:
    assert judge(made, GOOD + "}\n").passed
    judge(made, GOOD + "  *(volatile float*)8 = 1.0f;\n}\n")
    assert state.used_bytes()[0] > before
  deadline = time.monotonic() + 10
  while state.used_bytes()[0] > before and time.monotonic() < deadline:
    time.sleep(0.1)
  assert state.used_bytes()[0] <= before


def test_much_local_memory_is_given_back(pool):
  """64 KiB of each thread that the device can hold at once: gigabytes."""
  if not state.used_bytes():
    pytest.skip("the driver's management library does not answer")
  assert judge(pool, GOOD + "  // before\n}\n").passed  # launchers are there
  before = state.used_bytes()[0]
  text = HEAD + (
    "  volatile float kept[1 << 14];\n"
    "  if (i >= n) return;\n"
    "  kept[(i * 37) & 16383] = fmaxf(x[i], 0.0f);\n"
    "  out[i] = kept[(i * 37) & 16383];\n}\n"
  )
  evaluation = judge(pool, text)
  assert evaluation.passed and evaluation.local_bytes >= 1 << 16, evaluation
  assert judge(pool, GOOD + "  // after\n}\n").passed
  assert state.used_bytes()[0] - before < 2**30


def test_two_gpus_are_one_pool():
  before = state.used_bytes() or ()
  if len(before) < 2:
    pytest.skip(f"this machine shows {len(before)} GPUs")
  with client.Pool(
    num_workers=4, executor="cuda", cuda_settings=CudaSettings(devices=(1, 0))
  ) as made:
    assert ", executor cuda on GPU 1, 0 (NVRTC " in made.description
    names = sorted(problems.FAMILIES)
    found = made.evaluate(
      [Request(n, n, problems.get(n).canonical) for n in names]
    )
    assert [e.id for e in found if not e.passed] == []
    during = state.used_bytes()
    assert all(d > b for d, b in zip(during, before, strict=True))
    assert judge(made, GOOD + "  *(volatile float*)8 = 1.0f;\n}\n").status == (
      "runtime_error"
    )
    assert judge(made, GOOD + "}\n").passed


def test_cub_adds_up_a_row(pool):
  if not any((p / "cub").is_dir() for p in toolkit.find().include[1:]):
    pytest.skip("CUB is not installed: it comes with the CUDA toolkit")
  text = """\
#include <cub/cub.cuh>
__global__ void row_sum(const float* x, float* out, int rows, int cols) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    sum += x[(size_t)blockIdx.x * cols + c];
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
"""
  evaluation = judge(pool, text, "row_sum")
  assert evaluation.passed, evaluation
