"""The device mesh and what lies where. One device is a 1 x 1 mesh."""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from leap_jax.types import Bucket


def make_mesh() -> jax.sharding.Mesh:
  """All devices along `data`; `model` has one for now."""
  devices = jax.devices()
  return jax.make_mesh(
    (len(devices), 1),
    ("data", "model"),
    axis_types=(AxisType.Auto, AxisType.Auto),
    devices=devices,
  )


def replicated(mesh: jax.sharding.Mesh) -> NamedSharding:
  """Every device holds all of it."""
  return NamedSharding(mesh, PartitionSpec())


def replicate(mesh: jax.sharding.Mesh, tree: Any) -> Any:
  """Puts a copy of every leaf on every device."""
  return jax.device_put(tree, replicated(mesh))


def shard_rows(mesh: jax.sharding.Mesh, bucket: Bucket) -> Bucket:
  """Splits the rows of each micro-batch over the data axis.

  Raises:
    ValueError: the rows of a micro-batch do not divide.
  """
  num_data = mesh.shape["data"]
  if bucket.tokens.shape[1] % num_data:
    raise ValueError(
      f"micro-batches of {bucket.tokens.shape[1]} rows do not divide over "
      f"{num_data} devices"
    )
  rows = NamedSharding(mesh, PartitionSpec(None, "data", None))
  arrays = {
    name: jax.device_put(np.asarray(value), rows)
    for name, value in bucket._asdict().items()
    if name != "num_micro"
  }
  count = jax.device_put(np.asarray(bucket.num_micro), replicated(mesh))
  return Bucket(**arrays, num_micro=count)
