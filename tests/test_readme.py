"""README: its commands run, its links exist, nothing in it is stale."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LINKS = re.findall(r"\]\(((?!https?:|#)[^)#]+)", README)
COMMANDS = [
  line.strip()
  for block in re.findall(r"```(?:bash|sh)\n(.*?)```", README, re.S)
  for line in block.splitlines()
  if line.strip() and not line.strip().startswith("#")
]


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_links_exist(link):
  assert (ROOT / link).exists(), f"README.md links to {link}: no such file"


def test_the_two_commands_stand_there_to_the_letter():
  assert (
    "pip install -e . && python -m experiments.run "
    "--config=experiments/configs/quickstart.py"
  ) in COMMANDS
  assert "pip install -e '.[test]' && bash test.sh" in COMMANDS
  assert (
    "pip install -q -e '.[test]' && bash test.sh"
    in (ROOT / ".ci" / "run").read_text()
  )


@pytest.mark.parametrize("command", COMMANDS)
def test_modules_and_files_of_commands_exist(command):
  for part in command.split("&&"):
    words = shlex.split(part, comments=True)
    if words[:2] == ["python", "-m"]:
      path = ROOT / words[2].replace(".", "/")
      assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
    for word in words:
      for path in re.findall(r"--config=(\S+\.py)", word):
        assert (ROOT / path).exists(), f"README.md names {path}"


# Those that end in a moment are run as they stand.
QUICK = [
  c for c in COMMANDS if re.match(r"python -m kernels_eval (?!bench|audit)", c)
]


@pytest.mark.parametrize("command", QUICK)
def test_quick_commands_run(command, tmp_path):
  command = command.replace("python ", f"{sys.executable} ", 1)
  done = subprocess.run(
    ["bash", "-c", command],
    cwd=ROOT,
    capture_output=True,
    text=True,
    env={**os.environ, "JAX_PLATFORMS": "cpu"},
  )
  assert done.returncode == 0, done.stdout + done.stderr
  assert done.stdout


# Beside what README explains: documents, and what tools look for.
_OTHERS = {
  *(".ci", ".clang-format", ".gitignore"),
  *("README.md", "LOG.md", "docs", "pyproject.toml", "setup.py", "test.sh"),
}


def test_every_package_and_top_file_is_explained():
  """And nothing else lies there."""
  listed = subprocess.run(
    ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
  )
  if listed.returncode:
    pytest.skip("this copy is no checkout: git does not know its files")
  names = {path.split("/")[0] for path in listed.stdout.split("\0") if path}
  packages = {"leap_jax", "kernels_eval", "experiments", "tests"}
  assert names - _OTHERS == packages
  for name in packages:
    assert f"\n{name}/ " in README, name
