"""The policy that a run starts from, by its config."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from experiments import compute
from experiments.settings import UsageError
from leap_jax import policy_io, rollout, sharding
from leap_jax.chat_format import ChatOverrides
from leap_jax.models.config import ModelConfig
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


def check_context(config, model: ModelConfig) -> None:
  """Raises UsageError if a rollout is longer than what a model can read."""
  longest, wanted = model.max_context_tokens, config.rollout.max_context_tokens
  if longest is not None and wanted > longest:
    raise UsageError(
      f"config.rollout.max_context_tokens={wanted} is longer than the model's "
      f"context of {longest} tokens"
    )


def _check(config, policy):
  """What the model and its tokenizer ask of the settings."""
  check_context(config, policy.config)
  most = config.rollout
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
