"""The update: tokens a second and model FLOP utilisation.

Random weights of `policy.size`; rows as three turns leave them: a prompt of
about 300 tokens, then three answers of about 150 with feedback of about 100
between them, own tokens the answers'. One update of all rows of a rollout is
timed, until its metrics are on the host.
"""

import statistics
import time
from typing import Any

import jax
import numpy as np
import tqdm

from experiments import compute, programs, state
from experiments.bench import flops, record
from experiments.bench.sampler import model_of
from leap_jax import batching, compilations, sharding, update
from leap_jax.models import attention, transformer

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


def random_training(config, model, mesh) -> compute.Training:
  """Random parameters, made where they lie."""
  abstract = jax.eval_shape(
    lambda key: transformer.init(model, key), jax.random.key(0)
  )
  make = jax.jit(
    lambda key: transformer.init(model, key),
    out_shardings=sharding.param_shardings(model, mesh, abstract),
  )
  params = make(jax.random.key(config.seed))
  return compute.split_policy(config, model, mesh, params)


def bench_run(config, model, mesh, training, say) -> state.Run:
  """What `compute` needs of a run; nothing is sampled, judged or saved."""
  return state.Run(
    config=config,
    workdir=None,
    pool=None,
    writer=None,
    checkpoints=None,
    compiled=compilations.Compilations(),
    mesh=mesh,
    model=model,
    tokenizer=None,
    shape=state.rollout_shape(config),
    train=[],
    heldout=[],
    num_skipped=0,
    say=say,
    trained=training.trained,
    frozen=training.frozen,
  )


def _packed(config, mesh, num_ids):
  """(rows, specs, buckets on the devices, computed tokens)."""
  learner, rollout = config.learner, config.rollout
  num_rows = rollout.num_problems * rollout.group_size
  rows = turn_rows(num_rows, learner.bucket_tokens[-1], num_ids, config.seed)
  specs = batching.bucket_specs(
    learner.bucket_tokens, learner.micro_tokens, mesh.shape[sharding.DATA]
  )
  buckets, computed = batching.pack_rows(rows, specs, num_rows)
  return rows, tuple(sharding.shard_rows(mesh, b) for b in buckets), computed


def measure(config, repeats: int) -> dict[str, Any]:
  """Compiles and measures.

  Args:
    config: of the run.
    repeats: updates that count, after one that does not.

  Returns:
    A record for `record.write`. `mfu` counts the head for every token, by the
    usual convention; `mfu_needed` only for those whose logits the loss needs.
  """
  model = model_of(config)
  mesh = sharding.make_mesh(config.run.model_devices)
  training = random_training(config, model, mesh)
  whole = training.params if training.frozen is None else training.frozen
  num_params = transformer.num_params(whole)
  num_block_params = flops.block_params(whole)
  tx = programs.make_optimizer(config)
  train_state = sharding.shard_params(
    model, mesh, update.init_state(training.params, tx)
  )
  run = bench_run(config, model, mesh, training, tqdm.tqdm.write)
  rows, buckets, computed = _packed(config, mesh, model.num_ids)
  started = time.perf_counter()
  step = compute.compile_update(
    run,
    train_state,
    tx,
    update.make_policy_loss(
      temperature=config.rollout.temperature,
      clip_low=config.learner.clip_low,
      clip_high=config.learner.clip_high,
      kl_coef=config.learner.kl_coef,
    ),
    buckets,
  )
  compile_seconds = time.perf_counter() - started
  del training, whole
  seconds = []
  with compilations.counted() as compiled:
    for _ in tqdm.tqdm(range(repeats + 1), desc="update", unit="update"):
      started = time.perf_counter()
      train_state, values = step(train_state, buckets)
      values = jax.device_get(values)
      seconds.append(time.perf_counter() - started)
  if not bool(values["finite"]):
    raise FloatingPointError("the update's loss or gradient is not finite")
  lengths = np.asarray([len(row.tokens) for row in rows])
  own_tokens = int(sum(row.own.sum() for row in rows))
  middle = statistics.median(seconds[1:])
  peak = flops.PEAK_FLOPS * mesh.size
  of = lambda head_tokens: (
    flops.update_flops(model, num_block_params, lengths, head_tokens)
    / middle
    / peak
  )
  # LoRA computes no gradient of what is frozen: the formula does not hold.
  is_whole = config.policy.lora_rank == 0
  return {
    "kind": "update",
    "model": config.policy.size,
    "num_params": num_params,
    "batch": len(rows),
    "row_tokens": int(config.learner.bucket_tokens[-1]),
    "micro_tokens": config.learner.micro_tokens,
    "devices": mesh.size,
    "model_devices": config.run.model_devices,
    "dtype": config.policy.dtype,
    "attention": attention.choose(config.policy.dtype),
    "remat": step.choice,
    "lora_rank": config.policy.lora_rank,
    "seconds": middle,
    "seconds_all": seconds[1:],
    "tokens": int(lengths.sum()),
    "own_token_fraction": own_tokens / int(lengths.sum()),
    "padding_fraction": 1 - int(lengths.sum()) / computed,
    "tokens_per_second": int(lengths.sum()) / middle,
    "mfu": of(lengths.sum()) if is_whole else None,
    "mfu_needed": of(own_tokens) if is_whole else None,
    "peak_flops": flops.PEAK_FLOPS,
    "peak_memory_gib": record.peak_memory_gib(),
    "program_gib": step.peak_bytes / 2**30,
    "compilations": compiled.count,
    "compile_seconds": compile_seconds,
  }
