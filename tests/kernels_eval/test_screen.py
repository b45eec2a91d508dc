"""What the CPU executor keeps from a GPU. (It needs none.)"""

import pytest

from kernels_eval import candidate as candidate_lib
from kernels_eval import problems, sandbox
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu import toolchain
from kernels_eval.cuda import screen
from kernels_eval.outcome import Stop
from kernels_eval.settings import Settings
from kernels_eval.verdict import Prepared

HEAD = (
  "__global__ void relu(const float* x, float* out, int n) {\n"
  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
)


@pytest.fixture(scope="module")
def check(tmp_path_factory):
  tools = toolchain.prepare()
  executor = executor_lib.Executor(
    tools,
    sandbox.probe(),
    tmp_path_factory.mktemp("screen"),
    Settings(run_cpu_s=0.5),
  )
  prepared = Prepared(problems.get("relu"), 0)
  cases = [(case, arrays) for case, arrays, _, _ in prepared.cases]

  def run(body):
    parsed = candidate_lib.parse(HEAD + body, prepared.problem)
    screen.Screen(executor).check(parsed, prepared.problem, cases)

  yield run
  executor.close()
  tools.release()


@pytest.mark.parametrize(
  ("body", "status"),
  [
    ("  out[i] = x[i] > 0 ? x[i] : 0.0f;\n}\n", "runtime_error"),
    ("  __trap();\n}\n", "runtime_error"),
    ("  for (;;) out[0] = x[0];\n}\n", "timeout"),
  ],
)
def test_what_fails_in_a_run_stops_here(check, body, status):
  with pytest.raises(Stop) as stop:
    check(body)
  assert stop.value.status == status


@pytest.mark.parametrize(
  "body",
  [
    "  if (i < n) out[i] = x[i] > 0 ? x[i] : 0.0f;\n}\n",  # right
    "  if (i < n) out[i] = 1.0f;\n}\n",  # wrong: for the GPU to say
    '  if (i < n) asm volatile("mov.f32 %0, 0f00000000;" : "=f"(out[i]));\n}\n',
    "  out[i] = nothing;\n}\n",  # does not compile: NVRTC's words count
  ],
)
def test_everything_else_is_for_the_gpu(check, body):
  check(body)
