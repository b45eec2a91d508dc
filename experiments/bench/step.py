"""A whole LEAP iteration: where its time goes.

The policy of `policy.source` (with its tokenizer) samples, the harness judges,
the update follows: what a run does, without checkpoints and files. The split is
the median over iterations; the first one does not count.
"""

import pathlib
import statistics
import time
from typing import Any

import numpy as np
import tqdm

from experiments import (
  compute,
  iterations,
  memory_check,
  policies,
  pools,
  problem_sets,
  programs,
  state,
)
from experiments.bench import bare_run, record
from experiments.config_file import UsageError
from leap_jax import compilations, memory, sharding, update

_SHARES = ("sample", "harness", "update")
_RATES = (
  "idle/accelerator",
  "idle/harness",
  "rollout/useful_slots",
  "rollout/acc_at_1",
  "rollout/activation",
  "update/padding",
)


def _iterations(run, made, train_state, repeats):
  """Metrics of each iteration that counts."""
  found = []
  for index in tqdm.tqdm(range(repeats + 1), desc="step", unit="iteration"):
    train_state, _, values = iterations.iterate(run, made, train_state, index)
    found.append({name: float(value) for name, value in values.items()})
  return found[1:]


def _summary(found):
  """Medians, and the share of each stage."""
  middle = lambda name: statistics.median(values[name] for values in found)
  total = middle("seconds/total")
  seconds = {stage: middle(f"seconds/{stage}") for stage in _SHARES}
  # Packing of prompts and decoding of text. Waiting for verdicts is the
  # harness's part; what it judges while the sampler works costs nothing.
  seconds["other"] = max(total - sum(seconds.values()), 0.0)
  rate = lambda name: float(np.nanmedian([v[name] for v in found]))
  return {
    "seconds": total,
    "seconds_all": [values["seconds/total"] for values in found],
    "split_seconds": seconds,
    "split_share": {name: s / total for name, s in seconds.items()},
    "idle_fraction": middle("idle/accelerator"),
    "harness_idle_fraction": middle("idle/harness"),
    "tokens_per_second": middle("rollout/tokens") / total,
    "sampled_tokens": middle("rollout/tokens"),
    "trained_rows": middle("update/rows"),
    "harness_calls": middle("kernels/submitted"),
    "useful_slot_fraction": rate("rollout/useful_slots"),
    "metrics": {name: rate(name) for name in _RATES},
    "skipped_updates": sum(values["update/skipped"] for values in found),
    "compilations": sum(values["compile/count"] for values in found),
  }


def measure(config, repeats: int) -> dict[str, Any]:
  """Runs iterations.

  Args:
    config: of the run.
    repeats: iterations that count, after one that does not.

  Returns:
    A record for `record.write`.

  Raises:
    UsageError: the policy has no tokenizer.
  """
  if config.policy.source == "random":
    raise UsageError(
      "config.policy.source=random: a step samples text; name a policy with a "
      "tokenizer (a folder, a GGUF file, or shipped)"
    )
  opened = policies.open_source(config)
  for note in opened.notes:
    tqdm.tqdm.write(note)
  tqdm.tqdm.write(memory_check.check(config, opened.config))
  with pools.make_pool(config) as pool, compilations.counted() as compiled:
    shape = state.rollout_shape(config)
    names, _ = problem_sets.names(config)
    cards, _ = problem_sets.cards(
      names, opened.tokenizer, shape, config.problems.long_prompts
    )
    mesh = sharding.make_mesh(config.run.model_devices)
    num_params = memory.num_params(opened.config)
    training = compute.split_policy(
      config, opened.config, mesh, policies.read(config, opened, mesh)
    )
    run = bare_run.make(
      config,
      opened.config,
      mesh,
      training,
      tqdm.tqdm.write,
      compiled=compiled,
      pool=pool,
      tokenizer=opened.tokenizer,
      train=cards,
    )
    train_state = sharding.shard_params(
      opened.config,
      mesh,
      update.init_state(training.params, programs.make_optimizer(config)),
    )
    started = time.perf_counter()
    made = programs.compile_programs(run, train_state)
    compile_seconds = time.perf_counter() - started
    found = _iterations(run, made, train_state, repeats)
    description = pool.description
  return {
    "kind": "step",
    "model": pathlib.Path(config.policy.source).name,  # no paths of machines
    "num_params": num_params,
    "batch": shape.num_rows,
    "devices": mesh.size,
    "num_problems": shape.num_problems,
    "group_size": shape.group_size,
    "num_turns": shape.num_turns,
    "method": config.method.name,
    "gate": config.method.gate,
    "reward": config.method.reward,
    "dtype": config.policy.dtype,
    "lora_rank": config.policy.lora_rank,
    "harness": description,
    **_summary(found),
    "compile_seconds": compile_seconds,
    "peak_memory_gib": record.peak_memory_gib(),
  }
