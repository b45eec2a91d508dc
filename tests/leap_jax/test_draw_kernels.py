"""Log masses by the kernel, interpreted, against those of `draws`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import draw_kernels, draws


@pytest.mark.parametrize(
  ("size", "num_ids", "rule"),
  [
    (2048, 2048, draws.Rule()),
    (1500, 1500, draws.Rule(0.7)),  # no multiple of a block
    (2100, 1930, draws.Rule(1.3)),  # a block in part, and one without an id
    (130, 5, draws.Rule(2.0)),
  ],
)
def test_masses_are_those_of_draws(size, num_ids, rule):
  logits = 5 * jax.random.normal(jax.random.key(size), (3, size))
  got = draw_kernels.log_masses(logits, rule, num_ids)
  want = draws.log_masses(logits, rule, num_ids)
  assert got.shape == want.shape == (3, -(-size // draws.BLOCK))
  has_ids = np.arange(got.shape[1]) * draws.BLOCK < num_ids
  np.testing.assert_allclose(got[:, has_ids], want[:, has_ids], atol=1e-5)
  assert (got[:, ~has_ids] < -1e29).all()
  by_hand = np.log(
    np.exp(np.asarray(logits[0, : min(num_ids, 128)]) / rule.temperature).sum()
  )
  np.testing.assert_allclose(got[0, 0], by_hand, rtol=1e-5)


def test_large_logits_do_not_overflow():
  logits = jnp.full((1, 256), 1e4).at[0, 200].set(1e4 + 3)
  got = draw_kernels.log_masses(logits, draws.Rule(), 256)
  want = [1e4 + np.log(128), 1e4 + np.log(127 + np.exp(3))]
  np.testing.assert_allclose(got[0], want, rtol=1e-7)


@pytest.mark.parametrize("rule", [draws.Rule(0.9), draws.Rule(0.9, top_k=40)])
def test_the_same_ids_are_drawn(rule):
  logits = 2 * jax.random.normal(jax.random.key(1), (64, 1500))
  keys = jax.random.split(jax.random.key(2), 64)
  want = draws.draw(logits, keys, rule, 1490)
  got = draws.draw(logits, keys, rule, 1490, draw_kernels.log_masses)
  np.testing.assert_array_equal(got[0], want[0])
  for a, b in zip(got[1:], want[1:], strict=True):
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_it_is_tried_only_beside_other_kernels(monkeypatch):
  assert draw_kernels.fault() is None
  assert draw_kernels.is_usable(True) and not draw_kernels.is_usable(False)
  monkeypatch.setattr(draw_kernels, "fault", lambda: "off by 7")
  with pytest.warns(UserWarning, match="without their kernel: off by 7"):
    assert not draw_kernels.is_usable(True)
