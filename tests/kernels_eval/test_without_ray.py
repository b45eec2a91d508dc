"""What the Ray backend does before there is a cluster, or without Ray."""

import asyncio
import pathlib
import subprocess
import sys

import msgspec
import pytest

from kernels_eval import client, node_agent, ray_pool
from kernels_eval.schema import HARNESS_VERSION

_ROOT = pathlib.Path(__file__).parents[2]


def test_without_ray_one_line_says_what_to_install(monkeypatch):
  monkeypatch.setitem(sys.modules, "ray", None)
  with pytest.raises(client.HarnessError) as error:
    ray_pool.RayPool()
  assert "pip install 'leap-jax[ray]'" in str(error.value)
  assert "\n" not in str(error.value)


def test_choosing_nothing_imports_no_ray():
  code = (
    "import sys, kernels_eval.ray_pool, experiments.pools;"
    "print('ray' in sys.modules)"
  )
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True
  )
  assert done.stdout.strip() == "False", done.stderr


def test_an_agent_refuses_a_client_of_another_version():
  setup = {"harness_version": "0.1", "unheard": "of"}
  agent = node_agent.NodeAgent()
  frame = asyncio.run(agent.start(msgspec.msgpack.encode(setup)))
  reply = msgspec.msgpack.decode(frame, type=node_agent.Reply)
  assert f"has version {HARNESS_VERSION}, here it has 0.1" in reply.message
  asyncio.run(agent.stop())
