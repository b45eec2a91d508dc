"""Which implementation of `attention` a model uses, chosen once by trying.

Each is asked for small attentions with the model's own heads and compared with
the definition.
"""

import functools
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp

from leap_jax.models import attention, cache_rows
from leap_jax.models.config import ModelConfig


class Heads(NamedTuple):
  """What of a model decides which kernels there are for it."""

  num_heads: int
  num_kv_heads: int
  head_size: int


def choose(dtype, config: ModelConfig, device: jax.Device | None = None) -> str:
  """The implementation for a model on a device, chosen once at start.

  Args:
    dtype: of queries, keys and values.
    config: of the model.
    device: where it will run; the default device if None.

  Returns:
    "cudnn" for 16-bit floats on an NVIDIA GPU from compute capability 8.0 on
    whose library does what it is asked for with heads of this size, else "xla".
  """
  device = device or jax.devices()[0]
  if _fault_of_device(dtype, device) is not None:
    return attention.XLA
  fault = fault_of_cudnn(dtype, config, device)
  if fault is not None:
    warnings.warn(f"cuDNN's attention is not used: {fault}", stacklevel=2)
    return attention.XLA
  return attention.CUDNN


def _fault_of_device(dtype, device):
  """Why nothing of cuDNN can be tried; None if it can."""
  is_nvidia = device.platform == "gpu" and "NVIDIA" in device.device_kind
  capability = float(getattr(device, "compute_capability", 0.0))
  is_short = jnp.dtype(dtype) in (jnp.bfloat16, jnp.float16)
  if is_nvidia and is_short and capability >= 8.0:
    return None
  return (
    "it needs an NVIDIA GPU of compute capability 8.0 and 16-bit floats; here "
    f"are {jnp.dtype(dtype).name} and a {device.device_kind} device"
  )


def _heads_of(config):
  return Heads(config.num_heads, config.num_kv_heads, config.head_size)


def fault_of_cudnn(
  dtype, config: ModelConfig, device: jax.Device | None = None
) -> str | None:
  """Why cuDNN's attention cannot be used, as of `choose`; None if it can."""
  fault = _fault_of_device(dtype, device or jax.devices()[0])
  for case in ("training", "decoding"):
    fault = fault or _fault(
      jnp.dtype(dtype), _heads_of(config), case, attention.CUDNN
    )
  return fault


def choose_for_one_token(
  dtype, config: ModelConfig, implementation: str, group_size: int
) -> str:
  """The implementation of decoding's attention, chosen once at start.

  "pallas" beside cuDNN where it does what it should with heads of this size,
  else the one of everything; warns where it should but does not.

  Args:
    dtype: of queries, keys and values.
    config: of the model.
    implementation: of everything else.
    group_size: rows that share a prompt's keys; 0 if none do.
  """
  if implementation != attention.CUDNN:
    return implementation
  cases = ["decoding", "long decoding"]
  cases += ["local decoding"] if config.local_layers else []
  for case in ["sharing"] if group_size else cases:
    fault = _fault(
      jnp.dtype(dtype), _heads_of(config), case, attention.PALLAS, group_size
    )
    if fault is not None:
      warnings.warn(f"decoding attends through cuDNN: {fault}", stacklevel=2)
      return attention.CUDNN
  return attention.PALLAS


def fault_of_sharing(dtype, config: ModelConfig, group_size: int) -> str | None:
  """Why groups cannot share prompts (`behind_prompts`); None if they can."""
  if config.local_layers:
    return "layers of this model see only a part of the past"
  fault = fault_of_cudnn(dtype, config)
  if fault is not None:
    return f"it needs cuDNN's attention: {fault}"
  return _fault(
    jnp.dtype(dtype), _heads_of(config), "sharing", attention.CUDNN, group_size
  )


def _probe(case, implementation, query, keys, values, lengths):
  """Attention of some case; rows of which a few tokens are real."""
  options = dict(implementation=implementation)
  if case == "training":
    attended = attention.whole_rows(query, keys, values, lengths, **options)
    is_row = jnp.arange(query.shape[1])[None] < lengths[:, None]
    return jnp.where(is_row[..., None], attended, 0)
  if case.endswith("decoding"):
    options["rows"] = jnp.arange(query.shape[0])[::-1]
    options["window"] = 70 if case == "local decoding" else None
    return attention.one_token(query[:, :1], keys, values, lengths, **options)
  prompts, prompt_lengths = (keys[:1], values[:1]), lengths[:1]
  own, query = (keys, values), query[:, :1]
  if implementation != attention.PALLAS:
    return attention.behind_prompts(
      query, own, lengths, prompts, prompt_lengths, **options
    )
  last_first = jnp.arange(len(query))[::-1]  # slots, and where their rows are
  return attention.behind_prompts(
    query[last_first],
    own,
    lengths[last_first],
    prompts,
    prompt_lengths,
    places=cache_rows.Places(last_first, last_first),
    **options,
  )[last_first]


@functools.cache
def _fault(
  dtype, heads: Heads, case: str, implementation: str, group_size: int = 0
) -> str | None:
  """What is wrong with an implementation, found by trying it; None if nothing.

  Some builds lack cuDNN's or get it wrong (jax#32430), and heads of more than
  128 are for compute capability 9.0 on. Pallas is experimental.
  """
  keys = jax.random.split(jax.random.key(0), 3)
  n, k, h = heads
  # So few rows of so many keys are read by several programs each.
  length = 640 if case == "long decoding" else 192
  rows = group_size if case == "sharing" else 8
  sizes = ((rows, length, n, h), *[(rows, length, k, h)] * 2)
  wide = [jax.random.normal(k, s) for k, s in zip(keys, sizes, strict=True)]
  short = [x.astype(dtype) for x in wide]
  lengths = jnp.resize(jnp.asarray([133, 64, 1, length, 17, 150, 65, 2]), rows)
  run = lambda name: jax.jit(functools.partial(_probe, case, name))
  try:
    got = run(implementation)(*short, lengths).astype(jnp.float32)
    gap = float(jnp.abs(got - run(attention.XLA)(*wide, lengths)).max())
  except Exception as error:  # XLA's, cuDNN's and Triton's, of many kinds
    return f"{case}: {str(error).splitlines()[0][:200]}"
  return None if gap < 0.05 else f"{case} is off by {gap:.2g}"
