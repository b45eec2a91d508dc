"""The update step: a pure function of (state, batch), compiled once.

Micro-batches are summed inside of the program (a loop with a run-time count, so
that a small batch costs little), with weights that were made for the whole
batch: how rows are split never changes the loss.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from leap_jax import losses
from leap_jax.head import HEADS, TokenStats
from leap_jax.models import attention, transformer, whole_rows
from leap_jax.trained import Trained, whole_policy
from leap_jax.types import Bucket, TrainState


class Sums(NamedTuple):
  """What micro-batches add up. All scalars, float32."""

  loss: jax.Array
  entropy: jax.Array  # weighted like the loss
  weight: jax.Array  # sum of weights
  clipped: jax.Array  # tokens
  kl: jax.Array  # summed over tokens
  abs_log_ratio: jax.Array  # summed over tokens
  max_log_ratio: jax.Array  # maximum of |log ratio|, own tokens
  log_ratio_histogram: jax.Array  # [bins] tokens by |log ratio|
  num_tokens: jax.Array


# Upper edges of the histogram's bins: 20 for each factor of ten.
_EDGES = np.power(10.0, np.arange(-8, 1.05, 0.05))


def _histogram(gap, mask):
  index = jnp.searchsorted(jnp.asarray(_EDGES, jnp.float32), gap.reshape(-1))
  counts = jnp.zeros(len(_EDGES) + 1)
  return counts.at[index].add(mask.reshape(-1).astype(jnp.float32))


def _quantile(histogram, q):
  """Upper edge of the bin that holds the quantile; 0 without tokens.

  Finite: 10 nats stand for whatever is above.
  """
  cumulative = jnp.cumsum(histogram)
  index = jnp.searchsorted(cumulative, q * cumulative[-1])
  edges = jnp.asarray(np.append(_EDGES, _EDGES[-1]), jnp.float32)
  return jnp.where(cumulative[-1] > 0, edges[index], 0.0)


LossFn = Callable[[TokenStats, Bucket], tuple[jax.Array, Sums]]
"""(stats [B, L - 1], micro-batch shifted to its targets) -> loss, sums."""


class Objective(NamedTuple):
  """What is minimised, and the temperature of the log-probabilities in it."""

  temperature: float
  loss_fn: LossFn


def make_policy_loss(
  *, temperature: float, clip_low: float, clip_high: float, kl_coef: float
) -> Objective:
  """Clipped policy gradient on own tokens, with an optional KL to the sampler.

  Args:
    temperature: of sampling.
    clip_low: see losses.clipped_policy_loss.
    clip_high: likewise.
    kl_coef: weight of the k3 estimate of KL(behaviour, current); 0 leaves it a
      metric.
  """

  def loss_fn(stats, micro):
    logprobs = stats.logprobs
    mask = micro.own & (micro.weights > 0)
    token = losses.clipped_policy_loss(
      logprobs,
      micro.behavior_logprobs,
      micro.advantages,
      mask,
      clip_low=clip_low,
      clip_high=clip_high,
    )
    kl = losses.kl_estimate(token.log_ratio, mask)
    loss = (micro.weights * (token.loss + kl_coef * kl)).sum()
    # The maximum looks at every own token that is known, also of turns without
    # advantage.
    own = micro.own & stats.known
    gap = jnp.abs(jnp.where(own, logprobs - micro.behavior_logprobs, 0.0))
    return loss, Sums(
      loss=loss,
      entropy=(micro.weights * jnp.where(mask, stats.entropy, 0.0)).sum(),
      weight=micro.weights.sum(),
      clipped=token.clipped.sum(),
      kl=kl.sum(),
      abs_log_ratio=jnp.where(mask, gap, 0.0).sum(),
      max_log_ratio=gap.max(),
      log_ratio_histogram=_histogram(gap, mask),
      num_tokens=mask.sum().astype(jnp.float32),
    )

  return Objective(temperature, loss_fn)


def _supervised(stats, micro):
  mask = micro.own & (micro.weights > 0)
  loss = (micro.weights * losses.cross_entropy(stats.logprobs, mask)).sum()
  zero = jnp.float32(0)
  return loss, Sums(
    loss=loss,
    entropy=(micro.weights * jnp.where(mask, stats.entropy, 0.0)).sum(),
    weight=micro.weights.sum(),
    clipped=zero,
    kl=zero,
    abs_log_ratio=zero,
    max_log_ratio=zero,
    log_ratio_histogram=jnp.zeros(len(_EDGES) + 1),
    num_tokens=mask.sum().astype(jnp.float32),
  )


# Cross-entropy on own tokens (warm start).
SUPERVISED = Objective(1.0, _supervised)


@dataclasses.dataclass(frozen=True)
class Compute:
  """How gradients are computed. The defaults are a CPU's: exact and plain."""

  execution: whole_rows.Execution = whole_rows.Execution()
  head: str = "whole"  # a key of HEADS
  head_tokens: int = 4096  # positions whose logits exist at once, if chunked
  num_shards: int = 1  # devices that the rows lie on
  trained: Trained = whole_policy("float32")


def init_state(params, tx: optax.GradientTransformation) -> TrainState:
  """A state at step 0."""
  return TrainState(params, tx.init(params), jnp.zeros((), jnp.int32))


def _depending(trained, params):
  """(leaves that depend on what is trained, the others); None elsewhere."""
  names = lambda path: tuple(str(getattr(key, "key", "")) for key in path)
  choose = lambda wanted: jax.tree_util.tree_map_with_path(
    lambda path, x: x if trained.depends(names(path)) == wanted else None,
    params,
  )
  return choose(True), choose(False)


