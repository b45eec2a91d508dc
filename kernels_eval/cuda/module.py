"""Loaded programs, their launches, and what the driver's errors mean."""

import contextlib
import struct

import msgspec
import numpy as np

from kernels_eval.cuda import jobs
from kernels_eval.cuda.driver import DriverError, call, cuda

_STATIC_SHARED_BYTES = 48 * 1024
OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
_ALLOWED_BYTES = 4 * 2**30  # see `out_of_memory`

# What a kernel can cause. Any other error is the machine's.
KERNEL_ERRORS = {
  "CUDA_ERROR_ILLEGAL_ADDRESS": "an access outside of all memory",
  "CUDA_ERROR_MISALIGNED_ADDRESS": "a misaligned access",
  "CUDA_ERROR_INVALID_ADDRESS_SPACE": "an access to the wrong kind of memory",
  "CUDA_ERROR_INVALID_PC": "a jump to an address that holds no code",
  "CUDA_ERROR_ILLEGAL_INSTRUCTION": "an illegal instruction",
  "CUDA_ERROR_HARDWARE_STACK_ERROR": "a stack overflow",
  "CUDA_ERROR_ASSERT": "an assertion failed",
  "CUDA_ERROR_LAUNCH_FAILED": "the kernel stopped (trap or device exception)",
}
LAUNCH_ERRORS = (
  "CUDA_ERROR_INVALID_VALUE",
  "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
  "CUDA_ERROR_INVALID_HANDLE",
  "CUDA_ERROR_NOT_SUPPORTED",
  "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
  # Of local memory, which the driver provides for all threads that the device
  # can hold. What a module takes itself is loaded by then. See `out_of_memory`.
  OUT_OF_MEMORY,
)
_LOAD_ERRORS = (
  "CUDA_ERROR_INVALID_IMAGE",
  "CUDA_ERROR_NO_BINARY_FOR_GPU",
  "CUDA_ERROR_INVALID_SOURCE",
  "CUDA_ERROR_INVALID_PTX",
  "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
  OUT_OF_MEMORY,  # of the module's own arrays; see `out_of_memory`
  "CUDA_ERROR_NOT_FOUND",
  "CUDA_ERROR_INVALID_VALUE",
)


class Ended(Exception):
  """The job ends here with this report."""

  def __init__(self, report: jobs.Report):
    super().__init__(report.message)
    self.report = report


def bits(number: float) -> int:
  """Of a double, as a kernel's argument of 64 bits."""
  return int.from_bytes(struct.pack("<d", number), "little")


class Kernel:
  """A function of a loaded module with its packed arguments."""

  def __init__(self, function, launch: jobs.Launch, base: int):
    self._function = function
    self._launch = launch
    values = [
      (a.value + base if a.is_address else a.value) & (2**64 - 1)
      for a in launch.arguments
    ]
    self._values = np.array(values, np.uint64)
    self._pointers = self._values.ctypes.data + 8 * np.arange(
      len(values), dtype=np.uint64
    )

  def enqueue(self, stream) -> None:
    """Raises DriverError."""
    launch = self._launch
    call(
      cuda.cuLaunchKernel,
      self._function,
      *launch.grid,
      *launch.block,
      launch.shared_bytes,
      stream,
      self._pointers.ctypes.data if len(self._values) else 0,
      0,
    )


