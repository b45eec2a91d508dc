"""The update: tokens a second and model FLOP utilisation.

Random weights of `policy.size`; rows as three turns leave them: a prompt of
about 300 tokens, then three answers of about 150 with feedback of about 100
between them, own tokens the answers'. One update of all rows of a rollout is
timed, until its metrics are on the host.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tqdm

from experiments import compute, memory_check, programs, state
from experiments.bench import bare_run, flops, peaks, record
from experiments.bench.sampler import model_of
from leap_jax import batching, compilations, fitting, sharding, update
from leap_jax.models import attention_choice, transformer
from leap_jax.models.config import ModelConfig
from leap_jax.types import Bucket, TrainState

_PROMPT, _ANSWER, _FEEDBACK = 300, 150, 100
_SPREAD = 0.15  # standard deviation of a part, as a share of its mean


def turn_rows(
  num_rows: int, longest: int, vocab_size: int, seed: int
) -> list[batching.Row]:
  """Rows of three turns with random ids, cut at `longest` tokens."""
  rng = np.random.default_rng(seed)
  scale = min(longest / 1024, 1.0)
  rows = []
  for _ in range(num_rows):
    own = []
    for mean, is_own in (
      (_PROMPT, False),
      (_ANSWER, True),
      (_FEEDBACK, False),
      (_ANSWER, True),
      (_FEEDBACK, False),
      (_ANSWER, True),
    ):
      count = max(int(rng.normal(mean, _SPREAD * mean) * scale), 1)
      own += [is_own] * count
    own = np.asarray(own[:longest])
    tokens = rng.integers(3, vocab_size, len(own)).astype(np.int32)
    advantage = np.where(own, rng.normal(), 0).astype(np.float32)
    # About what a random policy says; the ratio stays near 1.
    logprobs = np.where(own, -np.log(vocab_size), 0).astype(np.float32)
    weights = own.astype(np.float32) / (num_rows * 3 * _ANSWER)
    rows.append(batching.Row(tokens, own, weights, advantage, logprobs))
  return rows


def _packed(config, mesh, num_ids):
  """(rows, buckets on the devices, computed tokens)."""
  learner, rollout = config.learner, config.rollout
  num_rows = rollout.num_problems * rollout.group_size
  rows = turn_rows(num_rows, learner.bucket_tokens[-1], num_ids, config.seed)
  specs = batching.bucket_specs(
    learner.bucket_tokens, learner.micro_tokens, mesh.shape[sharding.DATA]
  )
  buckets, computed = batching.pack_rows(rows, specs, num_rows)
  return rows, tuple(sharding.shard_rows(mesh, b) for b in buckets), computed


@dataclasses.dataclass
class Prepared:
  """A compiled update and what it is measured on."""

  config: Any
  model: ModelConfig
  mesh: jax.sharding.Mesh
  training: compute.Training
  rows: list[batching.Row]
  buckets: tuple[Bucket, ...]
  computed_tokens: int
  num_params: int
  num_block_params: int
  step: fitting.Fitted
  compile_seconds: float


def random_training(config, model, mesh) -> compute.Training:
  """Random parameters, made where they lie."""
  init = lambda key: transformer.init(model, key)
  abstract = jax.eval_shape(init, jax.random.key(0))
  make = jax.jit(
    init, out_shardings=sharding.param_shardings(model, mesh, abstract)
  )
  params = make(jax.random.key(config.seed))
  return compute.split_policy(config, model, mesh, params)


def prepare(
  config, mesh: jax.sharding.Mesh, say: Callable[[str], None]
) -> tuple[Prepared, TrainState]:
  """Compiles.

  Args:
    config: of the run.
    mesh: of the devices.
    say: told what memory is needed, and which way to compute the update fits.

  Raises:
    UsageError: it needs more memory than there is.
  """
  model = model_of(config)
  say(memory_check.check(config, model, part=memory_check.update_alone))
  training = random_training(config, model, mesh)
  whole = training.params if training.frozen is None else training.frozen
  tx = programs.make_optimizer(config)
  train_state = sharding.shard_params(
    model, mesh, update.init_state(training.params, tx)
  )
  rows, buckets, computed = _packed(config, mesh, model.num_ids)
  started = time.perf_counter()
  step = programs.compile_update(
    bare_run.make(config, model, mesh, training, say), train_state, buckets
  )
  prepared = Prepared(
    config=config,
    model=model,
    mesh=mesh,
    training=dataclasses.replace(training, params=None),
    rows=rows,
    buckets=buckets,
    computed_tokens=computed,
    num_params=transformer.num_params(whole),
    num_block_params=flops.block_params(whole),
    step=step,
    compile_seconds=time.perf_counter() - started,
  )
  return prepared, train_state


def timed(
  prepared: Prepared, train_state: TrainState, repeats: int
) -> dict[str, Any]:
  """Runs updates, one that does not count and `repeats` that do.

  Returns:
    A record for `record.write`. `mfu` counts the head for every token, by the
    usual convention; `mfu_needed` only for those whose logits the loss needs.
    Both are of `peaks.flops`, and None where there is none.
  """
  config, rows = prepared.config, prepared.rows
  seconds = []
  with compilations.counted() as compiled:
    for _ in range(repeats + 1):
      started = time.perf_counter()
      train_state, values = prepared.step(train_state, prepared.buckets)
      values = jax.device_get(values)
      seconds.append(time.perf_counter() - started)
  state.check_finite(values, "the update of random rows")
  lengths = np.asarray([len(row.tokens) for row in rows])
  num_tokens = int(lengths.sum())
  own_tokens = int(sum(row.own.sum() for row in rows))
  middle = statistics.median(seconds[1:])
  device = prepared.mesh.devices.flat[0]
  peak = peaks.flops(device, config.policy.dtype)

  def utilisation(head_tokens):
    done = flops.update_flops(
      prepared.model, prepared.num_block_params, lengths, head_tokens
    )
    # Adapters: no gradient of what is frozen, so the formula does not hold.
    if config.policy.lora_rank:
      return None
    return peaks.share(done / prepared.mesh.size, middle, peak)

  return {
    "kind": "update",
    "model": config.policy.size,
    "num_params": prepared.num_params,
    "batch": len(rows),
    "row_tokens": int(config.learner.bucket_tokens[-1]),
    "micro_tokens": config.learner.micro_tokens,
    "devices": prepared.mesh.size,
    "model_devices": config.run.model_devices,
    "dtype": config.policy.dtype,
    "attention": attention_choice.choose(config.policy.dtype, prepared.model),
    "remat": prepared.step.choice,
    "layers": config.policy.layers,
    "lora_rank": config.policy.lora_rank,
    "seconds": middle,
    "seconds_all": seconds[1:],
    "tokens": num_tokens,
    "own_token_fraction": own_tokens / num_tokens,
    "padding_fraction": 1 - num_tokens / prepared.computed_tokens,
    "tokens_per_second": num_tokens / middle,
    "mfu": utilisation(num_tokens),
    "mfu_needed": utilisation(own_tokens),
    "peak_flops": peak,
    "loss": float(values["loss"]),
    "grad_norm": float(values["grad_norm"]),
    "peak_memory_gib": record.peak_memory_gib(),
    "program_gib": prepared.step.peak_bytes / 2**30,
    "compilations": compiled.count,
    "compile_seconds": prepared.compile_seconds,
  }


def measure(config, repeats: int) -> dict[str, Any]:
  """Compiles and measures.

  Args:
    config: of the run.
    repeats: updates that count.

  Returns:
    See `timed`.
  """
  mesh = sharding.make_mesh(config.run.model_devices)
  prepared, train_state = prepare(config, mesh, tqdm.tqdm.write)
  return timed(prepared, train_state, repeats)
