"""The sampler's programs, compiled once, the largest first.

With several devices the problems are split over the axis `data` of the mesh:
each device has its problems' rows, caches and slots to itself and steps until
its own rows have ended, with the whole weights; no step waits for another
device. The functions of `sampling` then see one device's share, which is filled
up with empty places where the problems do not divide.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from leap_jax import compilations, program_sizes, sampling
from leap_jax.models import attention
from leap_jax.sampling import SamplerState, Settings
from leap_jax.types import RolloutShape

# Products of some hundred rows: cuBLAS is faster than kernels that XLA makes
# of them (H200, a step of 512 rows of Qwen2.5-0.5B: 2.66 against 2.84 ms; 1,024
# rows of SmolLM2-135M: 3.56 against 3.69 ms).
_DECODE_ON_GPU = {"xla_gpu_enable_triton_gemm": False}

_ROWS, _WHOLE = PartitionSpec("data"), PartitionSpec()


class Programs(NamedTuple):
  """Compiled; none of them ever compiles again. D devices along `data`."""

  share: RolloutShape  # of one device
  num_shares: int  # D
  prepare: Callable[..., Any]  # params -> weights
  empty: Callable[[], SamplerState]
  # (weights, state, tokens [D * C, T], lengths, problems) -> state
  read_prompts: Callable[..., SamplerState]
  # [width, B]: (weights, state, rows [D * B], tokens, lengths) -> state
  read_more: Mapping[tuple[int, int], Callable[..., SamplerState]]
  # [width, B]: (weights, state, key, rows [D * B], turn [], leave_at [D])
  # -> state, steps [D], Ends of [D * B]
  decode: Mapping[tuple[int, int], Callable[..., Any]]


def num_shares(mesh: Mesh | None) -> int:
  """D: devices that the problems are split over."""
  return 1 if mesh is None else mesh.shape["data"]


def share_of(shape: RolloutShape, count: int) -> RolloutShape:
  """One of `count` equal shares of a rollout.

  Where the problems do not divide, the last shares have places that stay empty:
  no row of theirs is ever in a slot.
  """
  buckets = sorted({-(-rows // count) for rows in shape.row_buckets})
  return dataclasses.replace(
    shape,
    num_problems=-(-shape.num_problems // count),
    row_buckets=tuple(buckets),
  )


def prompts_per_call(shape: RolloutShape, settings: Settings) -> int:
  """Prompts that a device reads at once."""
  return min(
    settings.prompts_per_call or shape.num_problems, shape.num_problems
  )


def compile_programs(
  config,
  shape: RolloutShape,
  settings: Settings,
  params,
  mesh: Mesh | None,
  on_compile: Callable[[str], None],
) -> Programs:
  """Everything, the largest first: what does not fit fails at once.

  Args:
    config: ModelConfig.
    shape: sizes of the whole rollout.
    settings: of the sampler.
    params: any parameters of the model.
    mesh: of the devices; None = one device.
    on_compile: told the name of each program that is compiled.
  """
  count = num_shares(mesh)
  share = share_of(shape, count)
  is_split = count > 1
  many = mesh is not None and mesh.size > 1
  # What hosts are told of each call: with several processes all of it lies on
  # all devices, or each process would compile a gather for each shape.
  is_spread = is_split and jax.process_count() > 1
  place = (
    (lambda spec: NamedSharding(mesh, spec)) if many else lambda spec: None
  )
  rows_spec = _ROWS if is_split else _WHOLE
  abstract = lambda dims, dtype=jnp.int32, spec=rows_spec: jax.ShapeDtypeStruct(
    dims, dtype, sharding=place(spec)
  )
  shapes_of = lambda tree, spec: jax.tree.map(
    lambda x: abstract(x.shape, x.dtype, spec), tree
  )
  placed = lambda function, spec: (
    jax.jit(function, out_shardings=place(spec)) if many else jax.jit(function)
  )

  like_params = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(
      x.shape, x.dtype, sharding=getattr(x, "sharding", None)
    ),
    params,
  )
  prepare = functools.partial(sampling.weights_of, config, settings)
  run_prepare = placed(prepare, _WHOLE).lower(like_params).compile()
  on_compile("weights for decoding")
  weights = shapes_of(jax.eval_shape(prepare, like_params), _WHOLE)
  # The whole state is as many shares side by side.
  together = dataclasses.replace(shape, num_problems=count * share.num_problems)
  empty = lambda: sampling.empty_state(config, together, settings)
  state = shapes_of(jax.eval_shape(empty), rows_spec)

  def lower(function, specs, inputs, out_specs=_ROWS):
    if is_split:
      function = jax.shard_map(
        function,
        mesh=mesh,
        in_specs=(_WHOLE, _ROWS, *specs),
        out_specs=out_specs,
        check_vma=False,
      )
    return jax.jit(function, donate_argnums=1).lower(weights, state, *inputs)

  of = lambda function, *fixed: functools.partial(
    function, config, share, settings, *fixed
  )

  def decode(width):
    def run(*inputs):
      place = jax.lax.axis_index("data") if is_split else 0
      first_row = place * share.num_rows
      state, *news = of(sampling.decode, width)(*inputs, first_row=first_row)
      if is_spread:
        news = jax.lax.all_gather(news, "data", tiled=True)
      return state, *news

    return run

  vector = lambda n: abstract((count * n,))
  matrix = lambda n, width: abstract((count * n, width))
  decode_sizes, more_sizes = program_sizes.all_sizes(share, settings)
  by_size = lambda sizes: sorted(sizes, key=lambda s: s[0] * s[1], reverse=True)
  key = abstract((), jax.random.key(0).dtype, _WHOLE)
  turn = abstract((), spec=_WHOLE)
  lowered = {
    ("decode", width, batch): lower(
      decode(width),
      (_WHOLE, _ROWS, _WHOLE, _ROWS),
      (key, vector(batch), turn, vector(1)),
      (_ROWS, *[_WHOLE if is_spread else _ROWS] * 2),
    )
    for width, batch in by_size(decode_sizes)
  }
  lowered |= {
    ("feedback", width, batch): lower(
      of(sampling.read_more, width),
      (_ROWS, _ROWS, _ROWS),
      (vector(batch), matrix(batch, share.max_feedback_tokens), vector(batch)),
    )
    for width, batch in by_size(more_sizes)
  }
  c = prompts_per_call(share, settings)
  prompts = ("prompts", share.max_prompt_tokens, c)
  lowered[prompts] = lower(
    of(sampling.read_prompts),
    (_ROWS, _ROWS, _ROWS),
    (matrix(c, share.max_prompt_tokens), vector(c), vector(c)),
  )
  caches = ("caches", sampling.room(share, settings), together.num_rows)
  lowered[caches] = placed(empty, rows_spec).lower()
  decodes_on_gpu = settings.implementation == attention.CUDNN
  compiled = compilations.compile_all(
    lowered,
    lambda name: on_compile("{}: {} tokens x {}".format(*name)),
    lambda name: (
      _DECODE_ON_GPU if decodes_on_gpu and name[0] == "decode" else {}
    ),
  )
  of_kind = lambda kind: {
    (width, batch): program
    for (name, width, batch), program in compiled.items()
    if name == kind
  }
  return Programs(
    share=share,
    num_shares=count,
    prepare=run_prepare,
    empty=compiled[caches],
    read_prompts=compiled[prompts],
    read_more=of_kind("feedback"),
    decode=of_kind("decode"),
  )
