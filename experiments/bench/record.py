"""What a measurement leaves behind: one JSON file."""

import pathlib
import re
from typing import Any

import jax

from experiments import workdir

RESULTS = pathlib.Path(__file__).parents[1] / "results" / "bench"
BANDWIDTH = 4.3e12
"""Bytes a second of an H200's memory, as a large copy reaches them (bytes read
plus bytes written): the roofline of decoding."""


def peak_memory_gib() -> float | None:
  """Most memory of the first device that this process has used; None where
  the platform does not say."""
  stats = jax.devices()[0].memory_stats()
  peak = (stats or {}).get("peak_bytes_in_use")
  return None if peak is None else round(peak / 2**30, 2)


def device_name() -> str:
  """Number and kind of the devices, or the processor's name."""
  devices = jax.devices()
  if devices[0].platform == "cpu":
    return workdir.hardware()
  return f"{len(devices)} x {devices[0].device_kind}"


def write(
  folder: pathlib.Path, name: str, values: dict[str, Any]
) -> pathlib.Path:
  """Adds hardware, versions and commit, and writes folder/NAME.json."""
  whole = values | {
    "hardware": device_name(),
    "jax": jax.__version__,
    "commit": workdir.commit(),
  }
  path = folder / (re.sub(r"[^a-z0-9._-]+", "-", name.lower()) + ".json")
  folder.mkdir(parents=True, exist_ok=True)
  workdir.write_json(path, whole)
  return path
