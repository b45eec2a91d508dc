"""From settings: how an update is computed, and what of a policy is trained."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from experiments.config_file import UsageError
from experiments.state import Run
from leap_jax import checkpoint, fitting, hosts, lora, sharding, update
from leap_jax.models import attention_choice, transformer
from leap_jax.models.whole_rows import REMAT
from leap_jax.trained import Trained, whole_policy
from leap_jax.types import Bucket, TrainState


@dataclasses.dataclass(frozen=True)
class Training:
  """A policy, split into what is trained and what is not."""

  params: Any  # float32: the whole policy, or adapters
  frozen: Any  # None, or the base in the dtype of computation
  trained: Trained


def kept_dtype(config) -> str:
  """Of the policy's own parameters: masters, or a base that is not trained."""
  return "float32" if config.policy.lora_rank == 0 else config.policy.dtype


def _lora(policy) -> lora.LoraConfig | None:
  if policy.lora_rank == 0:
    return None
  return lora.LoraConfig(
    policy.lora_rank, policy.lora_alpha, tuple(policy.lora_targets)
  )


def trained_of(config) -> Trained:
  """Which part of the policy is trained."""
  adapters = _lora(config.policy)
  if adapters is None:
    return whole_policy(config.policy.dtype)
  return lora.adapted_policy(adapters)


def split_policy(config, model, mesh, params: Any) -> Training:
  """Masters in float32 where they are needed, and each array where it lies.

  Args:
    config: all settings.
    model: of the policy.
    mesh: of the devices.
    params: of the policy. Arrays that are of the dtype of `kept_dtype`, and
      where `sharding` puts them, stay as they are.
  """
  base = sharding.shard_params(
    model, mesh, jax.tree.map(lambda x: x.astype(kept_dtype(config)), params)
  )
  adapters = _lora(config.policy)
  if adapters is None:
    return Training(base, None, trained_of(config))
  key = jax.random.fold_in(jax.random.key(config.seed), 0)
  masters = lora.init(adapters, base, key)
  return Training(
    sharding.shard_params(model, mesh, masters), base, trained_of(config)
  )


def abstract_state(config, model, mesh, tx) -> TrainState:
  """Shapes and places of a run's state; nothing is made.

  Args:
    config: all settings.
    model: of the policy.
    mesh: of the devices.
    tx: optimizer.

  Returns:
    A tree of `jax.ShapeDtypeStruct`.
  """
  adapters = _lora(config.policy)

  def make(key):
    params = transformer.init(model, key)
    if adapters is not None:
      params = lora.init(adapters, params, key)
    return update.init_state(params, tx)

  shapes = jax.eval_shape(make, jax.random.key(0))
  return jax.tree.map(
    lambda x, where: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where),
    shapes,
    sharding.param_shardings(model, mesh, shapes),
  )


def exported(trained: Trained, frozen: Any, state: TrainState) -> Any:
  """Parameters of the policy as they are saved: the masters, unrounded, or the
  base with its adapters merged."""
  if frozen is None:
    return state.params
  return trained.policy(state.params, frozen)


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
  stage: str = "update",
) -> Callable[..., tuple[TrainState, dict[str, jax.Array]]]:
  """The update of a stage of this run: the first way to compute it that fits.

  A run that goes on begins with the way that it had: another one rounds
  differently.

  Args:
    run: remembers the choice in `run.remat`.
    state: of training; only shapes and shardings matter.
    tx: optimizer.
    objective: what is minimised.
    buckets: likewise.
    stage: key of `run.remat`.

  Raises:
    DoesNotFit: none does.
  """
  policy, learner = run.config.policy, run.config.learner
  names = tuple(REMAT) if policy.remat == "auto" else (policy.remat,)
  before = run.remat.get(stage)
  if before in names:
    names = names[names.index(before) :]

  def make(remat):
    execution = sharding.execution(
      run.model,
      run.mesh,
      remat=remat,
      attention=attention_choice.choose(policy.dtype, run.model),
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

  limit_bytes = _limit_bytes((state, buckets, run.frozen))
  compile_first = lambda names: fitting.compile_update(
    make,
    names,
    state,
    buckets,
    frozen=run.frozen,
    limit_bytes=limit_bytes,
    say=run.say,
    advice=_advice(policy.remat),
  )
  fitted = compile_first(names)
  # One process's compiler may have run out of memory: all go on with the way
  # that needs least, by the same program.
  while len(choices := set(hosts.from_all(fitted.choice))) > 1:
    names = names[max(names.index(choice) for choice in choices) :]
    fitted = compile_first(names)
  if before is not None and fitted.choice != before:
    run.say(
      f"warning: policy.remat was `{before}` before this run was stopped and "
      f"is `{fitted.choice}` now: rounding differs from here on"
    )
  run.remat[stage] = fitted.choice
  return fitted


def _limit_bytes(arguments):
  """Of the device that has least, in whichever process: all choose alike."""
  own = fitting.limit_bytes(jax.local_devices()[0], arguments)
  limits = [limit for limit in hosts.from_all(own) if limit is not None]
  return min(limits, default=None)


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
