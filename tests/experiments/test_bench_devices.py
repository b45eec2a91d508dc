"""The benchmark of several devices against one."""

import json
import os
import subprocess
import sys

import pytest

from experiments.bench import __main__ as bench
from experiments.bench import table

_SMALL = (
  "--config=experiments/configs/bench_devices_0_5b.py",
  "--config.policy.size=micro",
  "--config.policy.dtype=float32",
  "--config.policy.layers=scan",
  "--config.sampler.dtype=float32",
  "--config.rollout.num_problems=2",
  "--config.rollout.group_size=2",
  "--config.rollout.max_prompt_tokens=8",
  "--config.rollout.max_new_tokens=8",
  "--config.rollout.max_context_tokens=64",
  "--config.learner.bucket_tokens=(64,)",
  "--config.learner.micro_tokens=256",
  "--config.learner.head=whole",
  "--config.policy.remat=none",
  "--repeats=1",
)


def test_two_devices_do_what_one_does(tmp_path):
  done = subprocess.run(
    [sys.executable, "-m", "experiments.bench", "devices", *_SMALL]
    + [f"--out={tmp_path}"],
    env=os.environ
    | {
      "JAX_PLATFORMS": "cpu",
      "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # compiles in less time
      "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    },
    capture_output=True,
    text=True,
  )
  assert done.returncode == bench.EXIT_OK, done.stderr[-2000:]
  (path,) = tmp_path.glob("*.json")
  assert path.name == "devices_0_5b_b4_x2.json"
  found = json.loads(path.read_text())
  one = found["one_device"]
  assert found["loss"] == pytest.approx(one["loss"], rel=1e-5)
  assert found["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-5)
  assert found["compilations"] == one["compilations"] == 0
  assert found["times_faster"] == pytest.approx(
    one["seconds"] / found["seconds"]
  )
  (row,) = table.markdown(table.load(tmp_path)).splitlines()[2:3]
  assert row.startswith("| devices | micro | 4 |")
  assert f"1 of 2 devices: {found['times_faster']:.2f} x (sampling " in row


def test_one_device_has_nothing_to_compare_with(capsys):
  assert bench.main(["bench", "devices", *_SMALL]) == bench.EXIT_USAGE
  assert "there is one device" in capsys.readouterr().err
