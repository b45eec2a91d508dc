"""What a run leaves behind is whole, whenever it was stopped."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from leap_jax import files, policy_io, tokenizer

ROOT = pathlib.Path(__file__).parents[2]


def test_contents_arrive_and_nothing_else_stays(tmp_path):
  files.write_whole(tmp_path, {"a": b"1", "b": b"2"})
  files.write_whole(tmp_path, {"a": b"3"})
  found = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
  assert found == {"a": b"3", "b": b"2"}


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, RuntimeError])
def test_whatever_is_raised_leaves_the_old_files_and_no_others(tmp_path, error):
  files.write_whole(tmp_path, {"a": b"1"})

  def interrupted(path):
    path.write_bytes(b"ha")
    raise error

  with pytest.raises(error):
    files.write_whole(tmp_path, {"a": b"2", "b": interrupted})
  found = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
  assert found == {"a": b"1"}


# argv: a folder that holds a policy, what to save again, and the size of the
# largest file that the disk takes (bytes), or "kill" after the first write.
_SAVE_AGAIN = """
import os, pathlib, resource, signal, sys
import jax, numpy as np
jax.config.update("jax_platforms", "cpu")
from leap_jax import policy_io

folder, what, limit = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
config, params, vocabulary = policy_io.load(folder)
if what == "tokenizer":
  save = lambda: vocabulary.save(folder / "tokenizer.json")
else:
  # Other weights, so that a mixture would be seen.
  params = jax.tree.map(lambda x: x + 1, params)
  save = lambda: policy_io.save(folder, config, params, vocabulary, np.float32)
if limit == "kill":
  write = pathlib.Path.write_bytes
  def half(path, raw):
    write(path, raw[: len(raw) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
  pathlib.Path.write_bytes = half
else:
  signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit),) * 2)
try:
  save()
except OSError as error:
  print("OSError", error.errno)
"""


@pytest.mark.parametrize("limit", ["kill", "4096", "60000"])
@pytest.mark.parametrize("what", ["tokenizer", "policy"])
def test_a_save_that_fails_leaves_the_old_policy(
  tmp_path, model, params, vocabulary, what, limit
):
  policy_io.save(tmp_path, model, params, vocabulary, np.float32)
  before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
  done = subprocess.run(
    [sys.executable, "-c", _SAVE_AGAIN, str(tmp_path), what, limit],
    capture_output=True,
    text=True,
    env={**os.environ, "PYTHONPATH": str(ROOT)},
  )
  if limit == "kill":
    assert done.returncode == -9, done.stderr
  elif what == "policy" or limit == "4096":
    assert done.stdout.startswith("OSError"), done.stderr
  for name, raw in before.items():
    assert (tmp_path / name).read_bytes() == raw
  policy_io.load(tmp_path)
  # The next save clears up what a killed one has left.
  policy_io.save(tmp_path, model, params, vocabulary, np.float32)
  assert {p.name for p in tmp_path.iterdir()} == set(before)


def test_the_vocabulary_is_written_as_the_library_would(tmp_path, vocabulary):
  vocabulary.save(tmp_path / "ours.json")
  vocabulary.inner.save(str(tmp_path / "theirs.json"))
  ours = (tmp_path / "ours.json").read_bytes()
  assert ours == (tmp_path / "theirs.json").read_bytes()
  again = tokenizer.load(tmp_path / "ours.json")
  assert again.encode("if (i < n)") == vocabulary.encode("if (i < n)")
