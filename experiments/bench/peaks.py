"""What devices reach: the denominators of `mfu` and of the roofline.

Measured by us, and not a data sheet's promise. A kind of device or a type that
nobody has measured has no peak, and a record of it no share of one.
"""

import jax
import jax.numpy as jnp

# (device_kind, dtype) -> operations a second of a large matrix product of
# random numbers.
FLOPS = {("NVIDIA H200", "bfloat16"): 790e12}

# device_kind -> bytes a second of a large copy, read and written together.
BANDWIDTH = {"NVIDIA H200": 4.3e12}

NOTE = (
  "MFU: 6 x parameters x tokens and attention, without padding and what is "
  "computed again, of the 790 TFLOP/s that a large bfloat16 matrix product "
  "reaches on an H200 (times 0.8: of its data sheet's 990). Roofline: the time "
  "to read the weights once and each row's live keys and values at 4.3 TB/s, "
  "as a large copy there. Other devices are not measured and have neither"
)
"""How the README's table explains its shares."""


def flops(device: jax.Device, dtype) -> float | None:
  """Operations a second of one device in a dtype; None if not measured."""
  return FLOPS.get((device.device_kind, jnp.dtype(dtype).name))


def bandwidth(device: jax.Device) -> float | None:
  """Bytes a second of one device's memory; None if not measured."""
  return BANDWIDTH.get(device.device_kind)


def share(done: float, seconds: float, peak: float | None) -> float | None:
  """Of `peak` a second; None where there is no peak."""
  return None if peak is None else done / seconds / peak
