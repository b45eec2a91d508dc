"""What the driver's management library says of a device: clocks, temperature,
memory. Every answer is text for a record; none decides anything."""

import contextlib

import pynvml


@contextlib.contextmanager
def _device(index):
  pynvml.nvmlInit()
  try:
    yield pynvml.nvmlDeviceGetHandleByIndex(index)
  finally:
    pynvml.nvmlShutdown()


def describe(index: int) -> str:
  """Clocks, temperature and what holds the clocks back, in one line; the
  reason where the library does not answer."""
  try:
    with _device(index) as device:
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


def used_bytes(index: int) -> int | None:
  """Memory in use on the device, or None where the library does not say."""
  try:
    with _device(index) as device:
      return pynvml.nvmlDeviceGetMemoryInfo(device).used
  except pynvml.NVMLError:
    return None
