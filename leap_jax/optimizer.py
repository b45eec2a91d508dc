"""Settings to an optax chain."""

import optax


def make_optimizer(
  *,
  learning_rate: float,
  warmup_steps: int,
  total_steps: int | None,
  final_fraction: float,
  max_grad_norm: float,
  weight_decay: float,
  b1: float,
  b2: float,
) -> optax.GradientTransformation:
  """AdamW behind a global-norm clip.

  Args:
    learning_rate: peak.
    warmup_steps: linear from 0; 0 starts at the peak.
    total_steps: of a cosine decay to `final_fraction` of the peak; None keeps
      the rate constant.
    final_fraction: see above.
    max_grad_norm: global-norm clip.
    weight_decay: decoupled.
    b1: first moment.
    b2: second moment.
  """
  if total_steps is None:
    after = optax.constant_schedule(learning_rate)
  else:
    after = optax.cosine_decay_schedule(
      learning_rate, max(total_steps - warmup_steps, 1), final_fraction
    )
  schedule = after
  if warmup_steps:
    schedule = optax.join_schedules(
      [optax.linear_schedule(0.0, learning_rate, warmup_steps), after],
      [warmup_steps],
    )
  return optax.chain(
    optax.clip_by_global_norm(max_grad_norm),
    optax.adamw(schedule, b1=b1, b2=b2, weight_decay=weight_decay),
  )
