"""Per-token losses: the arithmetic, masks, extreme inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax import losses


def loss_of(logprobs, behavior, advantages, mask, low=0.2, high=0.28):
  rows = lambda x, dtype: jnp.asarray([x], dtype)
  return losses.clipped_policy_loss(
    rows(logprobs, jnp.float32),
    rows(behavior, jnp.float32),
    rows(advantages, jnp.float32),
    rows(mask, bool),
    clip_low=low,
    clip_high=high,
  )


def test_clipped_loss_by_hand():
  # ratios 1, 1.5, 1.5, 0.5, 0.5 with advantages 2, 1, -1, 1, -1:
  #   1 * 2                             = 2     -> -2
  #   min(1.5, 1.28) * 1                = 1.28  -> -1.28, clipped
  #   min(-1.5, -1.28)                  = -1.5  -> 1.5
  #   min(.5, .8)                       = .5    -> -.5
  #   min(-.5, -.8)                     = -.8   -> .8, clipped
  ratios = np.log([1.0, 1.5, 1.5, 0.5, 0.5])
  got = loss_of(ratios, np.zeros(5), [2, 1, -1, 1, -1], [1] * 5)
  np.testing.assert_allclose(
    got.loss[0], [-2, -1.28, 1.5, -0.5, 0.8], rtol=1e-5
  )
  assert got.clipped[0].tolist() == [0, 1, 0, 0, 1]


def test_at_ratio_one_the_gradient_is_reinforce():
  logits = jax.random.normal(jax.random.key(0), (1, 4, 7))
  targets = jnp.asarray([[1, 2, 3, 4]])
  advantage = jnp.asarray([[1.0, -2.0, 0.5, 3.0]])
  mask = jnp.ones((1, 4), bool)
  behavior = losses.token_logprobs(logits, targets, temperature=0.7)

  def clipped(x):
    logprobs = losses.token_logprobs(x, targets, temperature=0.7)
    return losses.clipped_policy_loss(
      logprobs, behavior, advantage, mask, clip_low=0.2, clip_high=0.28
    ).loss.sum()

  def reinforce(x):
    logprobs = losses.token_logprobs(x, targets, temperature=0.7)
    return -(advantage * logprobs).sum()

  np.testing.assert_allclose(
    jax.grad(clipped)(logits), jax.grad(reinforce)(logits), atol=1e-6
  )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.covers("P04")
def test_padding_has_no_effect_whatever_it_holds(bad):
  def total(logprobs, behavior):
    got = losses.clipped_policy_loss(
      logprobs,
      behavior,
      jnp.asarray([[1.0, bad]]),
      jnp.asarray([[True, False]]),
      clip_low=0.2,
      clip_high=0.28,
    )
    return got.loss.sum() + got.log_ratio.sum()

  arguments = (jnp.asarray([[-1.0, bad]]), jnp.asarray([[-1.2, bad]]))
  value, gradient = jax.value_and_grad(total)(*arguments)
  assert np.isfinite(value)
  assert np.isfinite(gradient[0, 0]) and gradient[0, 1] == 0


def test_a_huge_ratio_stays_finite():
  got = loss_of([0.0, 0.0], [-300.0, 300.0], [-1.0, 1.0], [1, 1])
  assert np.isfinite(got.loss).all()
  # What is reported is the ratio before any clamp.
  assert got.log_ratio[0].tolist() == [300.0, -300.0]


# --------------------------------------------------- temperature (trl #4159)


@pytest.mark.covers("P03")
def test_logprobs_are_those_of_the_tempered_softmax():
  logits = jnp.asarray([[[2.0, 1.0, 0.0]] * 3])
  targets = jnp.asarray([[0, 1, 2]])
  got = losses.token_logprobs(logits, targets, temperature=0.6)[0]
  np.testing.assert_allclose(got, [-0.203, -1.869, -3.536], atol=1e-3)


def test_logprobs_are_float32_also_for_half_precision_logits():
  logits = jnp.asarray([[[2.0, 1.0]]], jnp.bfloat16)
  got = losses.token_logprobs(logits, jnp.asarray([[0]]), temperature=1.0)
  assert got.dtype == jnp.float32


def test_entropy_of_a_uniform_distribution():
  got = losses.entropy(jnp.zeros((1, 1, 8)), temperature=0.3)
  np.testing.assert_allclose(got, np.log(8), rtol=1e-6)


# ----------------------------------------------- KL estimate (OpenRLHF #525)


@pytest.mark.parametrize("r", [0.0, 5.0, 30.0, 100.0, -100.0, 3e38, -3e38])
@pytest.mark.covers("P04")
def test_kl_estimate_is_finite_with_a_finite_gradient(r):
  mask = jnp.asarray([[True]])
  f = lambda x: losses.kl_estimate(x, mask).sum()
  value, gradient = jax.value_and_grad(f)(jnp.asarray([[r]]))
  assert np.isfinite(value) and value >= 0
  assert np.isfinite(gradient)


@pytest.mark.covers("P04")
def test_kl_estimate_is_exact_near_zero():
  r = 1e-4
  got = losses.kl_estimate(jnp.asarray([[r]]), jnp.asarray([[True]]))
  # exp(r) - 1 - r = r^2 / 2 + ...: 5e-9; exp(r) - 1.0f - r alone gives 0 or
  # twice that in float32.
  np.testing.assert_allclose(got, r * r / 2, rtol=0.05)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.covers("P04")
def test_kl_estimate_ignores_padding(bad):
  mask = jnp.asarray([[True, False]])
  f = lambda x: losses.kl_estimate(x, mask).sum()
  value, gradient = jax.value_and_grad(f)(jnp.asarray([[0.5, bad]]))
  assert np.isfinite(value) and np.isfinite(gradient).all()
  assert gradient[0, 1] == 0


# --------------------------------------------------- averaging (verl #593)


@pytest.mark.covers("P02")
def test_normalizations_are_three_different_objectives():
  # Per-token loss 1 on eight tokens, 5 on two.
  counts = jnp.asarray([8, 2])
  sums = np.asarray([8 * 1.0, 2 * 5.0])
  of = lambda name: float((losses.NORMALIZATIONS[name](counts, 8) * sums).sum())
  np.testing.assert_allclose(of("token_mean"), 1.8, rtol=1e-6)
  np.testing.assert_allclose(of("sequence_mean"), 3.0, rtol=1e-6)
  np.testing.assert_allclose(of("constant_length"), 1.125, rtol=1e-6)


@pytest.mark.parametrize("name", losses.NORMALIZATIONS)
def test_samples_without_tokens_weigh_nothing(name):
  weights = losses.NORMALIZATIONS[name](jnp.asarray([4, 0, 2, 0]), 8)
  assert np.isfinite(weights).all()
  assert weights[1] == weights[3] == 0
  nothing = losses.NORMALIZATIONS[name](jnp.zeros(3, jnp.int32), 8)
  assert nothing.tolist() == [0.0] * 3
