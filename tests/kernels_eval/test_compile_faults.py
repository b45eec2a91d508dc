"""Faults of compilers and of what they are given. `test_faults.py` holds the
table of all rows."""

import os
import signal
import tempfile
import threading
import time

import hypothesis
import pytest
from hypothesis import strategies as st

from kernels_eval import candidate, client, problems
from kernels_eval.cpu import compile_log, host, translate
from kernels_eval.launch_plan import CandidateError
from kernels_eval.schema import Request, Status
from kernels_eval.settings import Settings
from tests.kernels_eval import machine

GOOD = problems.get("vector_add").canonical
# A second or so of the compiler's time, well within its limit.
SLOW = (
  "constexpr int f(int s) { for (int i = 0; i < 250000; i++) s ^= i;"
  " return s; }\n"
  + "".join(f'static_assert(f({i}) >= 0, "");\n' for i in range(2))
  + GOOD
)
MEMORY_BOMB = (
  "#define A(...) "
  + ",".join(["__VA_ARGS__"] * 10)
  + "\n__device__ int big[] = {A(A(A(A(A(A(A(1)))))))};\n"
  + GOOD
)


def _request(text):
  return Request("", "vector_add", text)


def _evaluate(pool, *texts):
  return pool.evaluate([_request(t) for t in texts])


@pytest.fixture(scope="module")
def pool():
  with client.Pool(num_workers=2) as p:
    yield p


def test_row_8_a_killed_compiler_leaves_no_lock():
  """Killed from outside in the middle: the machine's fault, so that the text
  is compiled anew, and nothing waits for what the dead one held."""
  with client.Pool(num_workers=1) as pool:
    answers = []
    thread = threading.Thread(
      target=lambda: answers.extend(_evaluate(pool, SLOW))
    )
    thread.start()
    compilers = lambda: machine.named(pool._root, "cc1plus")
    assert machine.wait_for(compilers, 10)
    for pid in compilers():
      os.kill(pid, signal.SIGKILL)
    thread.join(60)
    assert [a.status for a in answers] == [Status.PASSED]
    (again,) = _evaluate(pool, SLOW + "// again\n")
    assert again.status == Status.PASSED
    assert not machine.named(pool._root, "cc1plus")


