"""Grouped-query attention: one definition, two implementations.

`xla` is einsum and softmax: every platform, every dtype, any mask. `cudnn` is
the fused kernel of NVIDIA's library: 16-bit floats, no [T, S] matrix in memory,
and masks given as lengths, so that its cost follows them.

Three cases, by what a query may see. Training and the first reading of a prompt
have rows that begin at position 0 (`whole_rows`); a later turn reads several
tokens behind a cache (`appended`); decoding adds one token (`one_token`). They
differ for cuDNN, whose causal mask starts in the top left corner: right for
whole rows only.

Shapes: B rows, T queries, S cached tokens, N heads, K key-value heads (N is a
multiple of K), H head size. A `window` of W lets a query see the last W tokens,
itself included (Gemma 3's local layers); it is a whole number, a traced one
(layers of a scan differ), or None for no limit.
"""

import jax
import jax.numpy as jnp

XLA, CUDNN = "xla", "cudnn"
IMPLEMENTATIONS = (XLA, CUDNN)

_MASKED = -1e30


def choose(dtype, device: jax.Device | None = None) -> str:
  """The implementation for a dtype on a device, chosen once at start.

  Args:
    dtype: of queries, keys and values.
    device: where it will run; the default device if None.

  Returns:
    "cudnn" for 16-bit floats on an NVIDIA GPU from compute capability 8.0 on,
    else "xla".
  """
  device = device or jax.devices()[0]
  if device.platform != "gpu" or "NVIDIA" not in device.device_kind:
    return XLA
  capability = float(getattr(device, "compute_capability", 0.0))
  is_short = jnp.dtype(dtype) in (jnp.bfloat16, jnp.float16)
  return CUDNN if is_short and capability >= 8.0 else XLA


def _seen(positions, num_keys, window):
  """[B, T] positions of queries -> [B, T, S] keys that each may look at."""
  keys = jnp.arange(num_keys)[None, None]
  last = positions[..., None]
  mask = keys <= last
  return mask if window is None else mask & (keys > last - window)


def _einsum(query, keys, values, mask, scale):
  b, t, n, h = query.shape
  k = keys.shape[2]
  grouped = query.reshape(b, t, k, n // k, h)
  scores = jnp.einsum(
    "btkgh,bskh->bkgts", grouped, keys, preferred_element_type=jnp.float32
  )
  scores = jnp.where(mask[:, None, None], scores * scale, _MASKED)
  weights = jax.nn.softmax(scores, -1).astype(values.dtype)
  return jnp.einsum("bkgts,bskh->btkgh", weights, values).reshape(b, t, n * h)


def _fused(query, keys, values, *, scale, mask=None, **options):
  b, t, n, h = query.shape
  if mask is not None:
    mask = mask[:, None]
  attended = jax.nn.dot_product_attention(
    query,
    keys.astype(query.dtype),
    values.astype(query.dtype),
    mask=mask,
    scale=scale,
    implementation=CUDNN,
    **options,
  )
  return attended.reshape(b, t, n * h)


def _scale(scale, query):
  return query.shape[-1] ** -0.5 if scale is None else scale


def whole_rows(
  query: jax.Array,
  keys: jax.Array,
  values: jax.Array,
  lengths: jax.Array | None = None,
  *,
  implementation: str,
  scale: float | None = None,
  window: int | jax.Array | None = None,
) -> jax.Array:
  """Causal attention of rows that begin at position 0.

  Args:
    query: [B, T, N, H].
    keys: [B, T, K, H].
    values: [B, T, K, H].
    lengths: [B] tokens of each row, padded on the right; None if all count. It
      saves time only: causality hides what stands behind a row's end. What
      comes out there is arbitrary.
    implementation: one of IMPLEMENTATIONS.
    scale: of the scores; 1 / sqrt(H) if None.
    window: see above.

  Returns:
    [B, T, N * H].
  """
  b, t = query.shape[:2]
  scale = _scale(scale, query)
  if implementation == CUDNN and (window is None or isinstance(window, int)):
    return _fused(
      query,
      keys,
      values,
      scale=scale,
      is_causal=True,
      query_seq_lengths=lengths,
      key_value_seq_lengths=lengths,
      local_window_size=None if window is None else (window - 1, 0),
    )
  positions = jnp.broadcast_to(jnp.arange(t)[None], (b, t))
  mask = _seen(positions, t, window)
  attend = _einsum if implementation == XLA else _masked
  return attend(query, keys, values, mask, scale)


def _masked(query, keys, values, mask, scale):
  return _fused(query, keys, values, mask=mask, scale=scale)


def appended(
  query: jax.Array,
  keys: jax.Array,
  values: jax.Array,
  positions: jax.Array,
  *,
  implementation: str,
  scale: float | None = None,
  window: int | jax.Array | None = None,
) -> jax.Array:
  """Attention of new tokens to a cache that holds them already.

  Args:
    query: [B, T, N, H].
    keys: [B, S, K, H] of the cache, the new ones included.
    values: [B, S, K, H] likewise.
    positions: [B, T] places of the new tokens; each sees the cache up to its
      own.
    implementation: one of IMPLEMENTATIONS.
    scale: of the scores; 1 / sqrt(H) if None.
    window: see above.

  Returns:
    [B, T, N * H].
  """
  mask = _seen(positions, keys.shape[1], window)
  attend = _einsum if implementation == XLA else _masked
  return attend(query, keys, values, mask, _scale(scale, query))


def one_token(
  query: jax.Array,
  keys: jax.Array,
  values: jax.Array,
  lengths: jax.Array,
  *,
  implementation: str,
  scale: float | None = None,
  window: int | jax.Array | None = None,
) -> jax.Array:
  """Attention of each row's newest token to its cache.

  Args:
    query: [B, 1, N, H].
    keys: [B, S, K, H] of the cache, the newest token included.
    values: [B, S, K, H] likewise.
    lengths: [B] cached tokens, the newest included.
    implementation: one of IMPLEMENTATIONS.
    scale: of the scores; 1 / sqrt(H) if None.
    window: see above; without effect, and free, where S <= window.

  Returns:
    [B, 1, N * H].
  """
  scale = _scale(scale, query)
  if isinstance(window, int) and keys.shape[1] <= window:
    window = None
  if implementation == XLA or window is not None:
    return appended(
      query,
      keys,
      values,
      lengths[:, None] - 1,
      implementation=implementation,
      scale=scale,
      window=window,
    )
  # Heads that share keys as queries of one head would read each key once, but
  # cuDNN's kernel for one query is faster (H200: 102 against 158 us for 1024
  # rows of 384 tokens, 9 heads, 3 key-value heads of 64).
  return _fused(
    query,
    keys,
    values,
    scale=scale,
    is_causal=False,
    key_value_seq_lengths=lengths,
  )
