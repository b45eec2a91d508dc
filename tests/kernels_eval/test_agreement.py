"""Comparing the executors: reasons for differences. (The comparison itself
needs a GPU: `python -m kernels_eval agreement`.)"""

import msgspec

from kernels_eval import agreement, corpus
from kernels_eval.schema import Evaluation, Finding, Phase, Request, Status

CASE = agreement.Case("mutated", Request("a", "relu", "text"))
SPECIMEN = corpus.parse(
  "x.cu",
  "// row: -\n// problem: relu\n// on: both\n// expect cpu: runtime_error\n"
  "// expect cuda: wrong_answer\n// why: Because.\n",
)


def evaluation(status, kind=None):
  finding = None if kind is None else Finding(kind, "m", line=1)
  return Evaluation(
    id="a",
    problem="relu",
    status=status,
    phase=Phase.RUN,
    message="",
    executor="x",
    finding=finding,
  )


def differences(case, cpu, cuda):
  return agreement.compare([case], {"cpu": [cpu], "cuda": [cuda]})


def test_the_same_status_is_no_difference():
  for status in Status:
    if status != Status.INFRASTRUCTURE_ERROR:
      same = evaluation(status)
      assert differences(CASE, same, same) == ()


def test_a_fault_of_the_machine_is_never_agreement():
  lost = evaluation(Status.INFRASTRUCTURE_ERROR)
  (found,) = differences(CASE, lost, lost)
  assert not found.reason


def test_what_only_the_cpu_checks_is_a_reason():
  cpu = evaluation(Status.RUNTIME_ERROR, "data_race")
  (found,) = differences(CASE, cpu, evaluation(Status.PASSED))
  assert found.reason.startswith("data_race")
  (found,) = differences(CASE, cpu, evaluation(Status.COMPILE_ERROR))
  assert not found.reason
  other = evaluation(Status.RUNTIME_ERROR, "stack_overflow")
  (found,) = differences(CASE, other, evaluation(Status.PASSED))
  assert not found.reason


def test_a_header_is_a_reason_for_what_it_allows_only():
  case = agreement.Case("corpus", Request("x.cu", "relu", "text"), SPECIMEN)
  cpu = evaluation(Status.RUNTIME_ERROR)
  (found,) = differences(case, cpu, evaluation(Status.WRONG_ANSWER))
  assert found.reason == "as its header says: Because."
  (found,) = differences(case, cpu, evaluation(Status.PASSED))
  assert not found.reason
  # Nothing is timed here.
  timed = corpus.parse(
    "x.cu", SPECIMEN.text.replace("// why", "// untimed: passed\n// why")
  )
  case = agreement.Case("corpus", Request("x.cu", "relu", "text"), timed)
  (found,) = differences(case, cpu, evaluation(Status.PASSED))
  assert found.reason == "as its header says: Because."


def test_candidates_are_unique_and_a_report_counts_them():
  mutated = agreement.mutated_cases(40, seed=1)
  assert len({case.request.text for case in mutated}) == 40
  assert mutated == agreement.mutated_cases(40, seed=1)
  report = agreement.Report(
    ("a", "b"),
    {"mutated": 2},
    (agreement.Difference("mutated", "n", "passed", "timeout", ""),),
  )
  assert "1 with the same status" in agreement.render(report)
  assert report.unexplained == report.differences
  assert msgspec.json.decode(agreement.encode(report))["toolchains"] == [
    "a",
    "b",
  ]
