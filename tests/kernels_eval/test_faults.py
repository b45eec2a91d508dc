"""Fault inputs that broke other judges: which test tries each, row by row.

The rows are numbered as in the list of 58 that the harness was designed
against. A place is a test module of this folder with a test, or `corpus` with
a file of `tests/adversarial`. A test below checks that every row has its place
and that every place exists. No row needs a GPU; those of `test_ray_pool` and
`test_ray_alone` need Ray, those of NVRTC, the driver's bindings and Numba their
packages, and are skipped without. What a real driver does is beyond a machine
without one: there `test_cuda_device` adds that its memory comes back (21, 40).

 1 test_processes test_a_bad_kernel_does_not_hurt_the_next
 2 test_faults test_row_2_bad_kernels_of_one_problem_leave_others_alone
 3 test_faults test_row_3_the_fault_belongs_to_its_own_kernel
 3 test_cuda_modules test_rows_3_and_4_each_launch_is_asked
 4 test_cuda_modules test_rows_3_and_4_each_launch_is_asked
 4 test_cuda_server test_a_spoilt_launcher_serves_no_second_job
 4 corpus launch_that_fails.cu
 5 test_processes test_hanging_jobs_end_at_their_limits_and_the_others_finish
 6 test_sandbox test_a_job_that_ignores_signals_is_killed
 7 test_processes test_fifty_hanging_candidates_leave_nothing
 8 test_compile_faults test_row_8_a_killed_compiler_leaves_no_lock
 9 test_compile_faults test_row_9_one_source_twice_at_once
10 test_compile_faults test_row_10_a_compiler_starts_no_processes
11 test_compile_faults test_row_11_many_heavy_compiles_within_their_memory
12 test_compile_faults test_row_12_many_compiles_leave_no_files
13 test_processes test_nothing_survives_a_killed_client
14 test_compile_faults test_row_14_one_function_of_thousands_of_lines
15 test_compile_faults test_row_15_optimisation_is_not_asked_for
15 test_nvrtc test_an_endless_compilation_is_ended
16 test_compile_faults test_row_16_nested_unrolling
17 test_processes test_hanging_jobs_end_at_their_limits_and_the_others_finish
17 corpus constexpr_bomb.cu
18 test_faults test_rows_18_and_19_no_binding_compiles_a_candidate
19 test_faults test_rows_18_and_19_no_binding_compiles_a_candidate
20 test_nvrtc test_row_20_programs_of_the_compiler_are_not_kept
21 test_cuda_modules test_row_21_a_thousand_programs_leave_no_module
21 test_cuda_modules test_row_21_what_cannot_be_prepared_is_unloaded
21 test_cuda_device test_device_memory_is_given_back
22 test_compile_faults test_rows_22_and_23_a_text_is_judged_once
23 test_compile_faults test_rows_22_and_23_a_text_is_judged_once
24 test_nvrtc test_ptx_from_a_hostile_process_meets_the_sandboxed_assembler
24 test_nvrtc test_numba_solutions_become_cubins
25 test_native_parts test_a_cache_that_cannot_be_written
25 test_faults test_row_25_no_home_folder
26 test_faults test_row_26_a_judge_without_memory_blames_nobody
27 test_checker test_zeros_fail_however_small_the_outputs_are
27 corpus zeros_where_small.cu
28 test_numba_faults test_row_28_continue_in_front_of_a_barrier_with_a_vote
29 test_numba_language test_findings
29 test_findings test_finding
30 test_numba_faults test_row_30_an_exception_in_front_of_a_barrier
31 test_numba_language test_shuffles_carry_every_type
31 test_warps test_shuffles
32 test_numba_language test_what_the_executor_cannot_do_is_said
32 test_refusals test_refused
33 test_numba_faults test_row_33_slices_of_dynamic_shared_memory
33 test_threads test_dynamic_shared_memory
34 test_numba_faults test_rows_34_and_35_what_a_device_has_not
35 test_numba_faults test_rows_34_and_35_what_a_device_has_not
36 test_sandbox test_grandchildren_end_with_their_job
37 test_faults test_row_37_the_end_of_a_pool_waits_for_nobody
38 test_ray_pool test_a_machine_that_dies_loses_no_candidate
38 test_ray_alone test_a_killed_learner_takes_its_cluster_and_judges_with_it
38 test_cuda_server test_the_end_of_the_pool_ends_server_and_launchers
39 test_faults test_row_39_nothing_is_pickled
40 test_cuda_server test_a_device_without_memory_says_so_at_the_start
40 test_soak test_gpu_memory_is_compared
40 test_cuda_device test_device_memory_is_given_back
41 test_cuda_server test_row_41_a_process_that_no_signal_ends
42 test_faults test_row_42_a_megabyte_of_prints
43 test_faults test_row_43_bytes_that_are_no_text
43 test_compile_faults test_row_43_a_hundred_kilobytes_of_errors
44 test_faults test_rows_44_and_45_a_crash_is_reported_at_once
45 test_faults test_rows_44_and_45_a_crash_is_reported_at_once
45 test_processes test_a_killed_judge_is_replaced_and_its_candidate_judged_again
46 test_sandbox test_a_job_that_ignores_signals_is_killed
47 corpus honest/launch_bounds.cu
47 corpus honest/two_line_signature.cu
47 test_plans test_kernel_names
48 test_faults test_row_48_errors_travel_as_text
49 test_numba_language test_two_shared_arrays_in_one_line
49 test_numba_language test_a_device_function_has_its_own_shared_array
50 test_numba_faults test_row_50_shared_memory_is_each_launch_s_own
51 test_numba_faults test_row_51_what_no_device_can_launch
51 test_numba_faults test_row_51_a_race_of_one_block
51 test_numba_language test_division_by_zero_does_not_raise
51 test_numba_language test_findings
51 test_plans test_limits_of_the_hardware
52 test_numba_contract test_host_code_is_no_part_of_a_candidate
52 corpus numba_open_in_kernel.py
52 corpus numba_endless_loop.py
53 test_numba_contract test_compile_errors_have_a_line
53 corpus numba_giant_shared.py
54 corpus include_endless.cu
55 corpus giant_initialised_array.cu
55 test_sandbox test_output_of_the_compiler_is_bounded
56 corpus template_bomb.cu
56 test_compile_faults test_row_56_recursive_templates_say_little
57 test_nvrtc test_canonical_solutions_compile
58 test_numba_sandbox test_system_calls_end_the_module
58 test_numba_sandbox test_files_of_the_machine_are_not_there
58 corpus numba_hidden_system.py
"""

