"""Attention: what each of the three cases lets a query see."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from leap_jax.models import attention, attention_choice, sizes

MODEL = sizes.model_config("micro", 50)
HEADS = attention_choice.Heads(
  MODEL.num_heads, MODEL.num_kv_heads, MODEL.head_size
)
B, T, N, K, H = 3, 7, 6, 2, 8


def tensors(queries=T):
  keys = jax.random.split(jax.random.key(0), 3)
  make = lambda key, t, heads: jax.random.normal(key, (B, t, heads, H))
  return make(keys[0], queries, N), make(keys[1], T, K), make(keys[2], T, K)


def by_hand(query, keys, values, positions, scale, window):
  """One query, one head at a time."""
  out = np.zeros((B, query.shape[1], N, H))
  for b in range(B):
    for t in range(query.shape[1]):
      last = int(positions[b][t])
      first = 0 if window is None else max(last - window + 1, 0)
      for n in range(N):
        k = n // (N // K)
        seen = keys[b, first : last + 1, k]
        scores = seen @ query[b, t, n] * scale
        weights = np.exp(scores - scores.max())
        out[b, t, n] = weights / weights.sum() @ values[b, first : last + 1, k]
  return out.reshape(B, query.shape[1], N * H)


@pytest.mark.parametrize("window", [None, 3])
def test_every_case_is_the_definition(window):
  query, keys, values = tensors()
  host = [np.asarray(x) for x in (query, keys, values)]
  places = np.broadcast_to(np.arange(T), (B, T))
  compiled = lambda function: jax.jit(
    functools.partial(function, implementation="xla", scale=0.3, window=window)
  )
  got = compiled(attention.whole_rows)(query, keys, values)
  np.testing.assert_allclose(
    got, by_hand(*host, places, 0.3, window), atol=1e-5
  )
  # Two new tokens behind 5, 3 and 4 cached ones.
  start = np.asarray([5, 3, 4])
  places = start[:, None] + np.arange(2)
  got = compiled(attention.appended)(
    query[:, :2], keys, values, jnp.asarray(places)
  )
  want = by_hand(host[0][:, :2], *host[1:], places, 0.3, window)
  np.testing.assert_allclose(got, want, atol=1e-5)
  got = compiled(attention.one_token)(
    query[:, :1], keys, values, jnp.asarray(start + 1)
  )
  want = by_hand(host[0][:, :1], *host[1:], start[:, None], 0.3, window)
  np.testing.assert_allclose(got, want, atol=1e-5)


def test_a_window_may_be_traced():
  query, keys, values = tensors()
  fixed = attention.whole_rows(
    query, keys, values, implementation="xla", window=3
  )
  traced = jax.jit(
    lambda w: attention.whole_rows(
      query, keys, values, implementation="xla", window=w
    )
  )(jnp.int32(3))
  np.testing.assert_allclose(fixed, traced, atol=1e-6)


def test_a_cpu_has_one_implementation():
  cpu = jax.devices("cpu")[0]
  assert attention_choice.choose(jnp.bfloat16, MODEL, cpu) == "xla"
  fault = attention_choice.fault_of_cudnn(jnp.bfloat16, MODEL, cpu)
  assert "needs an NVIDIA GPU" in fault and "bfloat16 and a cpu" in fault


@pytest.fixture
def library(monkeypatch):
  """cuDNN's place is taken by XLA; returns what it is told to do wrong."""
  wrong = {"factor": 1.0}

  def fused(query, keys, values, **options):
    if "error" in wrong:
      raise RuntimeError(wrong["error"])
    if query.shape[-1] > 128:
      raise NotImplementedError("heads of more than 128")
    keys, values = keys.astype(query.dtype), values.astype(query.dtype)
    got = jax.nn.dot_product_attention(query, keys, values, **options)
    return jax.tree.map(lambda x: x * wrong["factor"], got)

  monkeypatch.setattr(attention, "_fused", fused)
  attention_choice._fault.cache_clear()
  yield wrong
  attention_choice._fault.cache_clear()


def test_a_library_that_works_is_used(library):
  for case in ("training", "decoding", "sharing"):
    assert (
      attention_choice._fault(jnp.dtype(jnp.bfloat16), HEADS, case, "cudnn", 3)
      is None
    )
  # The model's own heads are tried.
  gpu = types.SimpleNamespace(
    platform="gpu", device_kind="NVIDIA A100", compute_capability="8.0"
  )
  assert attention_choice.choose(jnp.bfloat16, MODEL, gpu) == "cudnn"
  wide = dataclasses.replace(MODEL, head_size=256)
  with pytest.warns(UserWarning, match="heads of more than 128"):
    assert attention_choice.choose(jnp.bfloat16, wide, gpu) == "xla"


def test_a_library_that_does_not_is_not_used(library):
  short = jnp.dtype(jnp.bfloat16)
  library["factor"] = 1.1
  assert "decoding is off by" in attention_choice._fault(
    short, HEADS, "decoding", "cudnn"
  )
  library["error"] = "no engine\nfor this"
  assert (
    attention_choice._fault(short, HEADS, "sharing", "cudnn", 8)
    == "sharing: no engine"
  )


def test_a_cpu_shares_no_prompts():
  assert "needs cuDNN" in attention_choice.fault_of_sharing(
    jnp.bfloat16, MODEL, 8
  )
  local = dataclasses.replace(MODEL, local_layers=(0,), local_window=4)
  assert "only a part" in attention_choice.fault_of_sharing(
    jnp.bfloat16, local, 8
  )


def test_rows_behind_a_shared_prompt_see_what_they_would_alone(library):
  group = 3
  keys = jax.random.split(jax.random.key(1), 5)
  make = lambda key, *shape: jax.random.normal(key, (*shape, H))
  inputs = (
    make(keys[0], 2 * group, 1, N),
    (make(keys[1], 2 * group, T, K), make(keys[2], 2 * group, T, K)),
    jnp.asarray([1, 7, 3, 2, 5, 4]),
    (make(keys[3], 2, 5, K), make(keys[4], 2, 5, K)),
    jnp.asarray([4, 2]),
  )
  run = lambda implementation: jax.jit(
    functools.partial(attention.behind_prompts, implementation=implementation)
  )
  np.testing.assert_allclose(
    run("cudnn")(*inputs), run("xla")(*inputs), atol=1e-5
  )
