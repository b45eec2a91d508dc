"""When a run has had what it was given."""


def is_spent(
  iterations: int,
  training_s: float,
  *,
  num_iterations: int,
  max_training_s: float | None,
) -> bool:
  """Whether no further iteration is to begin.

  Args:
    iterations: done.
    training_s: used so far: no held-out evaluation, no compilation.
    num_iterations: config.run.num_iterations.
    max_training_s: config.run.max_training_s; None = no limit.
  """
  is_over = max_training_s is not None and training_s >= max_training_s
  return iterations >= num_iterations or is_over
