"""What a measurement leaves behind: one JSON file."""

import pathlib
import re
from typing import Any

import jax

from experiments import provenance, workdir

FIELDS = (
  "kind",
  "model",
  "batch",
  "roofline_fraction",
  "mfu",
  "useful_slot_fraction",
  "tokens_per_second",
  "peak_memory_gib",
  "idle_fraction",
)
"""What every file has; null where a kind does not measure it."""

RESULTS = pathlib.Path(__file__).parents[1] / "results" / "bench"


def peak_memory_gib() -> float | None:
  """Most memory of the first device that this process has used; None where
  the platform does not say."""
  stats = jax.devices()[0].memory_stats()
  peak = (stats or {}).get("peak_bytes_in_use")
  return None if peak is None else round(peak / 2**30, 2)


def device_name(num_devices: int) -> str:
  """Number and kind of the devices that worked, or the processor's name."""
  device = jax.devices()[0]
  if device.platform == "cpu":
    return provenance.hardware()
  return f"{num_devices} x {device.device_kind}"


def write(
  folder: pathlib.Path, name: str, values: dict[str, Any]
) -> pathlib.Path:
  """Adds hardware, versions and commit, and writes folder/NAME.json.

  Args:
    folder: made if there is none.
    name: of the file.
    values: what was measured; `devices` of them say how many worked.
  """
  whole = (
    dict.fromkeys(FIELDS)
    | values
    | {
      "hardware": device_name(values["devices"]),
      "jax": jax.__version__,
      "commit": provenance.commit(),
    }
  )
  path = folder / (re.sub(r"[^a-z0-9._-]+", "-", name.lower()) + ".json")
  folder.mkdir(parents=True, exist_ok=True)
  workdir.write_json(path, whole)
  return path