import ast
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import pytest

import kernels_eval
from kernels_eval import client, corpus, correctness, problems
from kernels_eval import judge as judge_lib
from kernels_eval.cpu import protocol
from kernels_eval.launch_plan import CandidateError
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings
from tests.kernels_eval import machine

GOOD = problems.get("vector_add").canonical
_HERE = pathlib.Path(__file__).parent
_SIGNATURE = "(const float* x, const float* y, float* out, int n) {\n"
_HEAD = "__global__ void k" + _SIGNATURE
_ADD = (
  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
  "  if (i < n) out[i] = x[i] + y[i];\n"
)
_PLACE = re.compile(r"^ ?(\d+) (\w+) (.+)$", re.M)


def _tests(path):
  tree = ast.parse(path.read_text())
  return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_every_row_has_its_place():
  places = _PLACE.findall(__doc__)
  assert {int(row) for row, _, _ in places} == set(range(1, 59))
  rows = [x for x in __doc__.splitlines() if x[:2].strip().isdigit()]
  assert len(places) == len(rows)
  for row, place, what in places:
    if place == "corpus":
      assert (corpus.default_folder() / what).is_file(), row
    else:
      assert what in _tests(_HERE / f"{place}.py"), row
      if place.endswith("_faults") or what.startswith("test_row"):
        assert re.search(rf"_{row}_", what), what  # a test names its rows


@pytest.fixture(scope="module")
def pool():
  """One judge with short limits, so that order is what it seems."""
  settings = Settings(run_cpu_s=0.5, compile_cpu_s=2.0)
  with client.Pool(num_workers=1, settings=settings) as p:
    yield p


def _statuses(pool, requests):
  return [
    a.status for a in pool.evaluate([Request("", n, t) for n, t in requests])
  ]


_BAD = {
  "wild_write": _HEAD + "  out[(size_t(1) << 40) + threadIdx.x] = 1.0f;\n}",
  "write_past_the_end": _HEAD + "  out[n + threadIdx.x] = 1.0f;\n}",
  "trap": _HEAD + "  __trap();\n}",
  "stack": "__device__ int f(volatile int* p) { return *p ? 0 : f(p) + 1; }\n"
  "__device__ int zero;\n" + _HEAD + "  out[0] = f(&zero);\n}",
  "endless": _HEAD + "  while (true) {}\n}",
  "null_call": _HEAD + "  void (*volatile f)() = nullptr;\n  f();\n}",
}


