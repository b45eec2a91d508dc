"""What a run starts from: a policy, or the checkpoint of an earlier start."""

import functools
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from experiments import (
  cold_start,
  compute,
  memory_check,
  policies,
  problem_sets,
  programs,
  provenance,
  state,
  workdir,
)
from experiments.config_file import UsageError
from leap_jax import buffer, checkpoint, hosts, sharding, update
from leap_jax import tokenizer as tokenizer_lib
from leap_jax.models import sizes, transformer
from leap_jax.policy_source import OpenPolicy
from leap_jax.tokenizer import Tokenizer
from leap_jax.types import Message, Rollouts, TrainState


class Chosen(NamedTuple):
  """What a run knows before any judge works."""

  policy: OpenPolicy | None  # None: random, with a vocabulary yet to be learned
  names: tuple[list[str], list[str]]  # of problem_sets.names
  cards: problem_sets.Cards | None  # None: as long as there is no vocabulary
  seconds: float  # that it took


class Source(NamedTuple):
  """A policy; none of its weights has been read or made."""

  model: transformer.ModelConfig
  tokenizer: Tokenizer
  read: Callable[[jax.sharding.Mesh], Any]  # -> parameters
  # Of the warm start: judged when they are asked for, and once.
  conversations: Callable[[], Sequence[Sequence[Message]]]


class Begun(NamedTuple):
  """Where a run stands when it begins."""

  progress: state.Progress
  train: TrainState
  rollouts: Rollouts
  frozen: Any  # of the policy, where only a part is trained
  base: dict[str, str] | None  # compute.base_record


def choose(config, say: Callable[[str], None]) -> Chosen:
  """Opens the policy and chooses the problems, if the run fits.

  Reads no weights and needs no judges, whose start takes seconds: what is wrong
  with a policy is answered before. All processes of a run call this.

  Args:
    config: all settings.
    say: told what was chosen in the policy, and what memory is needed.

  Raises:
    PolicyError: the policy cannot be used.
    UsageError: the settings do not suit it, or there is too little memory.
  """
  started = time.perf_counter()
  if config.policy.source == "random":
    about = sizes.model_config(config.policy.size, config.policy.vocab_size)
    policies.check_context(config, about)
    say(memory_check.check(config, about))
    names = problem_sets.names(config)
    return Chosen(None, names, None, time.perf_counter() - started)
  opened = policies.open_source(config)
  for note in opened.notes:
    say(note)
  say(memory_check.check(config, opened.config))
  names = problem_sets.names(config)
  cards = problem_sets.for_run(
    config, names, opened.tokenizer, state.rollout_shape(config)
  )
  return Chosen(opened, names, cards, time.perf_counter() - started)


def open_policy(
  config, chosen: Chosen, folder: pathlib.Path, pool: Any
) -> Source:
  """The policy to start from.

  All processes of a run call this.

  Args:
    config: all settings.
    chosen: of `choose`.
    folder: of the run; all processes see it.
    pool: judges the warm start's conversations.
  """
  train_names, _ = chosen.names
  conversations = functools.cache(
    lambda: cold_start.for_run(config, folder, train_names, pool)
  )
  if chosen.policy is not None:
    opened = chosen.policy
    read = functools.partial(policies.read, config, opened)
    return Source(opened.config, opened.tokenizer, read, conversations)
  vocabulary = _vocabulary(config, folder, conversations)
  model = sizes.model_config(config.policy.size, vocabulary.vocab_size)
  make = lambda mesh: transformer.init(model, jax.random.key(config.seed))
  return Source(model, vocabulary, make, conversations)


def _vocabulary(config, folder, conversations):
  """That of an earlier start, or one learned from the conversations."""
  path = folder / "tokenizer.json"
  # One process decides: the others may see a new file late.
  if not hosts.from_first(hosts.is_first() and path.exists()):
    texts = [message.text for turns in conversations() for message in turns]
    learned = tokenizer_lib.train(texts, config.policy.vocab_size)
    if hosts.is_first():
      learned.save(path)
    hosts.from_first(None)  # the others wait until it is there
  return tokenizer_lib.load(path)


def fresh_state(config, model, mesh, params: Any) -> TrainState:
  """At step 0, with the iterations' optimizer; given away by the first update.

  Args:
    config: all settings.
    model: of the policy.
    mesh: of the devices.
    params: masters, of the policy or of adapters.
  """
  tx = programs.make_optimizer(config)
  return sharding.shard_params(model, mesh, update.init_state(params, tx))


def begin(
  config,
  source: Source,
  mesh: jax.sharding.Mesh,
  folder: pathlib.Path,
  checkpoints: checkpoint.Checkpoints,
  say: Callable[[str], None],
) -> Begun:
  """The newest checkpoint, or else the policy.

  Weights that a checkpoint holds are not read from the policy: nothing but the
  state is on the devices.

  Args:
    config: all settings.
    source: of `open_policy`.
    mesh: of the devices.
    folder: of the run.
    checkpoints: of the run.
    say: told where the run goes on.

  Raises:
    UsageError: the folder holds a finished run that cannot go on, or the
      checkpoint was made on another policy.
    CheckpointError: there are checkpoints, and none is usable.
  """
  model, tx = source.model, programs.make_optimizer(config)
  init_buffer = lambda: buffer.init(state.rollout_shape(config))
  everywhere = sharding.replicated(mesh)
  restored = checkpoints.restore_latest(
    {
      "train": compute.abstract_state(config, model, mesh, tx),
      "rollouts": jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=everywhere),
        jax.eval_shape(init_buffer),
      ),
    }
  )
  if restored is None and workdir.outcome(folder) is not None:
    raise UsageError(
      f"{folder} holds results but no checkpoint to go on from; use another "
      "--workdir"
    )
  training = None
  if restored is None or config.policy.lora_rank > 0:
    training = compute.split_policy(config, model, mesh, source.read(mesh))
  frozen = None if training is None else training.frozen
  base = compute.base_record(config, frozen)
  if restored is None:
    train = fresh_state(config, model, mesh, training.params)
    empty = sharding.replicate(mesh, init_buffer())
    progress = state.Progress(parts=provenance.continued((), 0))
    return Begun(progress, train, empty, frozen, base)
  step, saved, record = restored
  compute.check_base(base, record.pop("base", None))
  progress = state.Progress.from_record(record)
  progress.parts = provenance.continued(progress.parts, step)
  say(
    f"resuming from checkpoint {step}: {progress.warm_steps} warm-start steps, "
    f"{progress.iterations} iterations done"
  )
  return Begun(progress, saved["train"], saved["rollouts"], frozen, base)
