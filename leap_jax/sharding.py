"""The device mesh and what lies where. One device is a 1 x 1 mesh.

Rows of a batch are split over the axis `data`. Parameters and moments are split
too, so that no device holds all of them: each matrix over `data` along its
width (gathered layer by layer while it is used), and over `model` along heads
and MLP (which stays split: every device computes its own heads). What does not
divide evenly is not split.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from leap_jax.models import transformer, whole_rows
from leap_jax.types import Bucket

DATA, MODEL = "data", "model"


class MeshError(ValueError):
  """The devices do not suit the settings; one line says how."""


def data_devices(num_devices: int, model_devices: int) -> int:
  """Devices along `data`.

  Args:
    num_devices: in all.
    model_devices: along `model`.

  Raises:
    MeshError: they do not divide.
  """
  if num_devices % model_devices:
    raise MeshError(
      f"config.run.model_devices={model_devices} does not divide the "
      f"{num_devices} devices; set it to a divisor of them, such as 1"
    )
  return num_devices // model_devices


def make_mesh(model_devices: int = 1) -> jax.sharding.Mesh:
  """All devices of all hosts: neighbours along `model`, the rest along `data`.

  Args:
    model_devices: devices that share the heads of one copy of the model.

  Raises:
    MeshError: the devices do not divide.
  """
  devices = jax.devices()
  return jax.make_mesh(
    (data_devices(len(devices), model_devices), model_devices),
    (DATA, MODEL),
    axis_types=(AxisType.Auto, AxisType.Auto),
    devices=devices,
  )


def replicated(mesh: jax.sharding.Mesh) -> NamedSharding:
  """Every device holds all of it."""
  return NamedSharding(mesh, PartitionSpec())


def _put(tree, shardings):
  """In several processes an array of one of them goes over its host."""
  if jax.process_count() > 1:
    is_own = lambda x: isinstance(x, jax.Array) and x.is_fully_addressable
    tree = jax.tree.map(lambda x: np.asarray(x) if is_own(x) else x, tree)
  return jax.device_put(tree, shardings)


def replicate(mesh: jax.sharding.Mesh, tree: Any) -> Any:
  """Puts a copy of every leaf on every device."""
  return _put(tree, replicated(mesh))


def shard_rows(mesh: jax.sharding.Mesh, bucket: Bucket) -> Bucket:
  """Splits the rows of each micro-batch over the data axis.

  Where they do not divide, rows without weight fill them up.
  """
  extra = -bucket.tokens.shape[1] % mesh.shape[DATA]

  def put(array):
    array = np.asarray(array)
    if array.ndim == 0:
      return jax.device_put(array, replicated(mesh))
    widths = [(0, extra) if axis == 1 else (0, 0) for axis in range(array.ndim)]
    return jax.device_put(
      np.pad(array, widths), NamedSharding(mesh, PartitionSpec(None, DATA))
    )

  return jax.tree.map(put, bucket)


# The last two axes of each matrix: which is split over what. `heads` and
# `kv_heads` are split only if each device gets whole heads.
_WIDTH, _HEADS, _KV_HEADS, _MLP, _VOCABULARY = (
  "width",
  "heads",
  "kv_heads",
  "mlp",
  "vocabulary",
)
_MATRICES = {
  "query": (_WIDTH, _HEADS),
  "key": (_WIDTH, _KV_HEADS),
  "value": (_WIDTH, _KV_HEADS),
  "out": (_HEADS, _WIDTH),
  "gate": (_WIDTH, _MLP),
  "up": (_WIDTH, _MLP),
  "down": (_MLP, _WIDTH),
  "embedding": (_VOCABULARY, _WIDTH),
  "head": (_VOCABULARY, _WIDTH),
}


def _names(path):
  return [getattr(key, "key", getattr(key, "name", None)) for key in path]


def _spec(config, mesh, path, shape) -> PartitionSpec:
  """Of one parameter (or its moment), found by the names in its path."""
  names = [name for name in _names(path) if name in _MATRICES]
  if not names or not shape:
    return PartitionSpec()
  size = mesh.shape[MODEL]
  heads_divide = config.num_heads % size == 0
  kv_heads_divide = config.num_kv_heads % size == 0
  # Heads without the keys that they look at would have to fetch them.
  divides = {
    _WIDTH: False,
    _HEADS: heads_divide and kv_heads_divide,
    _KV_HEADS: heads_divide and kv_heads_divide,
    _MLP: True,
    _VOCABULARY: True,
  }
  first, second = _MATRICES[names[0]]
  kinds = {
    "bias": (second,),
    "lora_a": (first, None),
    "lora_b": (None, second),
  }.get(_names(path)[-1], (first, second))
  axes = [None] * (len(shape) - len(kinds)) + list(kinds)
  if len(axes) != len(shape):
    return PartitionSpec()

  def axis_of(kind, length):
    if kind is None:
      return None
    if kind == _WIDTH:
      return DATA if length % mesh.shape[DATA] == 0 else None
    return MODEL if divides[kind] and length % size == 0 else None

  return PartitionSpec(*map(axis_of, axes, shape))


def param_shardings(
  config: transformer.ModelConfig, mesh: jax.sharding.Mesh, tree: Any
) -> Any:
  """Where parameters, gradients and moments lie.

  Args:
    config: of the model.
    mesh: of the devices.
    tree: arrays or shapes; any tree whose paths hold the names of the model's
      parameters. Whatever has another name is on every device.

  Returns:
    A tree of NamedSharding.
  """
  return jax.tree_util.tree_map_with_path(
    lambda path, x: NamedSharding(mesh, _spec(config, mesh, path, x.shape)),
    tree,
  )


def shard_params(
  config: transformer.ModelConfig, mesh: jax.sharding.Mesh, tree: Any
) -> Any:
  """Puts parameters or a whole TrainState where `param_shardings` says."""
  return _put(tree, param_shardings(config, mesh, tree))


def placing(
  config: transformer.ModelConfig, mesh: jax.sharding.Mesh
) -> Callable[[tuple[str, ...], np.ndarray], jax.Array]:
  """place(names in the path, array): one parameter to where it lies.

  Every device gets its own part straight from the host. In several processes
  all hold the same array; nothing is exchanged.

  Args:
    config: of the model.
    mesh: of the devices.
  """

  def place(names, array):
    path = tuple(jax.tree_util.DictKey(name) for name in names)
    return jax.make_array_from_callback(
      array.shape,
      NamedSharding(mesh, _spec(config, mesh, path, array.shape)),
      lambda index: array[index],
    )

  return place


def _gathered(spec):
  return PartitionSpec(*(axis if axis == MODEL else None for axis in spec))


def execution(
  config: transformer.ModelConfig,
  mesh: jax.sharding.Mesh,
  **options: Any,
) -> whole_rows.Execution:
  """How a forward pass runs on these devices.

  Args:
    config: of the model.
    mesh: of the devices.
    **options: fields of `Execution` that have nothing to do with devices.
  """
  if mesh.size == 1:
    return whole_rows.Execution(**options)
  constrain = jax.lax.with_sharding_constraint

  def place_params(params):
    """All of the width, and this device's heads or ids."""
    return jax.tree_util.tree_map_with_path(
      lambda path, x: constrain(
        x, NamedSharding(mesh, _gathered(_spec(config, mesh, path, x.shape)))
      ),
      params,
    )

  rows = NamedSharding(mesh, PartitionSpec(DATA))
  return whole_rows.Execution(
    place_params=place_params,
    place_hidden=lambda x: constrain(x, rows),
    split_attention=functools.partial(_split_attention, config, mesh),
    **options,
  )


def _split_attention(config, mesh, attend: Callable) -> Callable:
  """Attention of each device's own rows and heads; nothing is exchanged."""
  size = mesh.shape[MODEL]
  divide = config.num_heads % size == 0 and config.num_kv_heads % size == 0
  heads = PartitionSpec(DATA, None, MODEL if divide else None)
  rows = PartitionSpec(DATA)

  def split(query, keys, values, lengths, **rest):
    # What enters shard_map is traced. A number stays one: cuDNN knows windows
    # that are known when it is compiled.
    fixed = {name: x for name, x in rest.items() if isinstance(x, int)}
    rest = {name: x for name, x in rest.items() if name not in fixed}
    run = jax.shard_map(
      lambda q, k, v, n, r: attend(q, k, v, n, **fixed, **r),
      mesh=mesh,
      in_specs=(heads, heads, heads, rows, PartitionSpec()),
      out_specs=heads,
      # cuDNN's primitive says nothing about what varies over the mesh.
      check_vma=False,
    )
    return run(query, keys, values, lengths, rest)

  return split
