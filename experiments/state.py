"""What the stages of a run share, and what a checkpoint holds of it."""

import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import tqdm

from kernels_eval import client
from kernels_eval.schema import ProblemCard
from leap_jax import checkpoint, compilations, history, metrics, sharding
from leap_jax.models import transformer
from leap_jax.tokenizer import Tokenizer
from leap_jax.trained import Trained, whole_policy
from leap_jax.types import Rollouts, RolloutShape, TrainState


class NonFinite(Exception):
  """A loss or gradient is not a number; the run stops."""


@dataclasses.dataclass
class Cost:
  """What a part of a run has used."""

  sampled_tokens: int = 0
  harness_calls: int = 0  # candidates submitted
  kernels_judged: int = 0  # different texts given to a judge


@dataclasses.dataclass
class Progress:
  """What a run has done; saved with every checkpoint as JSON."""

  warm_steps: int = 0
  iterations: int = 0
  before: dict[str, Any] | None = None
  # Held-out results of the policy as it is, if it has been evaluated.
  evaluated: dict[str, Any] | None = None
  seconds: dict[str, float] = dataclasses.field(default_factory=dict)
  training: Cost = dataclasses.field(default_factory=Cost)
  evaluation: Cost = dataclasses.field(default_factory=Cost)
  # Of training:
  training_seconds: float = 0.0  # without compilation
  active_groups: int = 0
  groups: int = 0
  turns: int = 0
  faults: int = 0
  # Held-out evaluations so far: the lines of heldout.jsonl.
  evaluations: list[dict[str, Any]] = dataclasses.field(default_factory=list)
  problems: history.History = dataclasses.field(default_factory=history.History)
  # By stage, the key of whole_rows.REMAT that its update is computed with.
  remat: dict[str, str] = dataclasses.field(default_factory=dict)
  # Commit and hardware of each part of the run (experiments/provenance.py).
  parts: list[dict[str, Any]] = dataclasses.field(default_factory=list)

  @classmethod
  def from_record(cls, record: dict[str, Any]) -> "Progress":
    """From what `dataclasses.asdict` made of it."""
    costs = {name: Cost(**record[name]) for name in ("training", "evaluation")}
    problems = history.History.from_record(record["problems"])
    return cls(**(record | costs | {"problems": problems}))

  def spend(self, stage: str, seconds: float) -> None:
    """Adds time to a stage."""
    self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds


@dataclasses.dataclass
class Run:
  """Everything that the stages share."""

  config: Any
  workdir: pathlib.Path
  pool: client.Pool
  writer: metrics.Writer
  checkpoints: checkpoint.Checkpoints
  compiled: compilations.Compilations
  mesh: jax.sharding.Mesh
  model: transformer.ModelConfig
  tokenizer: Tokenizer
  shape: RolloutShape
  train: list[ProblemCard]
  heldout: list[ProblemCard]
  num_skipped: int  # problems whose prompt does not fit
  say: Callable[[str], None]
  problems: history.History  # that of the run's Progress
  trained: Trained = whole_policy("float32")
  frozen: Any = None  # of the policy, where only a part is trained
  base: dict[str, str] | None = None  # which policy that is; in checkpoints
  # That of the run's Progress.
  remat: dict[str, str] = dataclasses.field(default_factory=dict)

  def bar(self, total: int, text: str, done: int = 0) -> tqdm.tqdm:
    """A progress bar."""
    return tqdm.tqdm(
      total=total, initial=done, desc=text, dynamic_ncols=True, smoothing=0.1
    )


def rollout_shape(config) -> RolloutShape:
  """Sizes from the config."""
  r = config.rollout
  return RolloutShape(
    num_problems=r.num_problems,
    group_size=r.group_size,
    num_turns=r.num_turns,
    max_prompt_tokens=r.max_prompt_tokens,
    max_feedback_tokens=r.max_feedback_tokens,
    max_new_tokens=r.max_new_tokens,
    max_context_tokens=r.max_context_tokens,
    row_buckets=tuple(r.row_buckets),
  )


def save(
  run: Run, state: TrainState, rollouts: Rollouts, progress: Progress
) -> None:
  """Writes a checkpoint of this moment."""
  started = time.perf_counter()
  run.checkpoints.save(
    progress.warm_steps + progress.iterations,
    {"train": state, "rollouts": sharding.replicate(run.mesh, rollouts)},
    dataclasses.asdict(progress) | {"base": run.base},
  )
  progress.spend("checkpoint", time.perf_counter() - started)


def check_finite(values, where):
  """Raises NonFinite if an update's loss or gradient was not a number."""
  if not bool(values["finite"]):
    raise NonFinite(
      f"{where}: loss {float(values['loss'])}, gradient norm "
      f"{float(values['grad_norm'])}; parameters were left as they were"
    )
