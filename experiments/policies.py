"""The policy that a run starts from, by its config."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from experiments import compute
from experiments.settings import UsageError
from leap_jax import policy_io, rollout, sharding
from leap_jax.chat_format import ChatOverrides
from leap_jax.policy_source import OpenPolicy


def _overrides(config):
  path = config.policy.chat_template
  template = None
  if path is not None:
    try:
      template = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
      raise UsageError(f"config.policy.chat_template={path}: {error}") from None
  return ChatOverrides(
    config.policy.system_prompt, template, config.policy.thinking
  )


def _check(config, policy):
  """What the model and its tokenizer ask of the settings."""
  longest, most = policy.config.max_context_tokens, config.rollout
  if longest is not None and most.max_context_tokens > longest:
    raise UsageError(
      f"config.rollout.max_context_tokens={most.max_context_tokens} is longer "
      f"than the model's context of {longest} tokens"
    )
  template = policy.tokenizer.chat.template
  if config.policy.thinking is not None and "enable_thinking" not in template:
    raise UsageError(
      f"config.policy.thinking={config.policy.thinking}: the model's chat "
      "template knows no enable_thinking; unset it"
    )
  least = rollout.least_feedback_tokens(policy.tokenizer)
  if most.num_turns > 1 and most.max_feedback_tokens < least:
    raise UsageError(
      f"config.rollout.max_feedback_tokens={most.max_feedback_tokens} is too "
      f"little for this policy: its chat format needs at least {least}"
    )


def open_source(config) -> OpenPolicy:
  """Opens config.policy.source, which is not "random"; reads no weights.

  Raises:
    PolicyError: it cannot be used.
    UsageError: the settings do not suit it.
  """
  source = pathlib.Path(config.policy.source)
  if config.policy.source == "shipped":
    source = policy_io.SHIPPED
  policy = policy_io.open_policy(source, _overrides(config))
  _check(config, policy)
  return policy


def read(config, policy: OpenPolicy, mesh: jax.sharding.Mesh) -> Any:
  """Parameters of an opened policy; no device ever holds more than its part.

  Each one goes to where it lies, in the dtype in which the run keeps it, as
  soon as it has been read.

  Args:
    config: all settings.
    policy: of `open_source`.
    mesh: of the devices.
  """
  return policy.read(
    dtype=jnp.dtype(compute.kept_dtype(config)),
    place=sharding.placing(policy.config, mesh),
  )
