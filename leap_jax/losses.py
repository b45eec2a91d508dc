"""Per-token losses and diagnostics, on arrays only. B rows, L tokens.

The log-probability of a token is, everywhere in this project, its logarithm
under the softmax of the logits divided by the sampling temperature, over the
whole vocabulary, in float32. The sampler stores the same quantity, so that the
ratio of a policy to itself is 1.

Sums over tokens are weighted with `mask_weights` made once for the whole batch:
micro-batches only add up, whatever their split.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


def token_logprobs(
  logits: Float[Array, "B L V"],
  targets: Int[Array, "B L"],
  *,
  temperature: float,
) -> Float[Array, "B L"]:
  """log softmax(logits / temperature)[target], in float32."""
  scaled = logits.astype(jnp.float32) / temperature
  chosen = jnp.take_along_axis(scaled, targets[..., None], -1)[..., 0]
  return chosen - jax.nn.logsumexp(scaled, -1)


def entropy(
  logits: Float[Array, "B L V"], *, temperature: float
) -> Float[Array, "B L"]:
  """Entropy of the sampling distribution at each position, in nats."""
  logp = jax.nn.log_softmax(logits.astype(jnp.float32) / temperature, -1)
  return -(jnp.exp(logp) * logp).sum(-1)


class TokenLoss(NamedTuple):
  """Per token, 0 outside of the mask."""

  loss: Float[Array, "B L"]
  clipped: Float[Array, "B L"]  # 1 where the clip took the gradient away
  log_ratio: Float[Array, "B L"]  # before any clamp


# exp of more than this is no ratio that an update should follow, and its
# square still fits into float32.
_MAX_LOG_RATIO = 20.0


def clipped_policy_loss(
  logprobs: Float[Array, "B L"],
  behavior_logprobs: Float[Array, "B L"],
  advantages: Float[Array, "B L"],
  mask: Bool[Array, "B L"],
  *,
  clip_low: float,
  clip_high: float,
) -> TokenLoss:
  """PPO's clipped objective for each token, negated.

      rho = exp(logprob - behavior_logprob)
      loss = -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A)

  (Schulman et al. 2017, eq. 7; separate bounds: DAPO, arXiv 2503.14476.)

  Args:
    logprobs: [B, L] under the parameters being trained.
    behavior_logprobs: [B, L] stored by the sampler; anything outside the mask.
    advantages: [B, L].
    mask: [B, L] True on the policy's own tokens.
    clip_low: e.g. 0.2.
    clip_high: e.g. 0.28.
  """
  # Padding may hold NaN or infinities: replaced before any arithmetic, since
  # 0 * NaN is NaN in the gradient too.
  raw = jnp.where(mask, logprobs, 0.0) - jnp.where(mask, behavior_logprobs, 0.0)
  ratio = jnp.exp(jnp.clip(raw, -_MAX_LOG_RATIO, _MAX_LOG_RATIO))
  a = jnp.where(mask, advantages, 0.0)
  unclipped = ratio * a
  clipped = jnp.clip(ratio, 1.0 - clip_low, 1.0 + clip_high) * a
  return TokenLoss(
    loss=-jnp.where(mask, jnp.minimum(unclipped, clipped), 0.0),
    clipped=jnp.where(mask & (clipped < unclipped), 1.0, 0.0),
    log_ratio=jnp.where(mask, raw, 0.0),
  )


def kl_estimate(
  log_ratio: Float[Array, "B L"], mask: Bool[Array, "B L"]
) -> Float[Array, "B L"]:
  """The k3 estimate exp(r) - 1 - r >= 0 of a KL divergence, for each token.

  Exact near 0 (expm1) and finite, with a finite gradient, for every finite r:
  r is clamped from above (Schulman, "Approximating KL divergence", 2020).

  Args:
    log_ratio: [B, L] reference minus current log-probability.
    mask: [B, L]; masked tokens give exactly 0 whatever they hold.
  """
  r = jnp.where(mask, log_ratio, 0.0)
  r = jnp.clip(r, -1e4, _MAX_LOG_RATIO)
  return jnp.where(mask, jnp.expm1(r) - r, 0.0)


def cross_entropy(
  logprobs: Float[Array, "B L"], mask: Bool[Array, "B L"]
) -> Float[Array, "B L"]:
  """-log p of own tokens, 0 elsewhere (warm start)."""
  return -jnp.where(mask, logprobs, 0.0)


# How a sum over tokens becomes a loss. Each maps the own-token counts of all
# samples of a batch (one sample = one turn) to the weight of each sample's
# tokens; the loss is the weighted sum. Three different objectives: the choice
# is a setting with a name (verl #593).
#
# Samples that come with a count of 0 are in no denominator: which those are is
# a choice of its own, DENOMINATORS. The denominator is logged as
# `update/samples`.


def token_mean(counts, max_tokens: int):
  """Every token weighs the same: 1 / (tokens of samples that count). DAPO.

  DAPO divides by the tokens of all samples.
  """
  del max_tokens
  total = jnp.maximum(counts.sum(), 1)
  return jnp.where(counts > 0, 1.0, 0.0) / total


def sequence_mean(counts, max_tokens: int):
  """Every sample that counts weighs the same, its tokens share: GRPO.

  GRPO divides by all samples of the group.
  """
  del max_tokens
  samples = jnp.maximum((counts > 0).sum(), 1)
  return jnp.where(counts > 0, 1.0 / jnp.maximum(counts, 1), 0.0) / samples


def constant_length(counts, max_tokens: int):
  """Every token weighs 1 / (samples * max_tokens): no length bias. Dr. GRPO.

  `samples` are those that count; Dr. GRPO divides by a constant, all samples
  included.
  """
  samples = jnp.maximum((counts > 0).sum(), 1)
  return jnp.where(counts > 0, 1.0, 0.0) / (samples * max_tokens)


NORMALIZATIONS = {
  "token_mean": token_mean,
  "sequence_mean": sequence_mean,
  "constant_length": constant_length,
}


# Which samples the loss is divided by. Each maps own-token counts, advantages
# and what was judged (all [R, T]) to the counts that a normalization sees.


def with_advantage(counts, advantages, judged):
  """Those that teach something: a batch of few moves as far as one of many.

  The loss is a ratio of two sums that both depend on the draw. It is what
  remains where groups without spread are left out of the batch (DAPO).
  """
  del judged
  return np.where(advantages != 0, counts, 0)


def all_judged(counts, advantages, judged):
  """All: a batch of which little is left to learn from moves less far. GRPO.

  Behind Adam only as far as its second moment remembers larger batches.
  """
  del advantages
  return np.where(judged, counts, 0)


DENOMINATORS = {"with_advantage": with_advantage, "all_judged": all_judged}