def _joined(a, b):
  return jax.tree.map(
    lambda x, y: y if x is None else x, a, b, is_leaf=lambda x: x is None
  )


def _micro_gradient(config, objective, compute):
  """gradient(depending, others, micro) -> (gradient, sums)."""
  execution = compute.execution
  head = HEADS[compute.head](
    config,
    temperature=objective.temperature,
    chunk_tokens=compute.head_tokens,
    num_shards=compute.num_shards,
  )

  def micro_loss(depending, others, micro):
    params = _joined(depending, others)
    inner = ("blocks", "layers")
    outer = {k: v for k, v in params.items() if k not in inner}
    params = {**params, **execution.place_params(outer)}
    # Position i predicts token i + 1; nothing predicts a row's first token.
    inputs = micro.tokens.shape[1] - 1
    targets = jax.tree.map(lambda x: x[:, 1:], micro._replace(lengths=None))
    # cuDNN wants round lengths: it gets the last token too, for nothing.
    is_fused = execution.attention == attention.CUDNN
    hidden = whole_rows.hidden_states(
      config,
      params,
      micro.tokens if is_fused else micro.tokens[:, :inputs],
      jnp.maximum(micro.lengths, 1),  # padding rows too
      execution,
    )[:, :inputs]
    mask = targets.own & (targets.weights > 0)
    stats = head(params, hidden, targets.tokens, mask)
    return objective.loss_fn(stats, targets)

  return jax.grad(micro_loss, has_aux=True)


def accumulate(
  config: transformer.ModelConfig,
  objective: Objective,
  params: Any,
  buckets: tuple[Bucket, ...],
  *,
  frozen: Any = None,
  compute: Compute = Compute(),  # noqa: B008, frozen
) -> tuple[Any, Sums]:
  """Gradient and sums over all micro-batches of all buckets.

  Args:
    config: sizes of the model.
    objective: of one micro-batch.
    params: what is trained, float32.
    buckets: only the first `num_micro` micro-batches of each are computed.
    frozen: the rest of the model, where only a part is trained.
    compute: precision, memory and layout.

  Returns:
    The gradient with respect to `params`, float32, and the sums.
  """
  trained = compute.trained
  layers = whole_rows.LAYERS[compute.execution.layers]
  gradient = _micro_gradient(config, objective, compute)
  # Cast, merged and arranged once, not in every micro-batch.
  part, pull = jax.vjp(lambda p: trained.materialize(p, frozen), params)
  model_params = layers.arrange(trained.assemble(part, frozen))
  depending, others = _depending(trained, model_params)
  total = jax.tree.map(jnp.zeros_like, params)
  sums = Sums(*(jnp.zeros(()) for _ in Sums._fields))
  sums = sums._replace(log_ratio_histogram=jnp.zeros(len(_EDGES) + 1))
  for bucket in buckets:

    def body(i, carry, bucket=bucket):
      total, sums = carry
      micro = jax.tree.map(lambda x: x[i], bucket._replace(num_micro=None))
      grads, new = gradient(depending, others, micro)
      (grads,) = pull(trained.restrict(layers.restore(grads)))
      added = jax.tree.map(jnp.add, sums, new)
      largest = jnp.maximum(sums.max_log_ratio, new.max_log_ratio)
      return (
        jax.tree.map(jnp.add, total, grads),
        added._replace(max_log_ratio=largest),
      )

    total, sums = jax.lax.fori_loop(0, bucket.num_micro, body, (total, sums))
  return total, sums


def make_update(
  config: transformer.ModelConfig,
  tx: optax.GradientTransformation,
  objective: Objective,
  compute: Compute = Compute(),  # noqa: B008, frozen
) -> Callable[..., tuple[TrainState, dict[str, jax.Array]]]:
  """The update function, not yet compiled.

  Returns:
    update(state, buckets, frozen=None) -> (state, metrics). A gradient that is
    not finite leaves parameters and optimizer untouched; `finite` says so.
  """

  def update(state, buckets, frozen=None):
    grads, sums = accumulate(
      config,
      objective,
      state.params,
      buckets,
      frozen=frozen,
      compute=compute,
    )
    grad_norm = optax.tree.norm(grads)
    finite = jnp.isfinite(grad_norm) & jnp.isfinite(sums.loss)
    updates, opt_state = tx.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    stepped = TrainState(params, opt_state, state.step + 1)
    new_state = jax.tree.map(
      lambda new, old: jnp.where(finite, new, old), stepped, state
    )
    tokens = jnp.maximum(sums.num_tokens, 1.0)
    moved = jax.tree.map(
      lambda a, b: (a != b).any(), new_state.params, state.params
    )
    metrics = {
      "loss": sums.loss,
      "entropy": sums.entropy / jnp.maximum(sums.weight, 1e-20),
      "grad_norm": grad_norm,
      "update_norm": optax.tree.norm(updates),
      "weight_norm": optax.tree.norm(state.params),
      "clip_fraction": sums.clipped / tokens,
      "kl": sums.kl / tokens,
      "log_ratio_mean": sums.abs_log_ratio / tokens,
      "log_ratio_p95": _quantile(sums.log_ratio_histogram, 0.95),
      "log_ratio_max": sums.max_log_ratio,
      "num_tokens": sums.num_tokens,
      "finite": finite,
      "changed": jnp.stack(jax.tree.leaves(moved)).any(),
    }
    return new_state, metrics

  return update
