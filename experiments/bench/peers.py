"""The same sampling by other libraries, in the same run.

Each peer is a program of its own (`peer_*.py`) that gets the work as JSON on
its standard input and prints seconds for each repetition; ours comes last, when
the accelerator's memory is free again. All have
random weights of the same sizes and dtype, the same batch, prompts of the same
length, and sample at temperature 1 with nothing cut off.

Peers step until their longest row ends. With lengths that vary, their useful
tokens come in the seconds of a batch of full length. Where ours has more rows
than slots (`config.sampler.max_slots`), peers work through them in batches of
as many rows as ours has slots; each batch has a row of full length. Ours then
has all rows in memory, a peer those of one batch.
"""

import dataclasses
import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.config_file import UsageError

PEERS = {  # name -> (module, its package, what installs it)
  "google-tunix": ("peer_tunix", "tunix", "google-tunix==0.1.7"),
  "transformers": ("peer_transformers", "transformers", "transformers torch"),
}


def check(names: Sequence[str]) -> None:
  """Raises UsageError if a peer is not known or not installed."""
  for name in names:
    if name not in PEERS:
      raise UsageError(f"--peers={name}: one of {', '.join(PEERS)}")
    _, package, install = PEERS[name]
    if importlib.util.find_spec(package) is None:
      raise UsageError(f"{name} is not installed: pip install {install}")


@dataclasses.dataclass(frozen=True)
class Effort:
  """How long peers are waited for."""

  repeats: int  # that count, of each
  limit_s: float  # of all of a peer


class _Failed(Exception):
  """A peer did not come to its end; one line says how."""


def _command(name):
  return [sys.executable, "-m", f"experiments.bench.{PEERS[name][0]}"]


def _run(name, job, limit_s):
  print(f"{name}: {job['repeats'] + 1} batches", file=sys.stderr)
  try:
    done = subprocess.run(
      _command(name),
      input=json.dumps(job),
      stdout=subprocess.PIPE,
      text=True,
      timeout=limit_s,
    )
  except subprocess.TimeoutExpired:
    raise _Failed(f"{name} took more than {limit_s:g} s") from None
  if done.returncode:
    raise _Failed(f"{name} failed with status {done.returncode}")
  return json.loads(done.stdout.splitlines()[-1])


def _run_all(names, job, limit_s):
  """(records by name, what is to be said of those that failed)."""
  found, faults = {}, []
  for name in names:
    try:
      found[name] = _run(name, job, limit_s)
    except _Failed as fault:
      print(fault, file=sys.stderr)
      faults.append(str(fault))
  return found, faults


def _against(record, ours, num_tokens, num_varied):
  """A peer's record with its speed, and how many times ours is faster."""
  seconds = statistics.median(record["seconds"])
  full, varied = num_tokens / seconds, num_varied / seconds
  return record | {
    "tokens_per_second": full,
    "varied_tokens_per_second": varied,
    "times_faster": ours["tokens_per_second_with_prompts"] / full,
    "varied_times_faster": (
      ours["varied"]["tokens_per_second_with_prompts"] / varied
    ),
  }


def measure(
  config,
  repeats: int,
  prompts: Sequence[str],
  names: Sequence[str],
  effort: Effort,
) -> Iterator[dict[str, Any]]:
  """Measures the peers, then ourselves.

  A peer that fails is left out, and is an error when all else is measured.

  Args:
    config: as of `sampler.measure`.
    repeats: counted repetitions of ours.
    prompts: how ours keeps them, as of `sampler.measure`.
    names: keys of PEERS.
    effort: spent on each peer.

  Yields:
    Our records, with `peers` by name: tokens_per_second, the same with varied
    lengths, and how many times ours is faster. Prompts are read in all of
    these times.

  Raises:
    UsageError: a peer is not known, not installed, or failed.
  """
  check(names)
  # Importing JAX does not take the accelerator; its first use does, below.
  from experiments.bench import sampler

  rollout = config.rollout
  rows, batch = (
    rollout.num_problems * rollout.group_size,
    sampler.num_slots(config),
  )
  if rows % batch or batch % rollout.group_size:
    raise UsageError(
      f"config.sampler.max_slots={batch} for {rows} rows in groups of "
      f"{rollout.group_size}: peers take whole batches of whole groups"
    )
  job = {
    "size": config.policy.size,
    "vocab_size": config.policy.vocab_size,
    "batch": batch,
    "group_size": rollout.group_size,
    "prompt_tokens": rollout.max_prompt_tokens,
    "new_tokens": rollout.max_new_tokens,
    "dtype": config.sampler.dtype,
    "seed": config.seed,
    "repeats": effort.repeats,
  }
  drawn = sampler.drawn_lengths(rows, rollout.max_new_tokens, config.seed)
  if (drawn.reshape(-1, batch).max(1) < rollout.max_new_tokens).any():
    raise UsageError(
      f"{batch} rows are too few: a batch of theirs has none of "
      f"{rollout.max_new_tokens} tokens, so peers would be charged too much"
    )
  varied = float(np.sum(drawn)) / (rows // batch)  # tokens of a batch
  found, faults = _run_all(names, job, effort.limit_s)
  if found:
    for ours in sampler.measure(config, repeats, prompts):
      peers = {
        name: _against(record, ours, batch * rollout.max_new_tokens, varied)
        for name, record in found.items()
      }
      yield ours | {"kind": "peers", "peers": peers}
  if faults:
    raise UsageError("; ".join(faults))