@pytest.mark.parametrize("name", _BAD)
def test_row_2_bad_kernels_of_one_problem_leave_others_alone(pool, name):
  others = ("row_sum", "softmax", "half_add")
  requests = [("vector_add", _BAD[name])]
  requests += [
    (o, f"// after {name}\n{problems.get(o).canonical}") for o in others
  ]
  bad, *good = _statuses(pool, requests)
  assert bad == (Status.TIMEOUT if name == "endless" else Status.RUNTIME_ERROR)
  assert good == [Status.PASSED] * len(others)


def test_row_3_the_fault_belongs_to_its_own_kernel(pool):
  requests = []
  for i in range(4):
    requests += [
      Request(f"good {i}", "vector_add", f"// {i}\n{GOOD}"),
      Request(f"bad {i}", "vector_add", f"// {i}\n{_BAD['wild_write']}"),
    ]
  for request, answer in zip(requests, pool.evaluate(requests), strict=True):
    assert answer.id == request.id
    assert answer.passed == request.id.startswith("good")
    assert (answer.finding is None) == answer.passed


# ---- the machine


def _check(tmp_path, **environment):
  file = tmp_path / "k.cu"
  file.write_text(GOOD)
  return subprocess.run(
    [
      *(sys.executable, "-m", "kernels_eval", "check", str(file)),
      *("--problem", "vector_add"),
    ],
    capture_output=True,
    text=True,
    timeout=300,
    env={**os.environ, **environment},
    cwd=_HERE.parents[1],
  )


@pytest.mark.parametrize("cache", ["nowhere", "file/below"])
def test_row_25_no_home_folder(tmp_path, cache):
  """Nothing can be kept, so the executor is built for this process alone."""
  (tmp_path / "file").write_text("")
  # Not even root can make a folder in /proc, or below a file.
  home = "/proc/nonexistent" if cache == "nowhere" else str(tmp_path / cache)
  temporary = tmp_path / "tmp"
  temporary.mkdir()
  done = _check(tmp_path, HOME=home, XDG_CACHE_HOME="", TMPDIR=str(temporary))
  assert done.returncode == 0, done.stderr
  assert "passed" in done.stdout
  assert machine.files(temporary) == []


def _imports(tree):
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      yield from (a.name for a in node.names)
    elif isinstance(node, ast.ImportFrom):
      yield from (f"{node.module}.{a.name}" for a in node.names)


def test_rows_18_and_19_no_binding_compiles_a_candidate():
  """A binding may hold Python's lock, and has state that threads share: each
  candidate has a process of C++ in the sandbox instead. (The launcher compiles
  its own kernels; the toolkit asks for the version.)"""
  root = pathlib.Path(kernels_eval.__file__).parent
  users = set()
  for path in root.rglob("*.py"):
    for name in _imports(ast.parse(path.read_text())):
      assert not name.startswith(("cuda.core", "cupy", "pycuda")), path
      if re.match(r"cuda\.bindings\.(nvrtc|nvjitlink|nvvm)", name):
        users.add(str(path.relative_to(root)))
  assert users == {"cuda/launcher.py", "cuda/toolkit.py"}


def test_row_26_a_judge_without_memory_blames_nobody(check, monkeypatch):
  def compare(*_, **__):
    raise MemoryError

  with monkeypatch.context() as patch:
    patch.setattr(correctness, "compare", compare)
    answer = check("vector_add", GOOD)
  assert answer.status == Status.INFRASTRUCTURE_ERROR
  assert "memory" in answer.message
  assert check("vector_add", GOOD).status == Status.PASSED


def test_row_37_the_end_of_a_pool_waits_for_nobody():
  """Results as large as they get, and a job that would take a minute."""
  settings = Settings(run_cpu_s=60, run_wall_s=60, access_limit=10**12)
  pool = client.Pool(num_workers=2, settings=settings)
  root = pool._root
  errors = "".join(f"#warning {'x' * 200} {i}\n" for i in range(1000))
  requests = [Request("", "vector_add", _BAD["endless"])]
  requests += [Request("", "vector_add", f"{errors}// {i}") for i in range(2)]
  stream = pool.stream(
    [*requests, Request("", "vector_add", GOOD + "// last\n")]
  )
  next(stream)  # the others still run
  started = time.monotonic()
  pool.close()
  assert time.monotonic() - started < 5
  assert machine.processes(root) == set()
  assert not root.exists()


