"""From settings: how an update is computed, and what of a policy is trained."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from experiments.config_file import UsageError
from experiments.state import Run
from leap_jax import checkpoint, fitting, lora, sharding, update
from leap_jax.models import attention
from leap_jax.models.whole_rows import REMAT
from leap_jax.trained import Trained, whole_policy
from leap_jax.types import Bucket, TrainState


@dataclasses.dataclass(frozen=True)
class Training:
  """A policy, split into what is trained and what is not."""

  params: Any  # float32: the whole policy, or adapters
  frozen: Any  # None, or the base in the dtype of computation
  trained: Trained


def split_policy(config, model, mesh, params: Any) -> Training:
  """Masters in float32 where they are needed, and each array where it lies.

  Args:
    config: all settings.
    model: of the policy.
    mesh: of the devices.
    params: of the policy, as they were loaded.
  """
  policy = config.policy
  cast = lambda tree, dtype: jax.tree.map(lambda x: x.astype(dtype), tree)
  if policy.lora_rank == 0:
    masters = sharding.shard_params(model, mesh, cast(params, "float32"))
    return Training(masters, None, whole_policy(policy.dtype))
  settings = lora.LoraConfig(
    policy.lora_rank, policy.lora_alpha, tuple(policy.lora_targets)
  )
  base = sharding.shard_params(model, mesh, cast(params, policy.dtype))
  key = jax.random.fold_in(jax.random.key(config.seed), 0)
  adapters = lora.init(settings, base, key)
  return Training(
    sharding.shard_params(model, mesh, adapters),
    base,
    lora.adapted_policy(settings),
  )


def exported(training: Training, state: TrainState) -> Any:
  """Parameters of the policy as they are saved: the masters, unrounded, or the
  base with its adapters merged."""
  if training.frozen is None:
    return state.params
  return training.trained.policy(state.params, training.frozen)


def base_record(config, frozen: Any) -> dict[str, str] | None:
  """What a checkpoint of adapters says about the policy below them."""
  if frozen is None:
    return None
  return {
    "source": config.policy.source,
    "sha256": checkpoint.digest(frozen),
  }


def check_base(base: dict | None, saved: dict | None) -> None:
  """Adapters go on from the policy that they were trained on, or not at all.

  Raises:
    UsageError: the base is another one.
  """
  if base == saved:
    return
  name = lambda record: "no adapters" if record is None else record["source"]
  raise UsageError(
    f"the checkpoint was made on {name(saved)}, this run has {name(base)} with "
    "other weights; use the same config.policy settings or another --workdir"
  )


def _advice(remat):
  """What to do where no way to compute the update fits."""
  fewer = "lower config.learner.micro_tokens"
  if remat in ("auto", "block"):
    return fewer
  return f"set config.policy.remat=auto (it is {remat}), or {fewer}"


def compile_update(
  run: Run,
  state: TrainState,
  tx,
  objective: update.Objective,
  buckets: tuple[Bucket, ...],
) -> Callable[..., tuple[TrainState, dict[str, jax.Array]]]:
  """The update of this run: the first way to compute it that fits.

  Raises:
    DoesNotFit: none does.
  """
  policy, learner = run.config.policy, run.config.learner
  names = tuple(REMAT) if policy.remat == "auto" else (policy.remat,)

  def make(remat):
    execution = sharding.execution(
      run.model,
      run.mesh,
      remat=remat,
      attention=attention.choose(policy.dtype, run.model),
      layers=policy.layers,
    )
    compute = update.Compute(
      execution=execution,
      head=learner.head,
      head_tokens=learner.head_tokens,
      num_shards=run.mesh.shape[sharding.DATA],
      trained=run.trained,
    )
    return update.make_update(run.model, tx, objective, compute)

  return fitting.compile_update(
    make,
    names,
    state,
    buckets,
    frozen=run.frozen,
    limit_bytes=fitting.limit_bytes(
      jax.local_devices()[0], (state, buckets, run.frozen)
    ),
    say=run.say,
    advice=_advice(policy.remat),
  )


def compile_policy(run: Run, state: TrainState) -> Callable[[TrainState], Any]:
  """policy(state): what the sampler and the export use; made once an iteration.

  Where the policy is trained as it is computed these are its own arrays.
  """
  abstract = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
    (state.params, run.frozen),
  )
  made = jax.eval_shape(run.trained.policy, *abstract)
  if run.frozen is None and jax.tree.map(
    lambda x: x.dtype, made
  ) == jax.tree.map(lambda x: x.dtype, state.params):
    return lambda state: state.params
  program = (
    jax.jit(
      run.trained.policy,
      out_shardings=sharding.param_shardings(run.model, run.mesh, made),
    )
    .lower(*abstract)
    .compile()
  )
  return lambda state: program(state.params, run.frozen)
