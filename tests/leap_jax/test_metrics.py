"""Metrics files."""

import errno
import json
import struct
import subprocess
import sys

import pytest

from leap_jax import metrics


def test_undeclared_names_are_errors(tmp_path):
  writer = metrics.Writer(tmp_path, 0)
  with pytest.raises(metrics.UndeclaredMetric, match="update/los"):
    writer.write(0, {"update/los": 1.0})
  writer.close()


def test_lines_come_back_and_nan_is_left_out(tmp_path):
  writer = metrics.Writer(tmp_path, 0)
  writer.write(0, {"update/loss": 0.1 + 0.2, "update/kl": float("nan")})
  writer.close()
  (line,) = metrics.read(tmp_path / "metrics.jsonl")
  assert line == {"step": 0, "update/loss": 0.1 + 0.2}
  assert list((tmp_path / "tensorboard").iterdir())


def events(folder):
  """Every event, file by file in the order of their names."""
  from tensorboardX.proto import event_pb2

  out = []
  for path in sorted(folder.iterdir()):
    raw = path.read_bytes()
    while raw:
      (length,) = struct.unpack("<Q", raw[:8])
      out.append(event_pb2.Event.FromString(raw[12 : 12 + length]))
      raw = raw[12 + length + 4 :]
  return out


def test_tensorboard_gets_the_same_numbers_at_once(tmp_path):
  writer = metrics.Writer(tmp_path, 7)
  writer.write(7, {"update/loss": 0.5, "update/kl": float("nan")})
  # Before anything is closed.
  version, start, loss = events(tmp_path / "tensorboard")
  writer.close()
  assert version.file_version == "brain.Event:2"
  # Events of a part that is done again are hidden from here on.
  assert start.step == 7 and start.session_log.status == 1
  (value,) = loss.summary.value
  assert (loss.step, value.tag, value.simple_value) == (7, "update/loss", 0.5)
  assert loss.wall_time > 1e9


FULL_DISK = """
import pathlib, resource, signal, sys
from leap_jax import metrics

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = pathlib.Path(sys.argv[1])
writer = metrics.Writer(folder, 0)
if sys.argv[2] == "tensorboard":  # that file alone is full
  writer._file = open("/dev/null", "w")
  import os
  os.fsync = lambda descriptor: None
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
many = {name: 1.0 for name in metrics.METRICS}
try:
  for step in range(1000):
    writer.write(step, many)
except OSError as error:
  print("OSError", error.errno, step)
"""


@pytest.mark.parametrize("which", ["both", "tensorboard"])
@pytest.mark.covers("P15")
def test_a_full_disk_is_an_error_and_no_hang(tmp_path, which):
  done = subprocess.run(
    [sys.executable, "-c", FULL_DISK, str(tmp_path), which],
    capture_output=True,
    text=True,
    timeout=60,
  )
  assert done.stdout.split()[:2] == ["OSError", str(errno.EFBIG)], done.stderr
  assert int(done.stdout.split()[2]) < 10


def test_resuming_drops_what_will_be_done_again(tmp_path):
  writer = metrics.Writer(tmp_path, 0)
  for step in range(5):
    writer.write(step, {"update/loss": step})
  writer.close()
  with open(tmp_path / "metrics.jsonl", "a") as file:
    file.write('{"step": 5, "upda')  # killed while writing
  writer = metrics.Writer(tmp_path, 3)
  writer.write(3, {"update/loss": 30})
  writer.close()
  lines = metrics.read(tmp_path / "metrics.jsonl")
  assert [line["step"] for line in lines] == [0, 1, 2, 3]
  assert lines[-1]["update/loss"] == 30


def test_times_are_not_reproducible_and_results_are():
  record = {
    "step": 3,
    "update/loss": 1.0,
    "seconds/total": 2.0,
    "compile/count": 4,
    "kernels/judged": 7,
    "kernels/passed": 0.5,
  }
  assert metrics.reproducible(record) == {
    "step": 3,
    "update/loss": 1.0,
    "kernels/passed": 0.5,
  }


def test_every_metric_has_a_unit_and_a_meaning():
  for name, (unit, meaning) in metrics.METRICS.items():
    group, _, rest = name.partition("/")
    assert group and rest and unit and meaning, name
  json.dumps(metrics.METRICS)
