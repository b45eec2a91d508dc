"""What a verdict's address depends on, and what it does not."""

import dataclasses
import os
import pathlib
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from kernels_eval import addresses, problems
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.judge import Hello
from kernels_eval.problems import flops, spec, timing_inputs, timing_sizes
from kernels_eval.schema import Request
from kernels_eval.settings import Settings

DEFAULT, DEFAULT_CUDA = Settings(), CudaSettings()
GPU = Hello("cuda", "NVRTC 13.0, a GPU, driver 13.0", "bubblewrap")
HELLO = Hello("cpu-fiber", "g++ 12.2.0", "bubblewrap")
REQUEST = Request("7", "vector_add", "__global__ void k() {}")
PROBLEM = problems.get("axpy")


def _address(
  request=REQUEST,
  *,
  hello=HELLO,
  settings=DEFAULT,
  cuda_settings=DEFAULT_CUDA,
  seed=0,
):
  make = addresses.make_address(hello, settings, cuda_settings, seed)
  return make(request)


def test_the_same_question_has_the_same_address():
  again = msgspec.structs.replace(REQUEST, id="another")
  assert _address() == _address(again) and len(_address()) == 32


@pytest.mark.parametrize(
  "change",
  [
    {"request": msgspec.structs.replace(REQUEST, text="__global__ void j(){}")},
    {"request": msgspec.structs.replace(REQUEST, problem="axpy")},
    {"request": msgspec.structs.replace(REQUEST, text=REQUEST.text + "\ud800")},
    {"hello": msgspec.structs.replace(HELLO, executor="cuda")},
    {"hello": msgspec.structs.replace(HELLO, toolchain="g++ 13.1.0")},
    {"hello": msgspec.structs.replace(HELLO, protections="none")},
    {"hello": msgspec.structs.replace(HELLO, is_timing=True)},
    {"settings": Settings(run_cpu_s=1.0)},
    {"settings": Settings(access_limit=1)},
    {"seed": 1},
  ],
  ids=str,
)
def test_everything_that_decides_counts(change):
  assert _address(**change) != _address()


# Each field of the settings of a GPU is here or in the next test.
_DECIDING = {
  "with_timing": True,
  "with_jax": True,
  "with_cpu_first": True,
  "with_sanitizer": True,
  "load_wall_s": 4.0,
  "compile_memory_bytes": 2**33 + 1,
  "max_image_bytes": 2**20,
}
_LIMIT_OF = {
  "timing_wall_s": "with_timing",
  "jax_wall_s": "with_jax",
  "sanitizer_wall_s": "with_sanitizer",
}


@pytest.mark.parametrize("name", _DECIDING)
def test_what_is_done_on_a_gpu_counts_there(name):
  changed = CudaSettings(**{name: _DECIDING[name]})
  assert changed != DEFAULT_CUDA
  assert _address(hello=GPU, cuda_settings=changed) != _address(hello=GPU)
  assert _address(cuda_settings=changed) == _address()  # nothing, on a CPU


@pytest.mark.parametrize("limit", _LIMIT_OF)
def test_a_limit_counts_where_it_limits_something(limit):
  switched = CudaSettings(**{_LIMIT_OF[limit]: True})
  for settings, counts in ((DEFAULT_CUDA, False), (switched, True)):
    changed = dataclasses.replace(settings, **{limit: 1.0})
    one, other = (
      _address(hello=GPU, cuda_settings=s) for s in (settings, changed)
    )
    assert (one != other) == counts


def test_any_gpu_of_a_kind_gives_the_same_verdict():
  second = CudaSettings(devices=(1,))
  assert _address(hello=GPU, cuda_settings=second) == _address(hello=GPU)
  fields = {field.name for field in dataclasses.fields(CudaSettings)}
  assert fields == {*_DECIDING, *_LIMIT_OF, "devices"}


def test_version_code_and_packages_count(monkeypatch):
  before = _address()
  for module, name, value in (
    (addresses, "HARNESS_VERSION", "0"),
    (addresses, "_code_digest", lambda: "other"),
    (addresses, "_versions", lambda: [("numpy", "0.0.1")]),
  ):
    with monkeypatch.context() as patch:
      patch.setattr(module, name, value)
      assert _address() != before, name
  assert _address() == before


def _reference(x, y, alpha):
  return alpha * x + y


def _other_reference(x, y, alpha):
  return alpha * x - y


