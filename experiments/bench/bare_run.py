"""A run without a folder: nothing is saved or written."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from experiments import compute, state
from kernels_eval.schema import ProblemCard
from leap_jax import compilations, history
from leap_jax.models.config import ModelConfig


def make(
  config,
  model: ModelConfig,
  mesh: jax.sharding.Mesh,
  training: compute.Training,
  say: Callable[[str], None],
  *,
  compiled: compilations.Compilations | None = None,
  pool: Any = None,
  tokenizer: Any = None,
  train: Sequence[ProblemCard] = (),
) -> state.Run:
  """What the stages share.

  Args:
    config: all settings.
    model: of the policy.
    mesh: of the devices.
    training: what is trained.
    say: told what is chosen.
    compiled: counts compilations.
    pool: of judges, if anything is judged.
    tokenizer: of the policy, if anything is sampled.
    train: problems, likewise.
  """
  return state.Run(
    config=config,
    workdir=None,
    pool=pool,
    writer=None,
    checkpoints=None,
    compiled=compiled or compilations.Compilations(),
    mesh=mesh,
    model=model,
    tokenizer=tokenizer,
    shape=state.rollout_shape(config),
    train=list(train),
    heldout=[],
    num_skipped=0,
    say=say,
    problems=history.History(),
    trained=training.trained,
    frozen=training.frozen,
  )
