"""What the CPU executor keeps from a GPU. (It needs none.)"""

import pytest

from kernels_eval import candidate as candidate_lib
from kernels_eval import judge as judge_lib
from kernels_eval import problems, sandbox
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu import toolchain
from kernels_eval.cuda import diagnosis as diagnosis_lib
from kernels_eval.cuda import screen
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings
from kernels_eval.verdict import Prepared

HEAD = (
  "__global__ void relu(const float* x, float* out, int n) {\n"
  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
)


RIGHT = "  if (i < n) out[i] = x[i] > 0 ? x[i] : 0.0f;\n}\n"


@pytest.fixture(scope="module")
def executor(tmp_path_factory):
  tools = toolchain.prepare()
  made = executor_lib.Executor(
    tools,
    sandbox.probe(),
    tmp_path_factory.mktemp("screen"),
    Settings(run_cpu_s=0.5, access_limit=10**6),
  )
  yield made
  made.close()
  tools.release()


@pytest.fixture
def check(executor):
  prepared = Prepared(problems.get("relu"), 0)
  cases = [(case, arrays) for case, arrays, _, _ in prepared.cases]

  def run(body, head=HEAD):
    parsed = candidate_lib.parse(head + body, prepared.problem)
    return screen.Screen(executor).check(parsed, prepared.problem, cases)

  return run


@pytest.mark.parametrize(
  ("body", "kind"),
  [
    ("  out[i] = x[i] > 0 ? x[i] : 0.0f;\n}\n", "out_of_bounds"),
    ("  __trap();\n}\n", "trap"),
    ("  if (i == 0) out[0] = x[0];\n  out[0] = 1.0f;\n}\n", "data_race"),
    ("  *(float*)(size_t)(i + 8) = 1.0f;\n}\n", "out_of_bounds"),
  ],
)
def test_what_fails_on_any_device_stops_here(check, body, kind):
  found = check(body)
  assert found.status == Status.RUNTIME_ERROR
  assert found.finding.kind == kind and found.case is not None


def _local(num_bytes, body):
  """A thread that touches every page of a local array."""
  return (
    f"  volatile char a[{num_bytes}];\n"
    f"  for (int k = 0; k < {num_bytes}; k += 512) a[k] = (char)(i + k);\n"
    f"  if (a[512] != (char)(i + 512)) __trap();\n{body}"
  )


@pytest.mark.parametrize(
  "body",
  [
    RIGHT,
    "  if (i < n) out[i] = 1.0f;\n}\n",  # wrong: for the GPU to say
    '  if (i < n) asm volatile("mov.f32 %0, 0f00000000;" : "=f"(out[i]));\n}\n',
    "  out[i] = nothing;\n}\n",  # does not compile: NVRTC's words count
    # Limits that are the CPU executor's own.
    "  volatile int k = 0;\n  while (n > 0) k = 1;\n}\n",  # processor time
    f"  for (int k = 0; k < 999999; k++) if (i < n) out[i] = k;\n{RIGHT}",
    _local(600_000, RIGHT),  # a fibre's stack
  ],
)
def test_everything_else_is_for_the_gpu(check, body):
  assert check(body) is None


class _Watched:
  """Counts the runs of an executor; takes the place of a GPU's as well."""

  name = "watched"

  def __init__(self, executor):
    self._executor = executor
    self.num_runs = 0

  def __getattr__(self, name):
    return getattr(self._executor, name)

  def run(self, *arguments):
    self.num_runs += 1
    return self._executor.run(*arguments)


@pytest.mark.parametrize("knows_line", [True, False])
def test_what_is_screened_is_not_run_again(executor, monkeypatch, knows_line):
  if not knows_line:
    monkeypatch.setattr(executor, "_line_of", lambda offset, artefact: None)
  gpu, cpu = _Watched(executor), _Watched(executor)
  judge = judge_lib.Judge(
    gpu, 0, None, diagnosis_lib.Diagnosis(cpu, 0), screen.Screen(cpu)
  )
  text = HEAD + "  out[i] = x[i];\n}\n"
  found = judge.evaluate(Request("", "relu", text))
  assert (cpu.num_runs, gpu.num_runs) == (1, 0)
  assert found.status == Status.RUNTIME_ERROR
  assert found.finding.kind == "out_of_bounds" and found.case is not None
  assert "on the GPU" not in found.message
  # And what passes the screen is the GPU's, once.
  assert judge.evaluate(Request("", "relu", HEAD + RIGHT)).passed
  assert (cpu.num_runs, gpu.num_runs) == (2, 1)


def test_what_the_gpu_stops_is_explained_once(executor):
  gpu, cpu = _Watched(executor), _Watched(executor)
  judge = judge_lib.Judge(gpu, 0, None, diagnosis_lib.Diagnosis(cpu, 0))
  text = HEAD + "  out[i] = x[i];\n}\n"
  found = judge.evaluate(Request("", "relu", text))
  assert (cpu.num_runs, gpu.num_runs) == (1, 1)
  assert "found on the CPU" in found.message
