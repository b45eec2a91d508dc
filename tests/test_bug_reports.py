"""Public bug reports that this project must not repeat, and who tests each.

Other projects' users hit these; a test that runs a report's repro is marked
`@pytest.mark.covers("P07")`. `pytest -m covers` runs them all.
"""

import ast
import pathlib

import pytest

TESTS = pathlib.Path(__file__).parent

# id: (what went wrong elsewhere, one of the threads)
REPORTS = {
  "P01": ("equal rewards in a group", "jax-ml/jax#11716"),
  "P02": ("length bias from how the loss is averaged", "verl#593"),
  "P03": ("sampler and trainer disagree on log-probabilities", "trl#4159"),
  "P04": ("KL estimator blows up", "OpenRLHF#525"),
  "P05": ("updates vanish in bfloat16", "keras-hub#2629"),
  "P06": ("template drops earlier reasoning", "verl#6854"),
  "P07": ("re-tokenising sampled text", "prime-rl#1334"),
  "P08": ("environment text counted as the model's own", "verl PR#6392"),
  "P09": ("end token treated as padding", "trl PR#6357"),
  "P10": ("conversation outgrows the context", "verifiers#398"),
  "P11": ("filtering leaves a short or empty batch", "AReaL#450"),
  "P12": ("batch not a multiple of the devices", "verl#473"),
  "P13": ("resume replays the data from the top", "prime-rl PR#3164"),
  "P14": ("restore on another device count", "orbax#648"),
  "P15": ("failed save goes unnoticed", "orbax#605"),
  "P16": ("misspelt override accepted", "OpenMHC#14"),
  "P17": ("one bad kernel poisons the next", "BackendBench#45"),
  "P18": ("kernel that never ends", "emmy PR#215"),
  "P19": ("dead children pile up", "rllm#915"),
  "P20": ("tolerance lets a useless kernel pass", "KernelBench#165"),
  "P21": ("kernel that cheats the checker", "KernelBench PR#82"),
  "P22": ("no GPU, no driver, no compiler", "numba-cuda#233"),
  "P23": ("head size is not width / heads", "entrenar#262"),
  "P24": ("tied embeddings, no head in the file", "google-deepmind/gemma#8"),
  "P25": ("bfloat16 and 8-bit floats misread", "safetensors#598"),
  "P26": ("rotary scaling hard-coded", "llama-models#241"),
  "P27": ("row order of queries and keys in GGUF", "tensai PR#37"),
  "P28": ("recompiling each step", "jax-ml/jax#837"),
}


def _covered():
  """id -> the tests that are marked with it."""
  found = {}
  for path in sorted(TESTS.rglob("test_*.py")):
    for node in ast.walk(ast.parse(path.read_text())):
      if not isinstance(node, ast.FunctionDef):
        continue
      for mark in node.decorator_list:
        if (
          isinstance(mark, ast.Call)
          and ast.unparse(mark.func) == "pytest.mark.covers"
        ):
          assert node.name.startswith("test_"), f"{path}: {node.name}"
          for argument in mark.args:
            name = f"{path.relative_to(TESTS)}::{node.name}"
            found.setdefault(ast.literal_eval(argument), []).append(name)
  return found


COVERED = _covered()


@pytest.mark.parametrize("report", REPORTS)
def test_every_report_has_a_test(report):
  what, thread = REPORTS[report]
  assert COVERED.get(report), f"no test covers {report}: {what} ({thread})"


def test_marks_name_reports_that_are_listed():
  assert sorted(set(COVERED) - set(REPORTS)) == []
