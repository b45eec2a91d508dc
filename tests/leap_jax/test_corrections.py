"""Weights of tokens whose sampler is not the trainer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import corrections, losses
from leap_jax.types import Bucket

# Two turns: tokens 1, 2 and 4, 5; the rest is context.
OWN = jnp.asarray([[0, 1, 1, 0, 1, 1, 0]], bool)


def row(*values):
  """[1, 7] log ratios, given on the four own tokens; rubbish elsewhere."""
  out = np.full((1, 7), 9.0, np.float32)
  out[np.asarray(OWN)] = values
  return jnp.asarray(out)


def weights(correction, *values):
  """Of the four own tokens; nothing elsewhere may count."""
  got = np.asarray(correction(row(*values), OWN))
  return got[np.asarray(OWN)].tolist()


def test_truncation_bounds_the_importance_weight():
  log = np.log([0.5, 1.9, 2.0, 8.0])
  got = weights(corrections.truncated_importance, *log)
  # w rho = min(rho, 2).
  np.testing.assert_allclose(got * np.exp(log), [0.5, 1.9, 2, 2], rtol=1e-5)


def test_geometric_mask_by_hand():
  mask = corrections.geometric_mask
  # Turn 1: mean 0 although both tokens are far off. Turn 2: mean .0015.
  assert weights(mask, 0.3, -0.3, 0.003, 0.0) == [1, 1, 0, 0]
  assert weights(mask, 0.0, -0.0019, 0.0019, 0.0) == [1, 1, 1, 1]
  assert weights(mask, 0.0, -0.0021, 0.0, 0.0021) == [0, 0, 0, 0]
  # log 1e-4 = -9.21: one such token condemns its turn, whatever the mean.
  assert weights(mask, 9.3, -9.3, 9.1, -9.1) == [0, 0, 1, 1]


def test_mirror_pop_does_not_let_signs_cancel():
  pop = lambda r, own: corrections.mirror_pop(r, own, delta=0.05)
  assert weights(pop, 0.3, -0.3, 0.04, -0.05) == [0, 0, 1, 1]


@pytest.mark.parametrize("name", corrections.CORRECTIONS)
def test_nothing_is_corrected_where_sampler_and_trainer_agree(name):
  correction = corrections.CORRECTIONS[name](0.05)
  assert weights(correction, 0.0, 0.0, 0.0, 0.0) == [1, 1, 1, 1]
  got = np.asarray(jax.jit(correction)(row(5.0, 5.0, 0.0, 0.0), OWN))
  assert np.isfinite(got).all() and (got >= 0).all() and (got <= 1).all()


def micro_batch(behavior):
  """One micro-batch; what this file does not look at is left out."""
  return Bucket(**dict.fromkeys(Bucket._fields))._replace(
    own=OWN,
    weights=jnp.where(OWN, 0.25, 0.0),
    advantages=jnp.where(OWN, -1.0, 0.0),
    behavior_logprobs=behavior,
  )


def clipped_loss(logprobs, micro):
  token = losses.clipped_policy_loss(
    logprobs,
    micro.behavior_logprobs,
    micro.advantages,
    micro.own & (micro.weights > 0),
    clip_low=0.2,
    clip_high=0.28,
  )
  return (micro.weights * token.loss).sum()


def loss_and_gradient(correction, gaps):
  """Of log-probabilities that are off the sampler's by `gaps`."""
  now = -jnp.arange(1.0, 8.0)[None]
  micro = micro_batch(jnp.where(OWN, now - row(*gaps), jnp.nan))
  loss_fn = corrections.corrected(
    clipped_loss, correction, lambda logprobs, micro: logprobs
  )
  of = jax.jit(jax.value_and_grad(lambda x: loss_fn(x, micro)))
  loss, gradient = of(now)
  return float(loss), np.asarray(gradient)


def test_a_corrected_loss_by_hand():
  gaps = np.log([1.1, 1.0, 4.0, 1.0])
  loss, _ = loss_and_gradient(corrections.no_correction, gaps)
  np.testing.assert_allclose(loss, (1.1 + 1 + 4 + 1) / 4, rtol=1e-5)
  loss, gradient = loss_and_gradient(corrections.truncated_importance, gaps)
  np.testing.assert_allclose(loss, (1.1 + 1 + 2 + 1) / 4, rtol=1e-5)
  assert np.isfinite(gradient).all()
  # The second turn is rejected; the first one keeps its share.
  pop = corrections.CORRECTIONS["mirror_pop"](0.1)
  loss, gradient = loss_and_gradient(pop, gaps)
  np.testing.assert_allclose(loss, (1.1 + 1) / 4, rtol=1e-5)
  assert not gradient[0, 4:6].any() and gradient[0, 1:3].any()


def test_a_correction_is_a_constant_of_the_gradient():
  # The gradient of w rho A with w held: half of the uncorrected one at rho = 4.
  gaps = np.log([1.0, 1.0, 4.0, 1.0])
  _, plain = loss_and_gradient(corrections.no_correction, gaps)
  _, half = loss_and_gradient(corrections.truncated_importance, gaps)
  np.testing.assert_allclose(half[0, 4], 0.5 * plain[0, 4], rtol=1e-4)
  np.testing.assert_allclose(half[0, 5], plain[0, 5], rtol=1e-5)
