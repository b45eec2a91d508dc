"""What an installed copy holds, by setuptools' own account."""

import ast
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("kernels_eval", "leap_jax", "experiments")

# Files as a finished experiment leaves them.
RESULTS = (
  "experiments/results/quickstart/leap/seed0/results.json",
  "experiments/results/quickstart/leap/seed0/metrics.jsonl.gz",
)

_LIST = """
import pathlib
import setuptools  # before distutils, which newer Pythons do not have
import distutils.core

done = distutils.core.run_setup("setup.py", stop_after="config")
build = done.get_command_obj("build_py")
build.ensure_finalized()
for _, folder, _, names in build.data_files:
  for name in names:
    print(pathlib.PurePath(folder, name).as_posix())
for package, module, path in build.find_all_modules():
  print(pathlib.PurePath(path).as_posix())
"""


def test_every_base_dependency_is_used():
  tree = ast.parse((ROOT / "setup.py").read_text())
  (base,) = (
    ast.literal_eval(node.value)
    for node in tree.body
    if isinstance(node, ast.Assign) and node.targets[0].id == "BASE"
  )
  imported = set()
  for package in PACKAGES:
    for path in (ROOT / package).rglob("*.py"):
      for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
          imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
          imported.add(node.module.split(".")[0])
  modules = {"absl-py": "absl", "orbax-checkpoint": "orbax"}
  for requirement in base:
    name = re.match(r"[\w-]+", requirement)[0]
    assert modules.get(name, name.replace("-", "_")) in imported, name


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
  """The packages as they stand, with the results of a run."""
  folder = tmp_path_factory.mktemp("tree")
  shutil.copy(ROOT / "setup.py", folder)
  for package in PACKAGES:
    shutil.copytree(
      ROOT / package,
      folder / package,
      ignore=shutil.ignore_patterns("__pycache__"),
    )
  for name in RESULTS:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
  return folder


def test_every_file_of_the_packages_is_installed(tree):
  done = subprocess.run(
    [sys.executable, "-c", _LIST], cwd=tree, capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr
  installed = set(done.stdout.split())
  assert set(RESULTS) <= installed
  wanted = {
    path.relative_to(tree).as_posix()
    for package in PACKAGES
    for path in (tree / package).rglob("*")
    # Shell scripts are for a checkout.
    if path.is_file() and path.suffix != ".sh"
  }
  assert sorted(wanted - installed) == []
