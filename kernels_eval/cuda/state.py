"""What the driver's management library says of a device: clocks, temperature,
memory. Every answer is text for a record; none decides anything."""

import contextlib
import os

import pynvml


@contextlib.contextmanager
def _visible():
  """Handles of the devices that CUDA shows this process, in its order. The
  library itself knows nothing of CUDA_VISIBLE_DEVICES."""
  pynvml.nvmlInit()
  try:
    yield [
      pynvml.nvmlDeviceGetHandleByIndex(i)
      for i in choose(_uuids(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    ]
  finally:
    pynvml.nvmlShutdown()


def _uuids():
  count = pynvml.nvmlDeviceGetCount()
  handles = (pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(count))
  return [pynvml.nvmlDeviceGetUUID(handle) for handle in handles]


def choose(uuids: list[str], visible: str | None) -> list[int]:
  """Which of the machine's devices a process sees.

  Args:
    uuids: of all devices, by index.
    visible: CUDA_VISIBLE_DEVICES; None where it is not set.

  Returns:
    Their indices in the process's order: numbers, or beginnings of UUIDs. As
    CUDA does, the list ends at the first entry that names no device.
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


def describe(index: int) -> str:
  """Clocks, temperature and what holds the clocks back, in one line; the
  reason where the library does not answer."""
  try:
    with _visible() as devices:
      device = devices[index]
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
  except (pynvml.NVMLError, IndexError) as error:
    return f"device state unknown: {error}"


def used_bytes() -> tuple[int, ...] | None:
  """Memory in use by anybody on each device that CUDA shows this process, or
  None where the library does not say."""
  try:
    with _visible() as devices:
      return tuple(
        int(pynvml.nvmlDeviceGetMemoryInfo(device).used) for device in devices
      )
  except pynvml.NVMLError:
    return None
