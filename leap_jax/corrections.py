"""Corrections for a sampler that is not the trainer: weights of tokens.

Sampler and trainer compute log-probabilities by different programs (another
precision, another batch), and from the second pass on the trainer has moved.
`losses.clipped_policy_loss` takes its ratio from the sampler's own
log-probabilities, so the importance weight

    rho = exp(log pi_train - log pi_sampler)

is in the loss already, untruncated where the clip does not bind. A correction
multiplies each token's weight in the loss; it is a constant in the gradient.
What is left out stays in the denominators: a batch of which half is rejected
makes half a step.

B rows, L tokens. A sequence is a turn: a run of own tokens in a row.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from leap_jax.types import Bucket

# A row begins with context: turns are 1, 2, ...; settings allow 16.
_MOST_TURNS = 16

Correction = Callable[[jax.Array, jax.Array], jax.Array]
"""(log_ratio [B, L], own [B, L]) -> weight [B, L] in [0, 1]"""


def no_correction(
  log_ratio: Float[Array, "B L"], own: Bool[Array, "B L"]
) -> Float[Array, "B L"]:
  """Every token counts as it is."""
  del own
  return jnp.ones_like(log_ratio)


def truncated_importance(
  log_ratio: Float[Array, "B L"],
  own: Bool[Array, "B L"],
  *,
  most: float = 2.0,
) -> Float[Array, "B L"]:
  """Token-level truncated importance sampling: rho becomes min(rho, C).

      w = min(1, C / rho)

  C = 2 as in Tunix and TRL. Above the upper clip a token with A > 0 has no
  gradient anyway: it is those with A < 0 that this bounds.
  """
  return jnp.where(own, jnp.exp(jnp.minimum(jnp.log(most) - log_ratio, 0)), 0.0)


def geometric_mask(
  log_ratio: Float[Array, "B L"],
  own: Bool[Array, "B L"],
  *,
  low: float = 0.999,
  high: float = 1.001,
  veto: float = 1e-4,
) -> Float[Array, "B L"]:
  """Dr. Kernel's rejection of mismatched sequences (arXiv 2602.05885).

      w = [low <= exp(mean_t log rho_t) <= high] * [min_t rho_t >= veto]

  the mean over a turn's own tokens; 1 or 0 for all of them.
  """
  mean = _turn_means(log_ratio, own)
  good = (mean >= jnp.log(low)) & (mean <= jnp.log(high))
  vetoed = _turn_means(jnp.where(log_ratio < jnp.log(veto), 1.0, 0.0), own) > 0
  return jnp.where(own & good & ~vetoed, 1.0, 0.0)


def mirror_pop(
  log_ratio: Float[Array, "B L"], own: Bool[Array, "B L"], *, delta: float
) -> Float[Array, "B L"]:
  """MusaCoder's MirrorPop (arXiv 2606.04847).

      w = [mean_t |log rho_t| <= delta]

  Absolute values: deviations of both signs do not cancel. The paper's delta is
  not published.
  """
  mean = _turn_means(jnp.abs(log_ratio), own)
  return jnp.where(own & (mean <= delta), 1.0, 0.0)


def _turn_means(values, own):
  """[B, L]: at each own token the mean over its turn's own tokens."""
  before = jnp.pad(own[:, :-1], ((0, 0), (1, 0)))
  turn = jnp.cumsum((own & ~before).astype(jnp.int32), -1)
  member = jax.nn.one_hot(turn, _MOST_TURNS + 1) * own[..., None]
  total = jnp.einsum("blt,bl->bt", member, jnp.where(own, values, 0.0))
  count = jnp.maximum(member.sum(1), 1.0)
  return jnp.take_along_axis(total / count, turn, -1)


CORRECTIONS = {
  "none": lambda delta: no_correction,
  "tis": lambda delta: truncated_importance,
  "geometric_mask": lambda delta: geometric_mask,
  "mirror_pop": lambda delta: lambda r, own: mirror_pop(r, own, delta=delta),
}
"""MirrorPop's delta -> Correction"""


def corrected(
  loss_fn: Callable[[Any, Bucket], Any],
  correction: Correction,
  logprobs_of: Callable[[Any, Bucket], jax.Array],
) -> Callable[[Any, Bucket], Any]:
  """A loss of `update` whose tokens are weighted by a correction.

  Args:
    loss_fn: (outputs of the model, micro-batch shifted to its targets) -> any.
    correction: of CORRECTIONS.
    logprobs_of: (the same outputs, micro-batch) -> [B, L] of its tokens.
  """

  def loss(outputs, micro):
    logprobs = jax.lax.stop_gradient(logprobs_of(outputs, micro))
    log_ratio = jnp.where(micro.own, logprobs - micro.behavior_logprobs, 0.0)
    weight = correction(log_ratio, micro.own)
    return loss_fn(outputs, micro._replace(weights=micro.weights * weight))

  return loss