def test_row_39_nothing_is_pickled():
  forbidden = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
  root = pathlib.Path(kernels_eval.__file__).parent
  # The two places that run a candidate's module; both lie in the sandbox.
  running = {root / "numba" / "front_end.py", root / "functions" / "child.py"}
  assert all(path.is_file() for path in running)
  seen = set()
  for path in root.rglob("*.py"):
    tree = ast.parse(path.read_text())
    seen |= {name.split(".")[0] for name in _imports(tree)}
    if path not in running:
      calls = {n.func for n in ast.walk(tree) if isinstance(n, ast.Call)}
      assert not {getattr(f, "id", "") for f in calls} & {"eval", "exec"}, path
  assert "msgspec" in seen  # the walk works
  assert not seen & {*forbidden, "multiprocessing"}


def test_row_48_errors_travel_as_text(pool):
  """An exception that takes arguments to make: no pipe ever carries one."""
  with pytest.raises(TypeError):
    CandidateError()
  requests = [
    Request("", "vector_add", "no kernel"),
    Request("", "vector_add", "// launch: k grid=(\n" + GOOD),
    Request("", "no such problem", GOOD),
    Request("", "vector_add", GOOD + "// after errors\n"),
  ]
  assert [a.status for a in pool.evaluate(requests)] == [
    Status.NO_KERNEL,
    Status.CONTRACT_VIOLATION,
    Status.INFRASTRUCTURE_ERROR,
    Status.PASSED,
  ]


# ---- what a kernel prints, and how it ends


def test_row_42_a_megabyte_of_prints(pool):
  text = (
    _HEAD + '  if (blockIdx.x == 0) printf("%1024d\\n", threadIdx.x);\n'
    f"  if (n > 4000 && threadIdx.x == 0) for (int j = 0; j < 1024; j++)\n"
    f'    printf("%1023d\\n", j);\n{_ADD}}}'
  )
  (answer,) = pool.evaluate([Request("", "vector_add", text)])
  assert answer.status == Status.PASSED
  assert 0 < len(answer.log) <= protocol._PRINTF_BYTES


def test_row_43_bytes_that_are_no_text(pool):
  text = (
    _HEAD + '  if (threadIdx.x == 0) printf("a\\xff\\xfe\\xc3(%c\\n", 0x80);\n'
    f"{_ADD}}}"
  )
  (answer,) = pool.evaluate([Request("", "vector_add", text)])
  assert answer.status == Status.PASSED
  assert answer.log.startswith("a\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("name", ["trap", "null_call", "stack", "wild_write"])
def test_rows_44_and_45_a_crash_is_reported_at_once(pool, name):
  pool.evaluate([Request("", "vector_add", GOOD)])
  text = f"// at once\n{_BAD[name]}"
  (answer,) = pool.evaluate([Request("", "vector_add", text)])
  assert answer.status == Status.RUNTIME_ERROR
  assert answer.run_ms < 1000


# ---- texts that are none


def _garbage(seed, size):
  return random.Random(seed).randbytes(size).decode("latin-1")


_TEXTS = {
  "crlf": (Status.PASSED, GOOD.replace("\n", "\r\n")),
  "old_mac": (Status.PASSED, GOOD.replace("\n", "\r")),
  "tabs": (Status.PASSED, GOOD.replace("  ", "\t")),
  "byte_order_mark": (Status.PASSED, "\ufeff" + GOOD),
  "form_feed": (Status.PASSED, GOOD.replace("\n", "\f\n\v")),
  "other_letters": (Status.PASSED, GOOD + "// Größe, 大きさ, \U0001f600\n"),
  "empty": (Status.NO_KERNEL, ""),
  "garbage": (Status.NO_KERNEL, _garbage(0, 5000).replace(
    "\0", "")),
  "nul": (Status.CONTRACT_VIOLATION, _garbage(0, 5000)),
  "garbage_behind": (
    Status.COMPILE_ERROR,
    GOOD + _garbage(1, 5000).replace("\0", ""),
  ),
  "no_unicode": (Status.PASSED, GOOD + "// \udcff\udc80\n"),
  "ten_megabytes": (Status.CONTRACT_VIOLATION, GOOD + "//" + "x" * 10**7),
}  # fmt: skip


@pytest.mark.parametrize("name", _TEXTS)
def test_texts(pool, name):
  status, text = _TEXTS[name]
  (answer,) = pool.evaluate([Request(name, "vector_add", text)])
  assert answer.status == status, answer.message
  assert answer.id == name
  assert len(answer.message) < 1000 and "\n" not in answer.message


def test_a_judge_in_this_process_sees_the_same(judge):
  for status, text in _TEXTS.values():
    answer = judge.evaluate(Request("", "vector_add", text))
    assert answer.status == status, answer.message
  assert isinstance(judge, judge_lib.Judge)
