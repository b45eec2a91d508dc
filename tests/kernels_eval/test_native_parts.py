"""Native parts that judges build: a machine without a compiler, a cache or
space."""

import os
import pathlib
import subprocess
import sys

import pytest

from kernels_eval import client, problems
from kernels_eval.cpu import toolchain

GOOD = problems.get("vector_add").canonical


def _run_module(arguments, **environment):
  return subprocess.run(
    [sys.executable, "-m", "kernels_eval", *arguments],
    capture_output=True,
    text=True,
    timeout=60,
    env={**os.environ, **environment},
    cwd=pathlib.Path(__file__).parents[2],
  )


@pytest.mark.covers("P22")
def test_no_compiler_is_said_once_and_in_one_line(tmp_path, monkeypatch):
  file = tmp_path / "k.cu"
  file.write_text(GOOD)
  done = _run_module(
    ["check", str(file), "--problem", "vector_add"], PATH=str(tmp_path)
  )
  assert done.returncode == 2
  assert done.stdout == ""
  assert done.stderr.count("\n") == 1
  assert "infrastructure_error: no C++ compiler: `g++` is not on PATH" in (
    done.stderr
  )
  monkeypatch.setenv("PATH", str(tmp_path))
  with pytest.raises(client.HarnessError, match="no C\\+\\+ compiler"):
    client.Pool(num_workers=1)
  # What needs no compiler still works.
  assert _run_module(["list"], PATH=str(tmp_path)).returncode == 0


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
  built = []

  def build(folder, compiler):
    built.append(folder)
    (folder / "ke_host").write_text("")

  monkeypatch.setattr(toolchain, "_build", build)
  tools = toolchain.prepare()
  assert tools.host.exists()  # for this process alone
  assert built == [tools.parts]
  assert not (tmp_path / "file" / "below").exists()


def test_parts_of_one_judge_end_with_it(tmp_path):
  """Judges leave without their exit functions."""
  code = (
    "import os, sys; from kernels_eval import client; "
    "from kernels_eval.schema import Request\n"
    "with client.Pool(num_workers=1, executor='cpu') as pool:\n"
    "  request = Request('', 'vector_add', sys.argv[1])\n"
    "  print(pool.evaluate([request])[0].status.value)\n"
    "  print(*os.listdir(sys.argv[2]))\n"
  )
  (tmp_path / "file").write_text("")
  temporary_folder = tmp_path / "temporary"
  temporary_folder.mkdir()
  done = subprocess.run(
    [sys.executable, "-c", code, GOOD, str(temporary_folder)],
    cwd=pathlib.Path(__file__).parents[2],
    capture_output=True,
    text=True,
    timeout=120,
    env={
      **os.environ,
      "XDG_CACHE_HOME": str(tmp_path / "file" / "below"),
      "TMPDIR": str(temporary_folder),
    },
  )
  status, folders = done.stdout.splitlines()
  assert status == "passed", done.stderr
  assert len(folders.split()) == 2  # the pool's, and the judge's parts
  assert list(temporary_folder.iterdir()) == []


def test_parts_are_built_once(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
  count = []

  def build(folder, compiler):
    count.append(folder)
    (folder / "device_with_half.h.gch").write_text("")

  monkeypatch.setattr(toolchain, "_build", build)
  assert toolchain.prepare().parts == toolchain.prepare().parts
  assert len(count) == 1
  assert not count[0].exists()  # built beside its place, then renamed


def test_parts_that_nobody_uses_are_removed(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

  def build(folder, compiler):
    (folder / "device_with_half.h.gch").write_text("")

  monkeypatch.setattr(toolchain, "_build", build)
  cache = tmp_path / "kernels_eval"
  for name in ("cpu-old", ".build-old", "cpu-new", "other"):
    (cache / name).mkdir(parents=True)
    if name != "cpu-new":
      os.utime(cache / name, (0, 0))
  parts = toolchain.prepare().parts
  assert {p.name for p in cache.iterdir()} == {parts.name, "cpu-new", "other"}
  # One that is no longer whole is built anew.
  (parts / "device_with_half.h.gch").unlink()
  (parts / "left").write_text("")
  assert toolchain.prepare().parts == parts
  assert [p.name for p in parts.iterdir()] == ["device_with_half.h.gch"]


def test_a_failed_build_leaves_nothing(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

  def build(folder, compiler):
    (folder / "half").write_text("")
    raise toolchain.ToolchainError("the compiler is broken")

  monkeypatch.setattr(toolchain, "_build", build)
  with pytest.raises(toolchain.ToolchainError, match="broken"):
    toolchain.prepare()
  assert list((tmp_path / "kernels_eval").iterdir()) == []


def test_an_old_compiler_is_refused(tmp_path):
  fake = tmp_path / "g++"
  fake.write_text("#!/bin/sh\necho 9.4.0\n")
  fake.chmod(0o755)
  with pytest.raises(toolchain.ToolchainError, match="9.4.0 is too old"):
    toolchain.prepare(str(fake))