def _closed_over(factor):
  return lambda x, y, alpha: factor * alpha * x + y


def test_every_part_of_a_problem_counts():
  variants = [
    PROBLEM,
    dataclasses.replace(PROBLEM, statement="Something else."),
    dataclasses.replace(PROBLEM, tolerance_factor=2.0),
    dataclasses.replace(PROBLEM, shapes=({"n": 5},)),
    dataclasses.replace(PROBLEM, distributions=("normal",)),
    dataclasses.replace(PROBLEM, launch="grid=(n) block=(1)"),
    dataclasses.replace(PROBLEM, scalars=(spec.Scalar("alpha", (2.0,)),)),
    dataclasses.replace(
      PROBLEM, inputs=(*PROBLEM.inputs[:1], spec.Tensor("y", ("n",), "float16"))
    ),
    dataclasses.replace(PROBLEM, least_flops=lambda n: 2 * n),
    dataclasses.replace(PROBLEM, reference=_reference),
    dataclasses.replace(PROBLEM, reference=_other_reference),
    dataclasses.replace(PROBLEM, reference=_closed_over(1)),
    dataclasses.replace(PROBLEM, reference=_closed_over(2)),
  ]
  digests = [addresses.problem_digest(p) for p in variants]
  assert len(set(digests)) == len(variants)
  same = dataclasses.replace(PROBLEM, reference=_closed_over(2))
  assert addresses.problem_digest(same) == digests[-1]


@pytest.mark.parametrize("module", [flops, timing_inputs, timing_sizes])
def test_how_a_problem_is_timed_counts(monkeypatch, module):
  before = addresses.problem_digest(PROBLEM)
  of_file = addresses._file_digest
  monkeypatch.setattr(
    addresses,
    "_file_digest",
    lambda path: "other" if path == module.__file__ else of_file(path),
  )
  assert addresses.problem_digest(PROBLEM) != before


def test_all_of_a_table_counts():
  tables = [np.zeros(5000), np.zeros(5000), np.zeros(5000, np.float32)]
  tables[1][2500] = 1.0
  digests = {
    addresses.problem_digest(
      dataclasses.replace(PROBLEM, reference=_closed_over(table))
    )
    for table in tables
  }
  assert len(digests) == 3


def test_a_reference_that_calls_itself():
  def total(x):
    return x if np.ndim(x) == 0 else total(x[0])

  problem = dataclasses.replace(PROBLEM, reference=total)
  assert addresses.problem_digest(problem) == addresses.problem_digest(problem)


def test_what_a_reference_calls_in_its_file_counts(tmp_path):
  digests = []
  for i, body in enumerate(("x + 1", "x + 2", "x + 1")):
    path = tmp_path / f"topic_{i}.py"
    path.write_text(
      f"def helper(x):\n  return {body}\n\ndef f(x):\n  return helper(x)\n"
    )
    names = {"__name__": "topic"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    digests.append(
      addresses.problem_digest(
        dataclasses.replace(PROBLEM, reference=names["f"])
      )
    )
  assert digests[0] == digests[2] != digests[1]


def test_a_changed_problem_is_asked_anew(monkeypatch):
  address = addresses.make_address(HELLO, DEFAULT, DEFAULT_CUDA, 0)
  request = Request("", "axpy", "x")
  before = address(request)
  changed = dataclasses.replace(PROBLEM, tolerance_factor=3.0)
  monkeypatch.setitem(problems.FAMILIES, "axpy", changed)
  assert address(request) != before


def test_an_unknown_problem_has_an_address_too():
  assert len(_address(Request("", "no_such_problem", "x"))) == 32


_PRINT = """
from tests.kernels_eval.test_addresses import _address
from kernels_eval import addresses, problems
print(_address().hex())
for name in [*problems.FAMILIES, "chain-relu-half", "chain-mul_y-sum"]:
  print(addresses.problem_digest(problems.get(name)))
"""


def test_processes_agree():
  said = [
    subprocess.run(
      [sys.executable, "-c", _PRINT],
      capture_output=True,
      text=True,
      check=True,
      cwd=pathlib.Path(__file__).parents[2],
      env={**os.environ, "PYTHONHASHSEED": seed},
    ).stdout.split()
    for seed in ("1", "2")
  ]
  assert said[0] == said[1]
  assert said[0][0] == _address().hex()
  assert len(set(said[0])) == len(problems.FAMILIES) + 3
