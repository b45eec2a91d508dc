"""Config files: ours are valid, and a mistake in one has its place told."""

import re

import pytest

from experiments import run, settings
from tests.experiments.command_lines import CONFIGS, ROOT, parse


def test_a_missing_config_is_named_with_its_neighbour():
  with pytest.raises(settings.UsageError, match="quickstart.py"):
    parse(config="experiments/configs/quickstrat.py")
  with pytest.raises(settings.UsageError, match="no config: add --config="):
    settings.parse(["run"], lambda values: None)


@pytest.mark.parametrize(
  "body,words",
  [
    ("c.learner.learning_rat = 1.0", "learning_rat"),
    ('c.update({"learner": {"learning_rat": 1.0}})', "learning_rat"),
    ('c.rollout.group_size = "eight"', "eight"),
  ],
)
@pytest.mark.covers("P16")
def test_a_mistake_in_a_file_is_found_too(tmp_path, body, words):
  path = tmp_path / "mine.py"
  path.write_text(
    "from experiments.configs import base\n"
    f"def get_config():\n  c = base.get_config()\n  {body}\n  return c\n"
  )
  with pytest.raises(settings.UsageError, match=words) as error:
    parse(config=str(path))
  assert "\n" not in str(error.value)


START = "from experiments.configs import base\n"


@pytest.mark.parametrize(
  "text,words",
  [
    ("def get_config(:\n", [":1: SyntaxError"]),
    ("\nimport no_such_module\n", [":2: ModuleNotFoundError", "no_such_mod"]),
    ("\n\n1 / 0\n", [":3: ZeroDivisionError: division by zero"]),
    ("def get_config():\n  return base\n", [":2: NameError", "base"]),
    ("def get_config():\n  raise RuntimeError\n", [":2: RuntimeError"]),
    ("def get_config():\n  assert False\n", [":2: AssertionError"]),
    ("def get_config(argument):\n  pass\n", ["TypeError", "argument"]),
    ("config = 3\n", ["no function get_config"]),
    ("get_config = 3\n", ["TypeError", "not callable"]),
    ("def get_config():\n  return {}\n", ["returns dict", "ConfigDict"]),
    ("def get_config():\n  pass\n", ["returns NoneType", "ConfigDict"]),
    (
      "from ml_collections import ConfigDict\n"
      "def get_config():\n  return ConfigDict({'seed': 1})\n",
      ["config.eval.every is missing", "base.get_config()"],
    ),
    (
      START + "def get_config():\n  c = base.get_config()\n"
      "  with c.unlocked():\n    c.sead = 1\n  return c\n",
      ["no setting config.sead; did you mean seed?"],
    ),
    (
      START + "def get_config():\n  c = base.get_config()\n"
      "  c.learner.learning_rat = 1.0\n  return c\n",
      [":4: AttributeError", "learning_rat"],
    ),
    ("\0", ["SyntaxError"]),
    (
      START + "def get_config():\n  c = base.get_config()\n"
      "  with c.ignore_type():\n    c.seed = 'one'\n  return c\n",
      ["config.seed='one': expected a whole number"],
    ),
  ],
)
@pytest.mark.parametrize("flags", [[], ["--help"]], ids=["run", "help"])
@pytest.mark.covers("P16")
def test_a_config_that_fails_is_one_line_with_its_place(
  tmp_path, capsys, text, words, flags
):
  path = tmp_path / "mine.py"
  path.write_text(text)
  folder = tmp_path / "run"
  argv = ["run", f"--config={path}", f"--workdir={folder}", *flags]
  assert run.main(argv) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith(f"experiments.run: {path}")
  for word in words:
    assert word in line
  assert not folder.exists()


def test_a_config_of_another_kind_of_file_is_one_line(tmp_path):
  path = tmp_path / "notes.md"
  path.write_text("# Notes\n\nwords of a language\n")
  with pytest.raises(settings.UsageError, match="notes.md:3: SyntaxError"):
    settings.load_file(str(path))


def test_help_on_a_config_that_is_not_there_is_one_line(capsys):
  assert run.main(["run", "--config=nonexist.py", "--help"]) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert "no config file nonexist.py" in line


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_config_is_valid_and_says_how_to_run_it(path):
  parse(config=str(path.relative_to(ROOT))) if path.stem != "base" else None
  text = path.read_text()
  if path.stem != "base":
    command = (
      r"python -m experiments\.(run|bench \w+) "
      rf"--config=experiments/configs/{path.name}\b"
    )
    assert re.search(command, re.sub(r"[\s\\]+", " ", text))
