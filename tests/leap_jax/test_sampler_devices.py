"""Sampling on several devices: the same tokens as on one."""

import os
import pathlib
import subprocess
import sys

from tests.leap_jax import two_processes

ROOT = pathlib.Path(__file__).parents[2]

CODE = """
import jax, numpy as np
from leap_jax import draws, sampler, sampling, sharding
from leap_jax.models import sizes, transformer
from leap_jax.types import RolloutShape

shape = RolloutShape(
  num_problems=4, group_size=4, num_turns=2, max_prompt_tokens=12,
  max_feedback_tokens=6, max_new_tokens=10, max_context_tokens=38,
  row_buckets=(8,),
)
model = sizes.model_config("micro", 300)
params = transformer.init(model, jax.random.key(0))
table = params["embedding"]["embedding"]
params["embedding"]["embedding"] = table.at[1].mul(5.0)  # rows do stop
tokens = np.random.default_rng(0).integers(2, 300, (4, 12))
lengths = np.asarray([12, 5, 9, 3])
key = jax.random.key(1)

def play(mesh, **options):
  settings = sampling.Settings(draws.Rule(0.8), (1,), **options)
  where = sharding.param_shardings(model, mesh, params) if mesh else None
  here = jax.device_put(params, where)
  made = sampler.make_sampler(model, shape, settings, here, mesh=mesh)
  weights = made.prepare(here)
  state = made.begin(weights, tokens, lengths)
  answers = []
  for turn, rows in enumerate([list(range(16)), [9, 1, 3, 0, 12]]):
    if turn:
      told = [[7] * (i + 1) for i in range(5)]
      state = made.tell(weights, state, rows, told, turn)
    calls = made.answer(weights, state, key, rows, turn)
    got, state, _ = sampler.all_answers(calls, rows)
    answers.append(got)
  return answers, state

want, _ = play(None)
assert 0 < want[0].stopped.sum() < 16
mesh_of = lambda count: jax.make_mesh(
  (count, 1), ("data", "model"), devices=jax.devices()[:count]
)
# Three slots on each device, given to others as rows end. On three devices the
# last one has nothing to do, and still none holds more than its share.
few = dict(max_slots=3, idle_fraction=0.3, prompts_per_call=1)
for count, options in ((2, {}), (3, few)):
  got, state = play(mesh_of(count), **options)
  held = state.caches[0].keys.addressable_shards[0].data.shape[0]
  assert held == 8, held  # rows of a device
  for a, b in zip(got, want, strict=True):
    np.testing.assert_array_equal(a.tokens, b.tokens)
    np.testing.assert_array_equal(a.stopped, b.stopped)
    np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-5)
print("same")
"""


def test_several_devices_sample_what_one_does():
  done = subprocess.run(
    [sys.executable, "-c", CODE],
    cwd=ROOT,
    env=os.environ
    | {
      "XLA_FLAGS": "--xla_force_host_platform_device_count=3",
      "JAX_PLATFORMS": "cpu",
    },
    capture_output=True,
    text=True,
  )
  assert done.stdout.strip() == "same", done.stderr[-2000:]


_IN_TWO_PROCESSES = """
from leap_jax import compilations, draws, sampler, sampling, sharding
from leap_jax.models import sizes, transformer
from leap_jax.types import RolloutShape

shape = RolloutShape(
  num_problems=2, group_size=4, num_turns=1, max_prompt_tokens=12,
  max_feedback_tokens=6, max_new_tokens=10, max_context_tokens=22,
  row_buckets=(8,),
)
model = sizes.model_config("micro", 300)
params = transformer.init(model, jax.random.key(0))
table = params["embedding"]["embedding"]
params["embedding"]["embedding"] = table.at[1].mul(5.0)  # rows do stop
tokens = np.random.default_rng(0).integers(2, 300, (2, 12))
rows, key = np.arange(8), jax.random.key(1)

def play(params, mesh, **options):
  settings = sampling.Settings(draws.Rule(0.8), (1,), **options)
  made = sampler.make_sampler(model, shape, settings, params, mesh=mesh)
  weights = made.prepare(params)
  with compilations.counted() as compiled:
    state = made.begin(weights, tokens, np.asarray([12, 5]))
    calls = list(made.answer(weights, state, key, rows, 0))
    answers, _, _ = sampler.all_answers(iter(calls), rows)
  return answers, len(calls), compiled.count

want, _, _ = play(params, None)
mesh = sharding.make_mesh()
got, num_calls, count = play(
  sharding.replicate(mesh, params), mesh, max_slots=2, idle_fraction=0.5)
assert num_calls > 1 and count == 0, (num_calls, count)
np.testing.assert_array_equal(got.tokens, want.tokens)
np.testing.assert_array_equal(got.stopped, want.stopped)
np.testing.assert_allclose(got.logprobs, want.logprobs, atol=1e-5)
print("done")
"""


def test_several_processes_sample_what_one_does_and_compile_nothing():
  two_processes.run(_IN_TWO_PROCESSES)
