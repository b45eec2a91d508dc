"""Grouped-query attention: one definition, three implementations.

`xla` is einsum and softmax: every platform, every dtype, any mask. `cudnn` is
the fused kernel of NVIDIA's library: 16-bit floats, no [T, S] matrix in memory,
and masks given as lengths, so that its cost follows them. `pallas` is ours, for
one new token of each row (`token_attention`), beside cuDNN's for all else.

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

from leap_jax.models import cache_rows

XLA, CUDNN, PALLAS = "xla", "cudnn", "pallas"
IMPLEMENTATIONS = (XLA, CUDNN)  # of everything

_MASKED = -1e30


def _behind_by_mask(query, own, own_lengths, prompts, prompt_lengths):
  """`behind_prompts` by its definition: one softmax over all keys."""
  r, p = query.shape[0], prompt_lengths.shape[0]
  spread = lambda x: jnp.repeat(x, r // p, axis=0)
  keys, values = (
    jnp.concatenate([spread(before), behind], 1)
    for before, behind in zip(prompts, own, strict=True)
  )
  sees = lambda lengths, x: jnp.arange(x.shape[1])[None] < lengths[:, None]
  mask = jnp.concatenate(
    [sees(spread(prompt_lengths), prompts[0]), sees(own_lengths, own[0])], 1
  )
  return masked(query, keys, values, mask[:, None], XLA)


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


def _fused(query, keys, values, **options):
  """cuDNN's attention: [B, T, N, H], and what `options` ask for besides."""
  return jax.nn.dot_product_attention(
    query,
    keys.astype(query.dtype),
    values.astype(query.dtype),
    implementation=CUDNN,
    **options,
  )


def _flat(attended):
  b, t, n, h = attended.shape
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
    attended = _fused(
      query,
      keys,
      values,
      scale=scale,
      is_causal=True,
      query_seq_lengths=lengths,
      key_value_seq_lengths=lengths,
      local_window_size=None if window is None else (window - 1, 0),
    )
    return _flat(attended)
  positions = jnp.broadcast_to(jnp.arange(t)[None], (b, t))
  mask = _seen(positions, t, window)
  return masked(query, keys, values, mask, implementation, scale)


def masked(query, keys, values, mask, implementation: str, scale=None):
  """Attention of [B, T, N, H] queries where mask [B, T, S] is True."""
  scale = _scale(scale, query)
  if implementation == XLA:
    return _einsum(query, keys, values, mask, scale)
  return _flat(_fused(query, keys, values, mask=mask[:, None], scale=scale))


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
  return masked(query, keys, values, mask, implementation, scale)


def one_token(
  query: jax.Array,
  keys: jax.Array,
  values: jax.Array,
  lengths: jax.Array,
  *,
  implementation: str,
  scale: float | None = None,
  window: int | jax.Array | None = None,
  rows: jax.Array | None = None,
) -> jax.Array:
  """Attention of each row's newest token to its cache.

  Args:
    query: [B, 1, N, H].
    keys: [R, S, K, H] of the cache, the newest token included.
    values: [R, S, K, H] likewise.
    lengths: [B] cached tokens, the newest included.
    implementation: one of IMPLEMENTATIONS, or PALLAS.
    scale: of the scores; 1 / sqrt(H) if None.
    window: see above, not traced for PALLAS; without effect, and free, where
      S <= window.
    rows: [B] of the cache that the queries look at, any if beyond R; None if
      R = B. Only PALLAS reads no others and copies none.

  Returns:
    [B, 1, N * H].
  """
  scale = _scale(scale, query)
  if isinstance(window, int) and keys.shape[1] <= window:
    window = None
  if implementation == PALLAS:
    # It is experimental: what does not use it needs no jax that has it.
    from leap_jax.models import token_attention

    past = token_attention.Past(keys, values, lengths, rows)
    return token_attention.one_token(query, past, scale=scale, window=window)
  if rows is not None:
    keys, values = (x.at[rows].get(mode="clip") for x in (keys, values))
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
  attended = _fused(
    query,
    keys,
    values,
    scale=scale,
    is_causal=False,
    key_value_seq_lengths=lengths,
  )
  return _flat(attended)


def behind_prompts(
  query: jax.Array,
  own: tuple[jax.Array, jax.Array],
  own_lengths: jax.Array,
  prompts: tuple[jax.Array, jax.Array],
  prompt_lengths: jax.Array,
  *,
  implementation: str,
  places: cache_rows.Places | None = None,
) -> jax.Array:
  """Attention of each row's newest token where groups share their prompts.

  A prompt's keys and values are read once for all rows of its group instead of
  once for each. Two parts with softmax denominators exp(l1), exp(l2) join to

      (exp(l1) o1 + exp(l2) o2) / (exp(l1) + exp(l2))

  (Juravsky et al. 2024, Hydragen, arXiv 2402.05099.)

  Args:
    query: [R, 1, N, H] of R = P * G rows; a group's rows are neighbours. With
      `places` [B, 1, N, H] of slots.
    own: keys and values [R, S, K, H] behind the prompts, the newest token's
      included.
    own_lengths: [R], or [B] of slots, of them, at least 1.
    prompts: keys and values [P, T, K, H].
    prompt_lengths: [P], at least 1; with PALLAS 0 for what nobody reads.
    implementation: one of IMPLEMENTATIONS, or PALLAS.
    places: of the slots, with PALLAS; None if slot i has row i.

  Returns:
    [R, 1, N * H], or [B, 1, N * H] of slots.
  """
  inputs = (query, own, own_lengths, prompts, prompt_lengths)
  if implementation == PALLAS:
    from leap_jax.models import token_attention

    rows, slots = places if places is not None else (None, None)
    return token_attention.behind_prompts(
      query,
      token_attention.Past(*own, own_lengths, rows),
      token_attention.Past(*prompts, prompt_lengths, slots=slots),
    )
  assert places is None, f"{implementation} does not look for rows"
  if implementation == XLA:
    return _behind_by_mask(*inputs)
  r, _, n, h = query.shape
  p, k = prompt_lengths.shape[0], own[0].shape[2]
  options = dict(scale=h**-0.5, is_causal=False, return_residual=True)
  # Nothing is causal here: the rows of a group are queries of one sequence, and
  # so are the heads that share keys. A tile of the kernel has 64 queries; with
  # those of one head it is nearly empty, and each head reads the keys again.
  packed = query.reshape(p, r // p, k, n // k, h).swapaxes(2, 3)
  first, first_log = _fused(
    packed.reshape(p, (r // p) * (n // k), k, h),
    *prompts,
    key_value_seq_lengths=prompt_lengths,
    **options,
  )
  second, second_log = _fused(
    query, *own, key_value_seq_lengths=own_lengths, **options
  )
  # The logarithms come rounded to the dtype of the queries, unless XLA sees
  # that they are widened at once and leaves both steps out.
  wide = lambda x: x.astype(jnp.float32)
  unpacked = lambda x, *rest: (
    wide(x)
    .reshape(p, r // p, n // k, k, *rest)
    .swapaxes(2, 3)
    .reshape(r, n, *rest)
  )
  share = jax.nn.sigmoid(unpacked(first_log) - wide(second_log).reshape(r, n))[
    ..., None
  ]
  first, second = unpacked(first, h), wide(second).reshape(r, n, h)
  joined = share * first + (1 - share) * second
  return joined.astype(query.dtype).reshape(r, 1, n * h)