class Program:
  """A loaded candidate: the modules of its kernels. Owns them."""

  def __init__(self, program: bytes, launches, max_shared_bytes: int):
    self._modules = []
    self._functions = {}
    self._max_shared_bytes = max_shared_bytes
    self.num_registers = self.shared_bytes = self.local_bytes = 0
    try:
      for binary in msgspec.msgpack.decode(program, type=list[bytes]):
        self._load(binary)
      for launch in launches:
        self._prepare(launch)
    except BaseException:
      self.unload()
      raise

  def _load(self, binary):
    try:
      # PTX is text, which the driver reads up to a zero.
      self._modules.append(call(cuda.cuModuleLoadData, binary + b"\0"))
    except DriverError as error:
      raise judged(error, _LOAD_ERRORS, jobs.Outcome.LOAD_FAILED) from None

  def _prepare(self, launch):
    key = (launch.module, launch.entry)
    function = self._functions.get(key)
    if function is None:
      try:
        function = self._find(launch)
      except DriverError as error:
        raise judged(error, _LOAD_ERRORS, jobs.Outcome.LOAD_FAILED) from None
      self._functions[key] = function
      # The driver reads as many parameters as the kernel has.
      wanted = _parameter_bytes(function)
      given = [a.num_bytes for a in launch.arguments]
      if wanted != given:
        raise Ended(
          jobs.Report(
            jobs.Outcome.BAD_PARAMETERS,
            f"its parameters take {wanted} bytes; it is given {given}",
          )
        )
    static = call(
      cuda.cuFuncGetAttribute,
      cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
      function,
    )
    if static + launch.shared_bytes > self._max_shared_bytes:
      raise Ended(
        jobs.Report(
          jobs.Outcome.LAUNCH_FAILED,
          f"shared memory: {static} static + {launch.shared_bytes} dynamic = "
          f"{static + launch.shared_bytes} bytes; a block can have "
          f"{self._max_shared_bytes}",
        )
      )
    if static + launch.shared_bytes > _STATIC_SHARED_BYTES:
      kind = cuda.CUfunction_attribute
      call(
        cuda.cuFuncSetAttribute,
        function,
        kind.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        self._max_shared_bytes - static,
      )

  def _find(self, launch):
    """The function; whichever of these calls comes first may load it."""
    function = call(
      cuda.cuModuleGetFunction,
      self._modules[launch.module],
      launch.entry.encode(),
    )
    kind = cuda.CUfunction_attribute
    read = lambda attribute: call(cuda.cuFuncGetAttribute, attribute, function)
    self.num_registers = max(
      self.num_registers, read(kind.CU_FUNC_ATTRIBUTE_NUM_REGS)
    )
    self.shared_bytes = max(
      self.shared_bytes, read(kind.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    )
    self.local_bytes = max(
      self.local_bytes, read(kind.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    )
    return function

  def kernel(self, launch: jobs.Launch, base: int) -> Kernel:
    """The launch, with addresses for an image at `base`."""
    return Kernel(self._functions[launch.module, launch.entry], launch, base)

  def unload(self) -> None:
    """Gives its memory back; nothing happens in a spoilt context."""
    for module in self._modules:
      with contextlib.suppress(DriverError):
        call(cuda.cuModuleUnload, module)


def _parameter_bytes(function):
  sizes = []
  while True:
    try:
      _, size = call(cuda.cuFuncGetParamInfo, function, len(sizes))
    except DriverError:
      return sizes
    sizes.append(size)


def judged(error: DriverError, names, outcome: jobs.Outcome) -> Ended:
  """The end of a job by an error that a candidate causes, or the machine."""
  if error.name in names:
    return Ended(jobs.Report(outcome, str(error), error.name))
  return Ended(jobs.Report(jobs.Outcome.MACHINE_FAILED, str(error), error.name))


def out_of_memory(
  report: jobs.Report, free_bytes: int, total_bytes: int
) -> jobs.Report:
  """Whom a job's end for want of memory blames.

  A program may count on 4 GiB, or half of a smaller device's memory, and on no
  more. Where so much is free and did not do, it wanted more than that: its
  arrays, or its threads' local memory. Where less is free, others have the
  rest, another program on the device perhaps, and it need not have wanted much.
  (Not half of any device: a learner that lives beside the judges may have three
  quarters of it, and a program without measure would be nobody's fault.)

  Args:
    report: the end, which blames the candidate.
    free_bytes: on the device, once the job has given back all that it had.
    total_bytes: of the device.

  Returns:
    The report as it is, or one that blames the machine.
  """
  if free_bytes >= min(_ALLOWED_BYTES, total_bytes // 2):
    return report
  return jobs.Report(
    jobs.Outcome.MACHINE_FAILED,
    f"{report.message}: only {free_bytes / 2**30:.1f} of the device's "
    f"{total_bytes / 2**30:.1f} GiB are free; what else uses it?",
    report.error,
  )


def kernel_error(error: DriverError, case: int) -> Ended:
  """The end of a job by an error that running kernels have left."""
  if error.name not in KERNEL_ERRORS:
    return judged(error, (), jobs.Outcome.MACHINE_FAILED)
  return Ended(
    jobs.Report(
      jobs.Outcome.KERNEL_FAILED,
      KERNEL_ERRORS[error.name],
      error.name,
      case=case,
    )
  )
