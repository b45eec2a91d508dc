"""The same sampling by other libraries, in the same run.

Each peer is a program of its own (`peer_*.py`) that gets the work as JSON on
its standard input and prints seconds for each repetition; ours comes last, when
the accelerator's memory is free again. All have
random weights of the same sizes and dtype, the same batch, prompts of the same
length, and sample at temperature 1 with nothing cut off.

Peers step until their longest row ends. With lengths that vary, their useful
tokens come in the seconds of a batch of full length.
"""

import importlib.util
import json
import statistics
import subprocess
import sys
from typing import Any

import numpy as np

from experiments.config_file import UsageError

PEERS = {  # name -> (module, its package, what installs it)
  "google-tunix": ("peer_tunix", "tunix", "google-tunix==0.1.7"),
  "transformers": ("peer_transformers", "transformers", "transformers torch"),
}


def check(names: list[str]) -> None:
  """Raises UsageError if a peer is not known or not installed."""
  for name in names:
    if name not in PEERS:
      raise UsageError(f"--peers={name}: one of {', '.join(PEERS)}")
    _, package, install = PEERS[name]
    if importlib.util.find_spec(package) is None:
      raise UsageError(f"{name} is not installed: pip install {install}")


def _run(name, job):
  module, *_ = PEERS[name]
  print(f"{name}: {job['repeats'] + 1} batches", file=sys.stderr)
  done = subprocess.run(
    [sys.executable, "-m", f"experiments.bench.{module}"],
    input=json.dumps(job),
    stdout=subprocess.PIPE,
    text=True,
  )
  if done.returncode:
    raise UsageError(f"{name} failed with status {done.returncode}")
  return json.loads(done.stdout.splitlines()[-1])


def measure(config, repeats: int, names: list[str]) -> dict[str, Any]:
  """Measures the peers, then ourselves.

  Args:
    config: as of `sampler.measure`.
    repeats: counted repetitions of each.
    names: keys of PEERS.

  Returns:
    Our record, with `peers` by name: tokens_per_second, the same with varied
    lengths, and how many times ours is faster. Prompts are read in all of
    these times.
  """
  check(names)
  rollout = config.rollout
  batch = rollout.num_problems * rollout.group_size
  job = {
    "size": config.policy.size,
    "vocab_size": config.policy.vocab_size,
    "batch": batch,
    "group_size": rollout.group_size,
    "prompt_tokens": rollout.max_prompt_tokens,
    "new_tokens": rollout.max_new_tokens,
    "dtype": config.sampler.dtype,
    "seed": config.seed,
    "repeats": repeats,
  }
  found = {name: _run(name, job) for name in names}
  # Not before: JAX takes the accelerator when it is first used.
  from experiments.bench import sampler

  ours = sampler.measure(config, repeats)
  drawn = sampler.drawn_lengths(batch, rollout.max_new_tokens, config.seed)
  peers = {}
  for name, record in found.items():
    seconds = statistics.median(record["seconds"])
    full = batch * rollout.max_new_tokens / seconds
    varied = float(np.sum(drawn)) / seconds
    peers[name] = record | {
      "tokens_per_second": full,
      "varied_tokens_per_second": varied,
      "times_faster": ours["tokens_per_second_with_prompts"] / full,
      "varied_times_faster": (
        ours["varied"]["tokens_per_second_with_prompts"] / varied
      ),
    }
  return ours | {"kind": "peers", "peers": peers}
