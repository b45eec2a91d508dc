"""What an iteration computes of outcomes, once with an empty buffer.

Gate, advantages and weights are small functions that JAX compiles when they
first meet arrays of their shapes. That is here, and in no iteration.
"""

import jax
import numpy as np

from experiments.programs import Programs
from experiments.state import Run
from leap_jax import batching, dcp, losses, outcomes


def rehearse(run: Run, programs: Programs) -> None:
  """Leaves nothing behind but what has been compiled."""
  learner = run.config.learner
  rollouts = programs.buffer.init()
  host = jax.device_get(rollouts)
  programs.method.gate(
    jax.random.fold_in(jax.random.key(0), 0),
    np.ones(run.shape.num_problems, np.float32),
    host.correct[..., 0],
    host.ok,
  )
  advantages = programs.method.advantage(outcomes.make(rollouts, ()))
  dcp.solved_at(rollouts.correct, rollouts.executed)
  batching.make_batch(
    host,
    np.asarray(advantages),
    programs.specs,
    normalization=losses.NORMALIZATIONS[learner.normalization],
    denominator=losses.DENOMINATORS[learner.denominator],
    max_new_tokens=run.shape.max_new_tokens,
  )
