"""Checkpoints: exact, whole, and in the current shardings."""

import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import checkpoint

ROOT = pathlib.Path(__file__).parents[2]


def make_state(x=0.0):
  return {
    "params": {"w": jnp.arange(12.0).reshape(3, 4) + x},
    "half": jnp.asarray([1.5, -2.25], jnp.bfloat16),
    "mask": jnp.asarray([True, False]),
    "step": jnp.int32(7),
  }


def abstract(state):
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
    state,
  )


def assert_equal(a, b):
  for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
    assert x.dtype == y.dtype
    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.fixture
def store(tmp_path):
  opened = []

  def open_store(**options):
    opened.append(checkpoint.Checkpoints(tmp_path / "checkpoints", **options))
    return opened[-1]

  yield open_store
  for one in opened:
    one.close()


def test_state_and_record_come_back_bit_for_bit(store):
  state = make_state()
  store().save(3, state, {"iterations": 3, "seconds": {"sample": 0.1}})
  step, got, record = store().restore_latest(abstract(state))
  assert step == 3 and record == {"iterations": 3, "seconds": {"sample": 0.1}}
  assert_equal(got, state)


def test_nothing_there_is_no_error(store):
  assert store().restore_latest(abstract(make_state())) is None


def damage(folder, how):
  files = [p for p in folder.rglob("*") if p.is_file() and p.stat().st_size]
  if how == "truncated":
    largest = max(files, key=lambda p: p.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
  elif how == "flipped":
    largest = max(files, key=lambda p: p.stat().st_size)
    raw = bytearray(largest.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    largest.write_bytes(bytes(raw))
  elif how == "missing":
    for path in files:
      if "record" not in path.parts:
        path.unlink()
  else:
    (folder / "record" / "metadata").write_text("{half a rec")


@pytest.mark.parametrize("how", ["truncated", "flipped", "missing", "record"])
@pytest.mark.covers("P15")
def test_a_damaged_checkpoint_is_passed_over(store, tmp_path, how, caplog):
  one = store()
  one.save(1, make_state(1.0), {"n": 1})
  one.save(2, make_state(2.0), {"n": 2})
  one.close()
  damage(tmp_path / "checkpoints" / "2", how)
  two = store()
  step, got, record = two.restore_latest(abstract(make_state()))
  assert (step, record) == (1, {"n": 1})
  assert_equal(got, make_state(1.0))
  assert "damaged checkpoint 2" in caplog.text
  # The way is free for a new second checkpoint.
  two.save(2, make_state(3.0), {"n": 3})
  assert store().restore_latest(abstract(make_state()))[2] == {"n": 3}


def test_if_all_are_damaged_the_error_says_why(store, tmp_path):
  one = store()
  one.save(1, make_state(), {})
  one.close()
  damage(tmp_path / "checkpoints" / "1", "missing")
  with pytest.raises(checkpoint.CheckpointError, match="no usable checkpoint"):
    store().restore_latest(abstract(make_state()))


def test_a_half_written_checkpoint_does_not_count(store, tmp_path):
  one = store()
  one.save(1, make_state(), {"n": 1})
  one.close()
  (tmp_path / "checkpoints" / "2.orbax-checkpoint-tmp-123").mkdir()
  assert store().restore_latest(abstract(make_state()))[0] == 1


def test_only_the_newest_are_kept(store):
  one = store(keep=2)
  for step in range(1, 5):
    one.save(step, make_state(), {})
  assert one.steps() == [3, 4]


@pytest.mark.covers("P15")
def test_an_unwritable_folder_is_one_clear_line(tmp_path):
  blocked = tmp_path / "file"
  blocked.write_text("")
  with pytest.raises(checkpoint.CheckpointError, match="cannot write"):
    checkpoint.Checkpoints(blocked / "checkpoints")


_FULL_DISK = """
import resource, sys, pathlib, signal
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_platforms", "cpu")
from leap_jax import checkpoint
folder = pathlib.Path(sys.argv[1])
store = checkpoint.Checkpoints(folder)
state = {"w": jnp.asarray(np.random.default_rng(0).random(100_000))}
store.save(1, state, {"n": 1})
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
try:
  store.save(2, state, {"n": 2})
except checkpoint.CheckpointError as error:
  print("refused:", error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(store.steps())
"""


@pytest.mark.covers("P15")
def test_a_save_that_fails_is_an_error_and_the_last_one_stays(tmp_path):
  done = subprocess.run(
    [sys.executable, "-c", _FULL_DISK, str(tmp_path / "checkpoints")],
    capture_output=True,
    text=True,
    env={**os.environ, "PYTHONPATH": str(ROOT)},
  )
  assert "refused: cannot save checkpoint 2 to" in done.stdout, done.stderr
  assert "too large" in done.stdout.lower()  # EFBIG stands in for ENOSPC
  state = {"w": jnp.asarray(np.random.default_rng(0).random(100_000))}
  store = checkpoint.Checkpoints(tmp_path / "checkpoints")
  step, got, record = store.restore_latest(abstract(state))
  store.close()
  assert (step, record) == (1, {"n": 1})
  assert_equal(got, state)


_OTHER_DEVICES = """
import sys, jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_platforms", "cpu")
from jax.sharding import NamedSharding, PartitionSpec
from leap_jax import checkpoint, sharding
mesh = sharding.make_mesh()
rows = NamedSharding(mesh, PartitionSpec("data"))
state = {
  "w": jax.device_put(jnp.arange(32.0).reshape(8, 4), rows),
  "step": jax.device_put(jnp.int32(5), sharding.replicated(mesh)),
}
store = checkpoint.Checkpoints(__import__("pathlib").Path(sys.argv[1]))
if sys.argv[2] == "save":
  store.save(1, state, {"n": 1})
else:
  abstract = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state
  )
  step, got, record = store.restore_latest(abstract)
  assert got["w"].sharding.is_equivalent_to(rows, 2)
  np.testing.assert_array_equal(got["w"], state["w"])
  assert int(got["step"]) == 5 and record == {"n": 1}
store.close()
print(len(jax.devices()))
"""


def on_devices(count, folder, what):
  done = subprocess.run(
    [sys.executable, "-c", _OTHER_DEVICES, str(folder), what],
    capture_output=True,
    text=True,
    env={
      **os.environ,
      "PYTHONPATH": str(ROOT),
      "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
    },
  )
  assert done.stdout.strip() == str(count), done.stderr[-2000:]


@pytest.mark.covers("P14")
def test_restore_on_another_number_of_devices(tmp_path):
  folder = tmp_path / "checkpoints"
  on_devices(4, folder, "save")
  for count in (1, 8):
    on_devices(count, folder, "restore")