def test_row_9_one_source_twice_at_once(pool):
  """In one batch it is compiled once; two pools do not hurt each other."""
  text = GOOD + "// twice at once\n"
  before = pool.num_evaluated
  answers = _evaluate(pool, text, text, text)
  assert [a.status for a in answers] == [Status.PASSED] * 3
  assert pool.num_evaluated == before + 1
  with client.Pool(num_workers=2) as other:
    results, text = [], GOOD + "// in two pools\n"
    threads = [
      threading.Thread(target=lambda p=p: results.extend(_evaluate(p, text)))
      for p in (pool, other)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join(30)
  assert [a.status for a in results] == [Status.PASSED] * 2


def test_row_10_a_compiler_starts_no_processes(lab):
  """Where one process is allowed, a second is refused; compilers need none."""
  limits = host.Limits(10, 5, 2**31, 2**20, num_processes=1)
  script = "true & wait; echo forked"
  answer = lab.executor._host.command(
    ["/bin/sh", "-c", script], str(lab.executor._root), limits
  )
  assert "forked" not in answer.log, answer
  assert not answer.ok


def test_row_11_many_heavy_compiles_within_their_memory():
  settings = Settings(compile_memory_bytes=256 * 2**20)
  with client.Pool(num_workers=2, settings=settings) as pool:
    texts = []
    for i in range(6):
      texts += [f"// {i}\n{MEMORY_BOMB}", f"// {i}\n{GOOD}"]
    answers = _evaluate(pool, *texts)
    assert {a.status for a in answers[::2]} == {Status.COMPILE_ERROR}
    assert all("out of memory" in a.message for a in answers[::2])
    assert {a.status for a in answers[1::2]} == {Status.PASSED}
    assert pool.num_restarts == 0


def _our_folders():
  names = os.listdir(tempfile.gettempdir())
  return sorted(n for n in names if str(os.getpid()) in n)


def test_row_12_many_compiles_leave_no_files():
  """Sixty of every kind; `soak` does thousands."""
  settings = Settings(
    compile_cpu_s=0.3, compile_memory_bytes=256 * 2**20, run_cpu_s=0.3
  )
  kinds = (GOOD, GOOD + "syntax error", SLOW, MEMORY_BOMB, "no kernel")
  with client.Pool(num_workers=2, settings=settings) as pool:
    _evaluate(pool, GOOD)
    before = machine.files(pool._root), _our_folders()
    answers = _evaluate(
      pool, *(f"// {i}\n{kinds[i % len(kinds)]}" for i in range(60))
    )
    assert {a.status for a in answers} == {
      *(Status.PASSED, Status.COMPILE_ERROR, Status.TIMEOUT, Status.NO_KERNEL)
    }
    assert machine.files(pool._root) == before[0]
    assert _our_folders() == before[1]


def test_row_14_one_function_of_thousands_of_lines(pool):
  lines = "".join(f"  v = v * {i % 7}.5f + u;\n" for i in range(9000))
  text = GOOD + (
    f"__device__ float long_one(float v, float u) {{\n{lines}  return v;\n}}\n"
  )
  (answer,) = _evaluate(pool, text)
  assert answer.status == Status.PASSED, answer.message
  (answer,) = _evaluate(pool, text + f"/*{lines}*/")
  assert answer.status == Status.CONTRACT_VIOLATION
  assert "at most" in answer.message


def test_row_15_optimisation_is_not_asked_for(pool):
  """A loop that an optimiser would unroll and search for minutes."""
  text = GOOD + (
    "__device__ int many(int n) { int s = n;\n#pragma unroll\n"
    "  for (int i = 0; i < 100000; i++) s = s * 31 + (s >> (i & 7));\n"
    "  return s; }\n"
  )
  (answer,) = _evaluate(pool, text)
  assert answer.status == Status.PASSED
  assert answer.compile_ms < 5000


def test_row_16_nested_unrolling(pool):
  text = GOOD + (
    "__device__ float f(float v) {\n#pragma unroll\n"
    "  for (int i = 0; i < 20000; i++) {\n#pragma unroll 16\n"
    "    for (int j = 0; j < 16; j++) v = v * 0.5f + sqrtf(v + i * j);\n"
    "  }\n  return v;\n}\n"
  )
  (answer,) = _evaluate(pool, text)
  assert answer.status == Status.PASSED
  assert answer.compile_ms < 5000


def test_rows_22_and_23_a_text_is_judged_once(pool):
  """The key is text and problem, nothing that a compiler makes of them."""
  text = GOOD + "// once\n"
  (first,) = _evaluate(pool, text)
  before = pool.num_evaluated
  (second,) = pool.evaluate([Request("other id", "vector_add", text)])
  assert pool.num_evaluated == before
  assert second.id == "other id"
  assert second.status == first.status == Status.PASSED
  pool.evaluate([Request("", "half_add", text), _request(text + " ")])
  assert pool.num_evaluated == before + 2


def test_row_43_a_hundred_kilobytes_of_errors(pool):
  errors = "".join(f"#error {'x' * 100} {i}\n" for i in range(1000))
  (answer,) = _evaluate(pool, errors + GOOD)
  assert answer.status == Status.COMPILE_ERROR
  assert len(answer.message) <= 600
  assert len(answer.diagnostics) <= compile_log.MAX_DIAGNOSTICS
  warnings = errors.replace("#error", "#warning")
  (answer,) = _evaluate(pool, warnings + GOOD)
  assert answer.status == Status.PASSED, answer.message


def test_warnings_do_not_push_a_refusal_out_of_the_log(pool):
  """Host code is found by a warning of the compiler's; the log is cut."""
  text = (
    "".join(f"#warning {'x' * 100} {i}\n" for i in range(1000))
    + "float helper(float v) { return v; }\n"
    + GOOD.replace("x[i] + y[i]", "helper(x[i]) + y[i]")
  )
  (answer,) = _evaluate(pool, text)
  assert answer.status == Status.COMPILE_ERROR
  assert "`helper` is host code" in answer.message


@pytest.mark.parametrize("depth", [50, 400, 100_000])
def test_row_56_recursive_templates_say_little(pool, depth):
  text = (
    "template <int A, int B> struct G { static const int v = G<A - 1, B>::v\n"
    "  + G<A, B - 1>::v + G<A - 1, B - 1>::v; };\n"
    f"__device__ int n = G<{depth}, {depth}>::v;\n" + GOOD
  )
  (answer,) = _evaluate(pool, text)
  assert answer.status == Status.COMPILE_ERROR
  assert len(answer.message) <= 600
  assert len(answer.diagnostics) <= compile_log.MAX_DIAGNOSTICS
  messages = [(d.message, d.line) for d in answer.diagnostics]
  assert len(set(messages)) == len(messages)


# ---- what is read before any compiler starts: in the judge, without a limit

_FULL = candidate.MAX_SOURCE_BYTES - 4096
_TANGLE = "struct P { float a; };\n" + "".join(
  f"__device__ P f{i}(P p) {{ "
  + "".join(f"f{(i * 7 + j * j) % 2200}(p);" for j in range(6))
  + " return p; }\n"
  for i in range(2200)
)
_LONG_NAMES = [f"{'ab' * 30}{i:04d}{'ba' * 60}" for i in range(62)]
_READ = {
  "open_comments_in_an_include": '#include "x" ' + "/* " * (_FULL // 3),
  "closed_comments_in_an_include": '#include "x" ' + "/**/" * (_FULL // 4),
  "alignments": "__shared__ "
  + "alignas(" * (_FULL // 9 - 10)
  + "float"
  + ")" * (_FULL // 9 - 10)
  + " s;",
  "tangle_of_functions": _TANGLE,
  "names_like_one_another": "// launch: "
  + f"{'ba' * 30}0000{'ab' * 60}"
  + " grid=(1) block=(1)\n"
  + "".join(f"__global__ void {n}() {{}}\n" for n in _LONG_NAMES),
  "long_names": "".join(
    f"__global__ void k{'x' * 4000}{i}() {{}}\n" for i in range(40)
  ),
  "scratch_names": "// scratch: "
  + "s" * 1500
  + " float32 (1)\n// launch: k grid=(1) block=(1) args=(nothing)\n",
  "parentheses_in_a_head": "void f " + "(int)" * (_FULL // 5) + " {}",
  "attributes": "__attribute__((" * (_FULL // 15),
  "templates": "template <" * (_FULL // 10) + "int x;",
  "heads_without_bodies": "a " * 1990 + ("{ a a a a } " * (_FULL // 12 - 400)),
  "namespaces": "namespace a { " * (_FULL // 14),
  "macros": "".join(f"#define A{i} A{i + 1}\n" for i in range(_FULL // 20)),
  "pragmas": '_Pragma("' * (_FULL // 9),
  "pragma_operators_in_a_macro": "#define P " + '_Pragma("a' * (_FULL // 10),
  "quotes_and_backslashes": "\"\\'" * (_FULL // 3),
  "raw_strings": 'R"aaa(' * (_FULL // 6),
  "equals": "= " * (_FULL // 2) + ";",
  "commas": "int a" + ", a" * (_FULL // 3) + ";",
  "colons": "public: " * (_FULL // 8),
  "shared_macros": "#define S __shared__\n" + "S float a; " * (_FULL // 11),
  "kernels_without_names": "__global__ " * (_FULL // 11),
}


@pytest.mark.parametrize("name", _READ)
def test_texts_that_are_slow_to_read(name):
  problem = problems.get("vector_add")
  text = f"{GOOD}\n{_READ[name]}\n"
  assert len(text) <= candidate.MAX_SOURCE_BYTES
  started = time.process_time()
  try:
    translate.translate(candidate.parse(text, problem), problem)
  except CandidateError as error:
    assert len(error.message) <= 600
  assert time.process_time() - started < 6.0


_PIECES = st.sampled_from(
  """__global__ __shared__ __device__ void k ( ) { } [ ] < > ; , : :: = + - * /
  # #define #include #if #endif // /* */ \\ " ' R"( )" template typename struct
  extern "C" alignas __attribute__ __launch_bounds__ operator float int x 1 1.5f
  0x1p3 ... -> . ? launch: scratch: grid= block= args= <<< >>> namespace using
  typedef enum _Pragma __restrict__ const static ## ??/ %: \ud800 é""".split()
  + ["\n", " ", "\\\n", "// launch: ", "// scratch: "]
)


@hypothesis.given(
  st.lists(_PIECES, max_size=60), st.integers(0, 200), st.booleans()
)
@hypothesis.settings(max_examples=400, deadline=None)
def test_reading_a_text_raises_nothing_else(pieces, place, is_in_front):
  """Whatever a text holds, it is a candidate or a CandidateError."""
  problem = problems.get("row_sum")
  text = problem.canonical
  place = 0 if is_in_front else place
  text = text[:place] + " ".join(pieces) + text[place:]
  try:
    translate.translate(candidate.parse(text, problem), problem)
  except CandidateError as error:
    assert "\n" not in error.message
