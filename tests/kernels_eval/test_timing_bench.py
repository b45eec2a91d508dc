"""The independent program beside the timed copy, where it cannot be built."""

import ctypes.util

import pytest

pytest.importorskip("cuda.bindings.driver", reason="no bindings of CUDA")

from kernels_eval import __main__ as kernels_eval_main  # noqa: E402
from kernels_eval.arguments import BAD_REQUEST  # noqa: E402
from kernels_eval.cuda import timing_bench  # noqa: E402

_BUILDS = (
  'while [ "$1" != -o ]; do shift; done; '
  "printf '#!/bin/sh\\n%s\\n' '{program}' > \"$2\"; chmod +x \"$2\""
)


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
  """Puts a script in nvcc's place."""
  monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
  monkeypatch.setattr(timing_bench, "_CEILING_S", 1.0)

  def put(script):
    path = tmp_path / "nvcc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)

  return put


def test_what_the_program_prints_is_the_bandwidth(nvcc):
  nvcc(_BUILDS.format(program="echo 4.25e12"))
  assert timing_bench.copy_ceiling() == 4.25e12


@pytest.mark.parametrize(
  "script, words",
  [
    (
      "echo; echo 'nvcc fatal: no host compiler' >&2; echo more >&2; exit 1",
      "nvcc failed: nvcc fatal: no host compiler",
    ),
    ("exit 3", "nvcc failed: exit status 3"),
    ("exec sleep 20", "nvcc did not end within 1 s"),
    ("true", "the independent program cannot be run: No such file"),
    (_BUILDS.format(program="exit 4"), "program failed: exit status 4"),
    (_BUILDS.format(program="echo no device"), "says 'no device"),
  ],
  ids=str,
)
def test_a_failure_is_one_line(nvcc, script, words):
  nvcc(script)
  with pytest.raises(timing_bench.CeilingError, match=words) as caught:
    timing_bench.copy_ceiling()
  assert "\n" not in str(caught.value)


@pytest.mark.skipif(
  ctypes.util.find_library("cuda") is not None,
  reason="this machine has the driver's library",
)
def test_a_copy_that_cannot_be_timed_is_one_line(monkeypatch, capsys):
  monkeypatch.setattr(
    timing_bench, "run", lambda count, on_result: timing_bench.copy_bandwidth()
  )
  assert kernels_eval_main.main(["timing"]) == BAD_REQUEST
  *_, said = capsys.readouterr().err.strip().splitlines()
  assert said.startswith(
    "kernels_eval: infrastructure_error: the copy: GPU 0 is not usable: the "
    "NVIDIA driver's library is missing or too old"
  )


def test_what_was_measured_is_told_without_it(monkeypatch, tmp_path):
  monkeypatch.setenv("PATH", str(tmp_path))
  with pytest.raises(timing_bench.CeilingError, match="no nvcc here") as caught:
    timing_bench.copy_ceiling()
  result = timing_bench.Result("a GPU", (), 4e12, None, "", str(caught.value))
  assert timing_bench.describe(result).endswith(
    "copy: 4.000 TB/s; no nvcc here to build the independent program with"
  )
