"""The CUDA driver, with errors as exceptions."""

from typing import Any

from cuda.bindings import driver as _driver

cuda = _driver


class DriverError(Exception):
  """A call of the driver failed. `name` is the driver's (CUDA_ERROR_...)."""

  def __init__(self, code: int, name: str, call: str):
    super().__init__(f"{call}: {name}")
    self.code = code
    self.name = name


def call(function, *arguments) -> Any:
  """Calls and returns what it returns besides the status: None, one value or
  a tuple.

  Raises:
    DriverError: the status is not success.
    RuntimeError: the driver's library is not there, or has no such function.
  """
  try:
    status, *values = function(*arguments)
  except RuntimeError as error:
    raise RuntimeError(
      f"the NVIDIA driver's library is missing or too old ({error}); in a "
      "container, NVIDIA_DRIVER_CAPABILITIES must name `compute`"
    ) from None
  if status != _driver.CUresult.CUDA_SUCCESS:
    raise DriverError(int(status), status.name, function.__name__)
  if not values:
    return None
  return values[0] if len(values) == 1 else tuple(values)
