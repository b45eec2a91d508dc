"""Pools: judges that cannot do what the settings ask for."""

import types

import pytest

from experiments import pools
from experiments.configs import base
from kernels_eval import client


def test_judges_that_time_nothing_are_refused_for_a_reward_of_times(
  monkeypatch,
):
  closed = []
  pool = types.SimpleNamespace(
    executor_name="cpu-fiber", close=lambda: closed.append(True)
  )
  monkeypatch.setitem(pools.BACKENDS, "local", lambda config: pool)
  config = base.get_config()
  config.harness.executor = "auto"
  assert pools.make_pool(config) is pool and not closed
  config.method.reward = "rank_speed"
  with pytest.raises(client.HarnessError, match="rank_speed needs a GPU"):
    pools.make_pool(config)
  assert closed


def test_the_judges_have_the_gpus_that_the_settings_name(monkeypatch):
  asked = []
  monkeypatch.setattr(client, "Pool", lambda **given: asked.append(given))
  config = base.get_config()
  config.harness.devices = (2, 0)
  config.harness.sanitizer = True
  pools.BACKENDS["local"](config)
  (given,) = asked
  assert given["cuda_settings"].devices == (2, 0)
  assert given["cuda_settings"].with_sanitizer
