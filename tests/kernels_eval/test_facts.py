"""Facts for repair: what a record says besides its one line."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels_eval import correctness, diagnostics, expressions, problems, report
from kernels_eval.cpu import compile_log
from kernels_eval.schema import (
  ERROR_EDGES,
  Diagnostic,
  Evaluation,
  LaunchLimit,
  Status,
)

GOOD = problems.get("vector_add").canonical
_PLAN = "// launch: vector_add grid=(ceil_div(n, 256)) block=(256)\n"

# ---- errors by decade


def _histogram(got, expected):
  got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
  with np.errstate(invalid="ignore", over="ignore"):
    return correctness.error_histogram(
      np.abs(got - expected), expected, np.isfinite(got)
    )


def test_elements_are_counted_by_relative_error():
  # Expected 1: errors 0, 1e-7, 5e-6, 5e-5, 5e-4, 5e-3, 5e-2, 0.5, 4, nan.
  errors = [0, 1e-7, 5e-6, 5e-5, 5e-4, 5e-3, 5e-2, 0.5, 4, np.nan]
  assert _histogram(1 + np.array(errors), np.ones(10)) == (1,) * 10


def test_an_edge_belongs_to_the_bin_below():
  # Expected 2^20, so that errors of 1, 0.1 ... of it are exact enough.
  expected = np.full(2, 2.0**20)
  assert _histogram(expected * [2, 2.001], expected)[-3:] == (1, 1, 0)


def test_an_error_where_zero_is_expected_is_measured_by_the_rms():
  # RMS of (0, 3, 4, 0) is 2.5: an error of 0.02 is 8e-3 of it.
  assert _histogram([0.02, 3, 4, 0], [0, 3, 4, 0])[:6] == (3, 0, 0, 0, 0, 1)
  # Where everything is zero there is nothing to measure by.
  assert _histogram([0.02, 0], [0, 0])[:7] == (1, 0, 0, 0, 0, 0, 1)


def test_values_near_the_end_of_float64_are_counted():
  assert _histogram([1e308, np.inf], [-1e308, 1e-308])[-2:] == (1, 1)


def test_a_wrong_answer_has_a_histogram(check):
  answer = check("vector_add", GOOD.replace("+ y[i]", "+ 2.0f * y[i]"))
  counts = answer.mismatch.error_histogram
  assert answer.status == Status.WRONG_ANSWER
  assert len(counts) == len(ERROR_EDGES) + 2
  assert sum(counts) == answer.mismatch.num_elements
  shown = report.render(answer, GOOD, colour=False)
  assert "elements by relative error" in shown
  assert sum(line.count("#") > 0 for line in shown.splitlines()) == sum(
    n > 0 for n in counts
  )


def test_bits_that_arithmetic_complains_about(check):
  """A signalling NaN, and a number whose square is infinite."""
  for bits in ("0x7fa00000", "0x7f000000"):
    write = f"*(unsigned*)(out + i) = {bits}u"
    text = GOOD.replace("out[i] = x[i] + y[i]", write)
    answer = check("vector_add", text)
    assert answer.status == Status.WRONG_ANSWER
    bin_of = -1 if bits == "0x7fa00000" else -2
    assert answer.mismatch.error_histogram[bin_of] == 1


def test_outputs_that_nobody_wrote_are_not_finite(check):
  text = GOOD.replace("out[i] = x[i] + y[i]", "(void)x")
  mismatch = check("vector_add", text).mismatch
  assert mismatch.error_histogram[-1] == mismatch.num_elements


# ---- what a compiler says again and again


def test_equal_diagnostics_become_one():
  said = [
    Diagnostic("error", "no v", 3, 5),
    Diagnostic("error", "no w", 4, 1),
    Diagnostic("error", "no v", 7, 5),
    Diagnostic("error", "no v", 3, 9),
    Diagnostic("note", "no v", 8, 1),
    Diagnostic("error", "no v", None, None),
  ]
  assert diagnostics.merge(said) == (
    Diagnostic("error", "no v", 3, 5, (7,)),
    Diagnostic("error", "no w", 4, 1),
    Diagnostic("note", "no v", 8, 1),
    Diagnostic("error", "no v", None, None),
  )
  assert diagnostics.merge(diagnostics.merge(said)) == diagnostics.merge(said)


def test_lines_of_an_endless_log_are_bounded():
  said = (Diagnostic("error", "no v", n, 1) for n in range(10_000))
  (only,) = diagnostics.merge(said)
  assert only.line == 0 and only.also_lines == tuple(range(1, 17))


def test_one_name_that_is_missing_everywhere(check):
  text = GOOD.replace(
    "out[i] = x[i] + y[i];",
    "{\n out[i] = v;\n out[i] += v;\n out[i] += v;\n}",
  )
  answer = check("vector_add", text)
  errors = [d for d in answer.diagnostics if d.severity == "error"]
  first = text[: text.index("= v")].count("\n") + 1
  assert answer.status == Status.COMPILE_ERROR
  assert answer.message.startswith(f"line {first}: ")
  # GCC itself says it once for each function; templates and macros repeat.
  assert len({(d.message, d.line) for d in errors}) == len(errors)
  log = "".join(
    f"candidate.cu:{n}:1: error: bad operand\n" for n in (2, 5, 5, 9)
  ).replace("candidate.cu", compile_log.translate.SOURCE_NAME)
  (merged,) = compile_log.read(log).diagnostics
  assert (merged.line, merged.also_lines) == (2, (5, 9))
  answer = msgspec.structs.replace(answer, diagnostics=(merged,))
  shown = report.render(answer, text, colour=False)
  assert "error: line 2: bad operand (also lines 5, 9)" in shown


# ---- launches beyond the limits


@pytest.mark.parametrize(
  ("plan", "limit", "arithmetic"),
  [
    (
      "grid=(1) block=(32, ceil_div(n, 1) + 63)",
      LaunchLimit(
        "vector_add", "the block", "32, ceil_div(n, 1) + 63, 1", {"n": 1},
        (32, 64, 1), 2048, 0, 1024, "threads", 1,
      ),
      "the block (32, ceil_div(n, 1) + 63, 1) with n=1: 32 * 64 * 1 = 2048 "
      "threads, at most 1024",
    ),
    (
      "grid=(n // 256) block=(256)",
      LaunchLimit(
        "vector_add", "grid.x", "n // 256", {"n": 1}, (0,), 0, 1, 2**31 - 1,
        "blocks", 1,
      ),
      "grid.x (n // 256) with n=1: 0 blocks, at least 1 and at most "
      "2147483647",
    ),
    (
      "grid=(1) block=(1) smem=4*32*1024",
      LaunchLimit(
        "vector_add", "dynamic shared memory", "4 * 32 * 1024", {}, (131072,),
        131072, 0, 101376, "bytes", 1,
      ),
      "dynamic shared memory (4 * 32 * 1024): 131072 bytes, at most 101376",
    ),
  ],
)  # fmt: skip
def test_arithmetic_of_a_launch(check, plan, limit, arithmetic):
  text = f"// launch: vector_add {plan}\n{GOOD}"
  answer = check("vector_add", text)
  assert answer.status == Status.LAUNCH_ERROR
  assert answer.launch_limit == limit
  assert arithmetic in report.render(answer, text, colour=False)


def test_other_outcomes_have_none_of_it(check):
  answer = check("vector_add", _PLAN + GOOD)
  assert answer.passed
  assert answer.launch_limit is answer.mismatch is None
  assert answer.diagnostics == ()


_NODES = st.recursive(
  st.integers(0, 99).map(lambda n: expressions.Node("number", (n,)))
  | st.sampled_from("mn").map(lambda x: expressions.Node("name", (x,))),
  lambda inner: st.builds(
    lambda op, a, b: expressions.Node(op, (a, b)),
    st.sampled_from(["+", "-", "*", "//", "%", "min", "ceil_div"]),
    inner,
    inner,
  ),
  max_leaves=8,
)


@given(_NODES)
def test_an_expressions_text_means_the_same(node):
  assert expressions.parse(expressions.text_of(node)) == node


def test_records_travel_whole():
  limit = LaunchLimit("k", "block.x", "n", {"n": 5}, (5,), 5, 1, 4, "t", None)
  record = Evaluation(
    "", "p", Status.LAUNCH_ERROR, "run", "m", "cpu-fiber", launch_limit=limit
  )
  raw = msgspec.msgpack.encode(record)
  assert msgspec.msgpack.decode(raw, type=Evaluation).launch_limit == limit
