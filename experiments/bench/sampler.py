"""Decoding: tokens a second, share of the bandwidth roofline, useful slots.

Two measurements with random weights of `policy.size`: all answers of full
length, for the roofline (experiments/bench/roofline.py); and lengths drawn from
a lognormal distribution, for the slots. Where there are more rows than slots
(`config.sampler.max_slots`), rows wait, and take the slots of those that end.

One device works, however many there are: each samples its own problems and
waits for no other, so that more devices are more of the same.

A process never gives back its most memory: where several ways to keep prompts
are measured, the one that takes less comes first (`own` after `shared`).
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import tqdm

from experiments import memory_check, policies, programs, state
from experiments.bench import peaks, record, roofline
from experiments.config_file import UsageError
from leap_jax import compilations, sampler
from leap_jax.models import sizes, transformer

_LOG_SPREAD = 0.6  # standard deviation of log length
_MEDIAN = 0.4  # of the lengths, as a share of the longest

PROMPTS = ("shared", "own")  # who keeps a prompt's keys and values


def model_of(config):
  """The decoder that `policy.size` names.

  Raises:
    UsageError: the rollout is longer than its context.
  """
  policy = config.policy
  own = "vocab_size" not in sizes.SIZES[policy.size]
  model = sizes.model_config(policy.size, policy.vocab_size if own else None)
  policies.check_context(config, model)
  return model


def random_params(model, dtype, seed: int):
  """Random parameters, made on the device."""

  def make(key):
    params = transformer.init(model, key)
    return jax.tree.map(lambda x: x.astype(dtype), params)

  return jax.jit(make)(jax.random.key(seed))


def drawn_lengths(count: int, longest: int, seed: int) -> np.ndarray:
  """[count] answer lengths, lognormal and cut at `longest`."""
  rng = np.random.default_rng(seed)
  drawn = rng.lognormal(np.log(_MEDIAN * longest), _LOG_SPREAD, count)
  return np.clip(drawn, 1, longest).astype(np.int32)


def prompts_of(shape, vocab_size: int, seed: int):
  """Random prompts, all of full length: [P, T], [P]."""
  rng = np.random.default_rng(seed)
  size = (shape.num_problems, shape.max_prompt_tokens)
  tokens = rng.integers(3, vocab_size, size).astype(np.int32)
  return tokens, np.full(size[0], size[1], np.int32)


def num_slots(config) -> int:
  """Rows that decode at once at most."""
  rollout = config.rollout
  rows = rollout.num_problems * rollout.group_size
  return min(config.sampler.max_slots or rows, rows)


def once(made, weights, shape, vocab_size, answers, seed):
  """One batch whose rows end at given lengths: seconds and slots.

  Args:
    made: the sampler.
    weights: as it has prepared them.
    shape: sizes of the rollout.
    vocab_size: ids of the prompts are below it.
    answers: [R] tokens that each row samples.
    seed: of prompts and samples.

  Returns:
    Seconds and counts; `calls`: slots, steps and milliseconds of each call of
    a decoding program, what the host does afterwards included.
  """
  tokens, lengths = prompts_of(shape, vocab_size, seed)
  started = time.perf_counter()
  state_ = jax.block_until_ready(made.begin(weights, tokens, lengths))
  prefill = time.perf_counter() - started
  limits = np.repeat(lengths, shape.group_size) + answers
  limits = jax.device_put(limits.astype(np.int32), state_.limits.sharding)
  state_ = state_._replace(limits=limits)
  key = jax.random.key(seed)
  rows = np.arange(shape.num_rows)
  steps = slot_steps = num_tokens = 0
  calls = []
  last = started = time.perf_counter()
  for call in made.answer(weights, state_, key, rows, 0):
    steps += call.num_steps
    slot_steps += call.num_steps * call.num_slots
    num_tokens += int(call.completions.lengths.sum())
    now = time.perf_counter()
    calls.append((call.num_slots, call.num_steps, round(1e3 * (now - last), 2)))
    last = now
  return {
    "prefill_seconds": prefill,
    "seconds": time.perf_counter() - started,
    "steps": steps,
    "slot_steps": slot_steps,
    "tokens": num_tokens,
    "calls": calls,
  }


def _summary(runs, read, read_shared):
  """Medians over repetitions of one workload that must read so many bytes."""
  seconds = statistics.median(r["seconds"] for r in runs)
  prefill = statistics.median(r["prefill_seconds"] for r in runs)
  one = runs[0]
  peak = peaks.bandwidth(jax.devices()[0])
  return {
    "tokens_per_second": one["tokens"] / seconds,
    "tokens_per_second_with_prompts": one["tokens"] / (seconds + prefill),
    "ms_per_decode_step": 1e3 * seconds / one["steps"],
    "prefill_seconds": prefill,
    "decode_seconds": seconds,
    "decode_seconds_all": [r["seconds"] for r in runs],
    "steps": one["steps"],
    "roofline_fraction": peaks.share(read, seconds, peak),
    # Of a roofline at which a group reads its prompt once.
    "shared_roofline_fraction": peaks.share(read_shared, seconds, peak),
    "useful_slot_fraction": one["tokens"] / one["slot_steps"],
  }


def layouts(config, prompts: Sequence[str]) -> tuple[bool, ...]:
  """Values of `config.sampler.shared_prompts`, in the order of PROMPTS.

  Args:
    config: of the run.
    prompts: of PROMPTS; none = as the config says.

  Raises:
    UsageError: another word.
  """
  for name in prompts:
    if name not in PROMPTS:
      raise UsageError(f"--prompts={name}: some of {', '.join(PROMPTS)}")
  if not prompts:
    return (config.sampler.shared_prompts,)
  return tuple(name == "shared" for name in PROMPTS if name in prompts)


def _with_prompts(config, is_shared):
  changed = config.copy_and_resolve_references()
  changed.sampler.shared_prompts = is_shared
  return changed


def measure(
  config, repeats: int, prompts: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
  """Compiles and measures.

  Args:
    config: of the run; one turn of its rollout is decoded.
    repeats: of each workload, after one that is not counted.
    prompts: see `layouts`.

  Yields:
    A record for `record.write` for each layout; fractions between 0 and 1.

  Raises:
    UsageError: a setting asks for several devices, for what this machine
      cannot do, or for more memory than it has.
  """
  if config.run.model_devices > 1:
    raise UsageError(
      f"config.run.model_devices={config.run.model_devices}: decoding is "
      "measured on one device; leave it at 1"
    )
  model = model_of(config)
  configs = [
    _with_prompts(config, is_shared) for is_shared in layouts(config, prompts)
  ]
  # Ends at its length, never by chance.
  settings = [
    programs.sampler_settings(one, model, stop_tokens=(-1,)) for one in configs
  ]
  for one, how in zip(configs, settings, strict=True):
    yield _measured(one, model, how, repeats)


def _measured(config, model, settings, repeats):
  """The record of one layout."""
  line = memory_check.check(config, model, part=memory_check.sampling_alone)
  tqdm.tqdm.write(line)
  shape = state.rollout_shape(config)
  params = random_params(model, settings.dtype, config.seed)
  num_params = transformer.num_params(params)
  started = time.perf_counter()
  with tqdm.tqdm(desc="compile", unit="program") as bar:

    def on_compile(name):
      bar.set_postfix_str(name)
      bar.update()

    made = sampler.make_sampler(
      model, shape, settings, params, on_compile=on_compile
    )
  compile_seconds = time.perf_counter() - started
  weights = made.prepare(params)
  del params
  workloads = {
    "full": np.full(shape.num_rows, shape.max_new_tokens, np.int32),
    "varied": drawn_lengths(shape.num_rows, shape.max_new_tokens, config.seed),
  }
  found = {}
  bar = tqdm.tqdm(desc="decode", total=(repeats + 1) * 2, unit="batch")
  with compilations.counted() as compiled, bar:
    for name, answers in workloads.items():
      runs = []
      for seed in range(repeats + 1):
        runs.append(once(made, weights, shape, model.num_ids, answers, seed))
        if seed == 0:
          compiled.count = 0
        bar.update()
      read = lambda group, answers=answers: roofline.bytes_read(
        model,
        weights,
        settings.dtype,
        shape.max_prompt_tokens,
        answers,
        group,
        num_slots(config),
      )
      found[name] = _summary(runs[1:], read(1), read(shape.group_size))
      found[name]["compilations"] = compiled.count
      found[name]["calls"] = runs[1]["calls"]  # of the first that counts
  full = found.pop("full")
  del full["calls"]
  return {
    "kind": "sampler",
    "model": config.policy.size,
    "num_params": num_params,
    "seed": config.seed,
    "batch": num_slots(config),
    "rows": shape.num_rows,
    "group_size": shape.group_size,
    "prompt_tokens": shape.max_prompt_tokens,
    "new_tokens": shape.max_new_tokens,
    "devices": 1,
    "dtype": settings.dtype,
    "attention": settings.implementation,
    "shared_prompts": settings.shares_prompts,
    "joined_kernels": settings.joins_kernels,
    "draws_by_kernel": settings.draws_by_kernel,
    "token_attention": settings.token_implementation,
    **full,
    "varied": found["varied"]
    | {
      "lengths": f"lognormal, median {_MEDIAN:g} of the longest, "
      f"standard deviation of the logarithm {_LOG_SPREAD:g}",
    },
    "compile_seconds": compile_seconds,
    "useful_slot_fraction": found["varied"]["useful_slot_fraction"],
    "peak_memory_gib": record.peak_memory_gib(),
  }
