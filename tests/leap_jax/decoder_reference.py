"""The decoder's mathematics in float64 NumPy: one row, loops over heads."""

import math

import jax
import numpy as np


def _frequencies(config, is_local):
  """By loops over dimensions, as the papers write it."""
  own = is_local and config.local_rope_theta is not None
  theta = config.local_rope_theta if own else config.rope_theta
  size, s = config.head_size, config.rope_scaling
  out = []
  for i in range(size // 2):
    f = theta ** (-2 * i / size)
    turns = s.original_context * f / (2 * math.pi)  # in the first context
    if own or s.kind == "none":
      kept = 1.0
    elif s.kind == "linear":
      kept = 0.0
    elif s.kind == "llama3":
      low, high = s.low_frequency_factor, s.high_frequency_factor
      kept = min(max((turns - low) / (high - low), 0.0), 1.0)
    elif s.kind == "yarn":

      def dimension(turns):
        wave = s.original_context / (2 * math.pi * turns)
        return size * math.log(wave) / (2 * math.log(theta))

      first = max(math.floor(dimension(s.beta_fast)), 0)
      last = min(math.ceil(dimension(s.beta_slow)), size - 1)
      kept = 1 - min(max((i - first) / (last - first), 0.0), 1.0)
    out.append(f * kept + f / s.factor * (1 - kept))
  return np.asarray(out)


def _softmax(scores):
  weights = np.exp(scores - scores.max())
  return weights / weights.sum()


def reference_forward(config, params, tokens):
  """Hidden states [T, D] and logits [T, ids] of one row."""
  p = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
  h, length = config.head_size, len(tokens)
  group = config.num_heads // config.num_kv_heads
  scale = config.attention_scale or 1 / math.sqrt(h)

  def rms(x, weights):
    mean = np.mean(x * x, -1, keepdims=True)
    weight = config.norm_offset + weights["scale"]
    return x / np.sqrt(mean + config.norm_eps) * weight

  def dense(x, weights):
    return x @ weights["kernel"] + weights.get("bias", 0.0)

  def rope(x, position, frequencies):
    a, b = x[: h // 2], x[h // 2 :]
    sin, cos = np.sin(position * frequencies), np.cos(position * frequencies)
    turned = np.concatenate([a * cos - b * sin, b * cos + a * sin])
    return turned * config.rope_scaling.attention_factor

  def activation(x):
    if config.activation == "silu":
      return x / (1 + np.exp(-x))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))

  x = p["embedding"]["embedding"][tokens] * config.embedding_scale
  for i in range(config.num_layers):
    w = jax.tree.map(lambda a, i=i: a[i], p["blocks"])
    is_local = i in config.local_layers
    frequencies = _frequencies(config, is_local)
    normed = rms(x, w["attention_norm"])
    queries, keys = dense(normed, w["query"]), dense(normed, w["key"])
    values = dense(normed, w["value"])
    out = np.zeros((length, config.num_heads * h))
    for n in range(config.num_heads):
      columns = lambda m, n: m[:, n * h : (n + 1) * h]
      q, k = columns(queries, n), columns(keys, n // group)
      v = columns(values, n // group)
      if config.has_qk_norm:
        q, k = rms(q, w["query_norm"]), rms(k, w["key_norm"])
      q = np.stack([rope(r, t, frequencies) for t, r in enumerate(q)])
      k = np.stack([rope(r, t, frequencies) for t, r in enumerate(k)])
      for t in range(length):
        first = max(t + 1 - config.local_window, 0) if is_local else 0
        weights = _softmax(k[first : t + 1] @ q[t] * scale)
        out[t, n * h : (n + 1) * h] = weights @ v[first : t + 1]
    out = dense(out, w["out"])
    if config.has_post_norms:
      out = rms(out, w["post_attention_norm"])
    x = x + out
    normed = rms(x, w["mlp_norm"])
    out = dense(
      activation(dense(normed, w["gate"])) * dense(normed, w["up"]), w["down"]
    )
    if config.has_post_norms:
      out = rms(out, w["post_mlp_norm"])
    x = x + out
  hidden = rms(x, p["final_norm"])
  head = p["embedding"] if config.tied_head else p["head"]
  return hidden, hidden @ head["embedding"][: config.num_ids].T
