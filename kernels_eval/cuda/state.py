"""What the driver's management library says of a device: clocks, temperature,
memory. Every answer is text for a record; none decides anything."""

import contextlib
import os
import uuid as uuid_lib

import pynvml


def name_of(uuid: bytes) -> str:
  """How the library names a device of which CUDA says these 16 bytes. It knows
  nothing of CUDA's order of devices, nor of CUDA_VISIBLE_DEVICES."""
  return f"GPU-{uuid_lib.UUID(bytes=bytes(uuid))}"


@contextlib.contextmanager
def _started():
  pynvml.nvmlInit()
  try:
    yield
  finally:
    pynvml.nvmlShutdown()


def describe(name: str) -> str:
  """Clocks, temperature and what holds the clocks back, in one line; the
  reason where the library does not answer.

  Args:
    name: of `name_of`.
  """
  try:
    with _started():
      device = pynvml.nvmlDeviceGetHandleByUUID(name)
      processor = pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM)
      memory = pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_MEM)
      temperature = pynvml.nvmlDeviceGetTemperature(
        device, pynvml.NVML_TEMPERATURE_GPU
      )
      slowed = pynvml.nvmlDeviceGetCurrentClocksEventReasons(device)
      return (
        f"SM {processor} MHz, memory {memory} MHz, {temperature} C, "
        f"clock limits {slowed:#x}"
      )
  except pynvml.NVMLError as error:
    return f"device state unknown: {error}"


def choose(uuids: list[str], visible: str | None) -> list[int]:
  """Which of the machine's devices a process sees.

  Args:
    uuids: of all devices, by the library's index.
    visible: CUDA_VISIBLE_DEVICES; None where it is not set.

  Returns:
    Their indices: of numbers, which mean the same to CUDA where the devices are
    alike or CUDA_DEVICE_ORDER is PCI_BUS_ID, or of beginnings of UUIDs. As CUDA
    does, the list ends at the first entry that names no device.
  """
  if visible is None:
    return list(range(len(uuids)))
  chosen = []
  for entry in visible.split(","):
    name = entry.strip()
    named = [
      i
      for i, uuid in enumerate(uuids)
      if name == str(i) or (name[:1].isalpha() and uuid.startswith(name))
    ]
    if len(named) != 1:
      break
    chosen += named
  return chosen


def used_bytes() -> tuple[int, ...] | None:
  """Memory in use by anybody on each device that CUDA shows this process, or
  None where the library does not say or knows none of them."""
  try:
    with _started():
      count = pynvml.nvmlDeviceGetCount()
      devices = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
      uuids = [pynvml.nvmlDeviceGetUUID(device) for device in devices]
      chosen = choose(uuids, os.environ.get("CUDA_VISIBLE_DEVICES"))
      used = (pynvml.nvmlDeviceGetMemoryInfo(devices[i]).used for i in chosen)
      return tuple(int(n) for n in used) or None
  except pynvml.NVMLError:
    return None
