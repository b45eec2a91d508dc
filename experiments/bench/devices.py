"""Several devices against one on the same global step.

A global step samples one turn of all rows of a rollout, all answers of full
length, and then updates on as many rows: random weights, prompts and rows, as
in `sampler` and `update`. One process does it on its first device alone and
then on all of them.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import tqdm
from jax.sharding import AxisType

from experiments import compute, programs, state
from experiments.bench import bare_run, record, update
from experiments.bench.sampler import once
from experiments.config_file import UsageError
from leap_jax import compilations, sampler, sharding


def mesh_of(devices: Sequence[jax.Device], model_devices: int):
  """`sharding.make_mesh` of some of the devices."""
  return jax.make_mesh(
    (sharding.data_devices(len(devices), model_devices), model_devices),
    (sharding.DATA, sharding.MODEL),
    axis_types=(AxisType.Auto, AxisType.Auto),
    devices=devices,
  )


def _sampler(config, prepared, policy_params):
  """Of the policy as the update gives it, and rows that end at their length."""
  settings = programs.sampler_settings(
    config, prepared.model, stop_tokens=(-1,)
  )
  return sampler.make_sampler(
    prepared.model,
    state.rollout_shape(config),
    settings,
    policy_params,
    mesh=prepared.mesh,
  )


def _steps(config, mesh, repeats):
  """Global steps on these devices; the first one does not count."""
  say = tqdm.tqdm.write
  started = time.perf_counter()
  prepared, train_state = update.prepare(config, mesh, say)
  run = bare_run.make(config, prepared.model, mesh, prepared.training, say)
  policy = compute.compile_policy(run, train_state)
  made = _sampler(config, prepared, policy(train_state))
  compile_seconds = time.perf_counter() - started
  shape = state.rollout_shape(config)
  answers = np.full(shape.num_rows, shape.max_new_tokens, np.int32)
  sample_seconds, update_seconds = [], []
  bar = tqdm.trange(
    repeats + 1, desc=f"{mesh.size} devices", unit="step", leave=False
  )
  with compilations.counted() as compiled:
    for seed in bar:
      if seed == 1:
        compiled.count = 0
      started = time.perf_counter()
      weights = made.prepare(policy(train_state))
      once(made, weights, shape, prepared.model.num_ids, answers, seed)
      del weights
      sample_seconds.append(time.perf_counter() - started)
      started = time.perf_counter()
      train_state, values = prepared.step(train_state, prepared.buckets)
      values = jax.device_get(values)
      update_seconds.append(time.perf_counter() - started)
      state.check_finite(values, "the update of random rows")
  totals = np.add(sample_seconds, update_seconds).tolist()
  return prepared, {
    "seconds": statistics.median(totals[1:]),
    "seconds_all": totals[1:],
    "sample_seconds": statistics.median(sample_seconds[1:]),
    "update_seconds": statistics.median(update_seconds[1:]),
    "remat": prepared.step.choice,
    "program_gib": prepared.step.peak_bytes / 2**30,
    "loss": float(values["loss"]),
    "grad_norm": float(values["grad_norm"]),
    "compile_seconds": compile_seconds,
    "compilations": compiled.count,
  }


def measure(config, repeats: int) -> dict[str, Any]:
  """Compiles and measures, on one device and on all.

  Args:
    config: of the run; one turn of its rollout is sampled.
    repeats: global steps that count, of each.

  Returns:
    A record for `record.write`: that of all devices, `one_device`, and how many
    times faster all are.

  Raises:
    UsageError: there is one device only.
  """
  devices = jax.devices()
  if len(devices) < 2:
    raise UsageError("there is one device; `devices` compares several with one")
  # Said before anything is compiled.
  meshes = [mesh_of(devices[:1], 1), mesh_of(devices, config.run.model_devices)]
  # Nothing of the first one stays on its device but what is counted here.
  one = _steps(config, meshes[0], repeats)[1]
  prepared, found = _steps(config, meshes[1], repeats)
  shape = state.rollout_shape(config)
  sampled = shape.num_rows * shape.max_new_tokens
  faster = lambda name: one[name] / found[name]
  return {
    "kind": "devices",
    "model": config.policy.size,
    "num_params": prepared.num_params,
    "batch": shape.num_rows,
    "prompt_tokens": shape.max_prompt_tokens,
    "new_tokens": shape.max_new_tokens,
    "row_tokens": int(config.learner.bucket_tokens[-1]),
    "micro_tokens": config.learner.micro_tokens,
    "devices": len(devices),
    "model_devices": config.run.model_devices,
    "dtype": config.policy.dtype,
    "layers": config.policy.layers,
    "shared_prompts": config.sampler.shared_prompts,
    **found,
    "tokens_per_second": sampled / found["seconds"],
    "one_device": one,
    "times_faster": faster("seconds"),
    "sample_times_faster": faster("sample_seconds"),
    "update_times_faster": faster("update_seconds"),
    "peak_memory_gib": record.peak_memory_gib(),
  }
