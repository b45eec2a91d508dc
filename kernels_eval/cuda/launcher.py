"""Loads and launches compiled kernels on one GPU.

A process of our own code alone: a candidate reaches it as device code and runs
on the device only, in a context that holds inputs, never an expected output.
Forked by `nursery.py` for `server.py`, which replaces it when it dies, hangs
or says that an error has spoilt its context.
"""

import contextlib
import ctypes
import mmap
import os
import pathlib
import signal
import socket
import sys
import time

import msgspec
import numpy as np

from kernels_eval.cuda import (
  helper_trial,
  jobs,
  own_kernels,
  state,
  timed_calls,
)
from kernels_eval.cuda import module as module_lib
from kernels_eval.cuda.driver import DriverError, call, cuda

ARENA_BYTES = 512 * 2**20
_CLEAR = 0xDD
_PR_SET_PDEATHSIG = 1
_SCRUB_WORD = 0x7FC0DEAD  # a NaN
_PRINTF_BYTES = 256 * 1024
_HELPERS = pathlib.Path(__file__).parent / "helpers.cu"
_MIN_FLUSH_BYTES = 256 * 2**20
# Of a thread. For all that a large GPU can hold it is a gigabyte.
_MAX_KEPT_STACK_BYTES = 4096


class _Log:
  """What kernels print, and failed assertions: the driver writes them to this
  process's output and error output."""

  def __init__(self):
    self._fd = os.memfd_create("log")
    # What Python itself says goes where it went before.
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(self._fd, 1)
    os.dup2(self._fd, 2)
    self._libc = ctypes.CDLL(None)

  def take(self) -> str:
    """The text since the last call, cut."""
    self._libc.fflush(None)
    text = os.pread(self._fd, jobs.MAX_LOG_BYTES, 0)
    os.ftruncate(self._fd, 0)
    os.lseek(self._fd, 0, os.SEEK_SET)
    return text.decode("utf-8", "replace")


class Launcher:
  """A context on one GPU with the memory that jobs use."""

  def __init__(self, device: int, helpers: pathlib.Path):
    """Raises DriverError: there is no usable device."""
    call(cuda.cuInit, 0)
    self._device = call(cuda.cuDeviceGet, device)
    self.uuid = state.name_of(call(cuda.cuDeviceGetUuid, self._device).bytes)
    context = call(cuda.cuDevicePrimaryCtxRetain, self._device)
    call(cuda.cuCtxSetCurrent, context)
    call(
      cuda.cuCtxSetLimit, cuda.CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE, _PRINTF_BYTES
    )
    self._stack_bytes = call(
      cuda.cuCtxGetLimit, cuda.CUlimit.CU_LIMIT_STACK_SIZE
    )
    self.stream = call(
      cuda.cuStreamCreate, cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
    )
    self._arena = int(call(cuda.cuMemAlloc, ARENA_BYTES))
    call(cuda.cuMemsetD8, self._arena, _CLEAR, ARENA_BYTES)
    self.hello = self._describe()
    is_first = not helpers.exists()
    self._helpers = self._load_helpers(helpers)
    if is_first:
      self._try_helpers(helpers)
    self._log = _Log()
    self._cache = None

  def _attribute(self, name):
    return call(
      cuda.cuDeviceGetAttribute,
      getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"),
      self._device,
    )

  def _describe(self):
    name = call(cuda.cuDeviceGetName, 256, self._device)
    version = call(cuda.cuDriverGetVersion)
    read = self._attribute
    return jobs.Hello(
      device=name.split(b"\0")[0].decode(),
      compute_capability=(
        read("COMPUTE_CAPABILITY_MAJOR"),
        read("COMPUTE_CAPABILITY_MINOR"),
      ),
      driver_version=f"{version // 1000}.{version % 1000 // 10}",
      shared_bytes=read("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
      num_processors=read("MULTIPROCESSOR_COUNT"),
      bandwidth_bytes_per_s=2e3
      * read("MEMORY_CLOCK_RATE")
      * read("GLOBAL_MEMORY_BUS_WIDTH")
      / 8,
      memory_bytes=call(cuda.cuDeviceTotalMem, self._device),
    )

  def _try_helpers(self, path):
    try:
      helper_trial.run(self)
    except RuntimeError:
      path.unlink(missing_ok=True)  # nobody else goes on with them
      raise

  def _load_helpers(self, path):
    if not path.exists():
      cubin = _compile_helpers(self.hello.compute_capability)
      own = path.with_name(f"{path.name}.{os.getpid()}")
      own.write_bytes(cubin)
      own.replace(path)
    module = call(cuda.cuModuleLoadData, path.read_bytes())
    functions = {
      n: call(cuda.cuModuleGetFunction, module, n.encode())
      for n in own_kernels.NAMES
    }
    call(
      cuda.cuFuncSetAttribute,
      functions[own_kernels.SCRUB],
      cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      self.hello.shared_bytes,
    )
    return functions

  def push_out(self) -> None:
    """Enqueues the filling of the cache with something else; what kernels have
    asked it to keep is forgotten first."""
    if self._cache is None:
      size = max(2 * self._attribute("L2_CACHE_SIZE"), _MIN_FLUSH_BYTES)
      self._cache = (int(call(cuda.cuMemAlloc, size)), size)
    call(cuda.cuCtxResetPersistingL2Cache)
    address, size = self._cache
    call(cuda.cuMemsetD8Async, address, 1, size, self.stream)

  def helper(self, name, grid, block, shared_bytes, *arguments):
    """A kernel of `helpers.cu`; each argument is a whole number of 64 bits."""
    launch = jobs.Launch(
      0,
      name,
      (grid, 1, 1),
      (block, 1, 1),
      shared_bytes,
      tuple(jobs.Argument(False, v, 8) for v in arguments),
    )
    return module_lib.Kernel(self._helpers[name], launch, 0)

  def answer(
    self, job: jobs.Run | jobs.Timing, memory: mmap.mmap
  ) -> jobs.Report:
    """Does a job; see `jobs.py`."""
    started = time.perf_counter()
    try:
      report = self._do(job, memory)
    except DriverError as error:
      report = jobs.Report(jobs.Outcome.MACHINE_FAILED, str(error), error.name)
    return msgspec.structs.replace(
      report,
      log=self._log.take(),
      wall_ms=(time.perf_counter() - started) * 1e3,
    )

  def _do(self, job, memory):
    try:
      if isinstance(job, jobs.Run):
        return self._run(job, memory)
      return timed_calls.measure(self, job, memory)
    except module_lib.Ended as end:
      report = end.report
    finally:
      self._give_stacks_back()
    # All that the job had taken is given back by now.
    if report.error == module_lib.OUT_OF_MEMORY:
      report = module_lib.out_of_memory(report, *call(cuda.cuMemGetInfo))
    if report.outcome not in jobs.SPOILING:
      # Whatever else is still to come must not be the next job's.
      call(cuda.cuStreamSynchronize, self.stream)
    return report

  def _give_stacks_back(self):
    """A driver keeps the most local memory that any kernel has needed, and
    other launchers' kernels would miss what is much."""
    kind = cuda.CUlimit.CU_LIMIT_STACK_SIZE
    with contextlib.suppress(DriverError):  # a spoilt context has none
      if call(cuda.cuCtxGetLimit, kind) > _MAX_KEPT_STACK_BYTES:
        call(cuda.cuCtxSetLimit, kind, self._stack_bytes)

  def _run(self, job, memory):
    if job.image_bytes > ARENA_BYTES:
      raise ValueError(f"an image of {job.image_bytes} bytes")
    # It ends where the arena ends: beyond the last buffer nothing is mapped.
    base = self._arena + (ARENA_BYTES - job.image_bytes) // 256 * 256
    host = np.frombuffer(memory, np.uint8)
    flat = [k for case in job.cases for k in case]
    module = module_lib.Program(
      host[: job.program_bytes].tobytes(), flat, self.hello.shared_bytes
    )
    try:
      cases = [[module.kernel(k, base) for k in case] for case in job.cases]
      for offset in job.image_offsets:
        self._run_image(cases, host[offset:], base, job.image_bytes)
      self._clear(base, job.image_bytes)
    except module_lib.Ended as end:
      if end.report.outcome == jobs.Outcome.LAUNCH_FAILED:
        self._clear(base, job.image_bytes)
      raise  # anything else ends the context with all that it holds
    finally:
      module.unload()
    return jobs.Report(
      jobs.Outcome.DONE,
      num_registers=module.num_registers,
      shared_bytes=module.shared_bytes,
      local_bytes=module.local_bytes,
    )

  def _run_image(self, cases, pixels, base, num_bytes):
    """Runs the cases on one image, which comes back."""
    scrub = self.helper(
      own_kernels.SCRUB,
      self.hello.num_processors,
      1024,
      self.hello.shared_bytes,
      self.hello.shared_bytes // 4,
      _SCRUB_WORD,
    )
    address, stream = pixels.ctypes.data, self.stream
    call(cuda.cuMemcpyHtoDAsync, base, address, num_bytes, stream)
    for i, kernels in enumerate(cases):
      scrub.enqueue(stream)
      self.enqueue(kernels, i)
      try:
        call(cuda.cuStreamSynchronize, stream)
      except DriverError as error:
        raise module_lib.kernel_error(error, i) from None
    call(cuda.cuMemcpyDtoHAsync, address, base, num_bytes, stream)

  def _clear(self, address, num_bytes):
    """The next candidate finds nothing of this one."""
    call(cuda.cuMemsetD8Async, address, _CLEAR, num_bytes, self.stream)
    call(cuda.cuStreamSynchronize, self.stream)

  def enqueue(self, kernels, case):
    """Launches one after the other; raises Ended for what the candidate did,
    and the context is free of pending errors then or spoilt."""
    for kernel in kernels:
      try:
        kernel.enqueue(self.stream)
      except DriverError as error:
        try:  # what was launched before it may be about to fail, too
          call(cuda.cuStreamSynchronize, self.stream)
        except DriverError as earlier:
          raise module_lib.kernel_error(earlier, case) from None
        if error.name in module_lib.KERNEL_ERRORS:  # of an earlier launch
          raise module_lib.kernel_error(error, case) from None
        end = module_lib.judged(
          error, module_lib.LAUNCH_ERRORS, jobs.Outcome.LAUNCH_FAILED
        )
        end.report = msgspec.structs.replace(end.report, case=case)
        raise end from None


def _compile_helpers(compute_capability):
  """Cubin of `helpers.cu`."""
  from cuda.bindings import nvrtc

  major, minor = compute_capability
  program = call_nvrtc(
    nvrtc.nvrtcCreateProgram,
    _HELPERS.read_bytes(),
    b"helpers.cu",
    0,
    None,
    None,
  )
  options = [f"--gpu-architecture=sm_{major}{minor}".encode()]
  call_nvrtc(nvrtc.nvrtcCompileProgram, program, len(options), options)
  cubin = b" " * call_nvrtc(nvrtc.nvrtcGetCUBINSize, program)
  call_nvrtc(nvrtc.nvrtcGetCUBIN, program, cubin)
  call_nvrtc(nvrtc.nvrtcDestroyProgram, program)
  return cubin


def call_nvrtc(function, *arguments):
  """As `driver.call`, for NVRTC; its failure is a broken installation."""
  status, *values = function(*arguments)
  if int(status):
    raise RuntimeError(f"{function.__name__}: {status.name}")
  return values[0] if values else None


def _serve(connection, launcher):
  while True:
    message, descriptors, _, _ = socket.recv_fds(
      connection, jobs.MAX_MESSAGE_BYTES, 1
    )
    if not message:
      return
    job = msgspec.msgpack.decode(message, type=jobs.Run | jobs.Timing)
    size = os.fstat(descriptors[0]).st_size
    memory = mmap.mmap(descriptors[0], size)
    os.close(descriptors[0])
    report = launcher.answer(job, memory)
    del memory  # NumPy views of it are gone with the job
    connection.send(msgspec.msgpack.encode(report))


def serve(descriptor: int, device: int, helpers: pathlib.Path) -> int:
  """Serves jobs until the server hangs up.

  Args:
    descriptor: of a socket.
    device: index of the GPU.
    helpers: file for our own kernels' cubin; made if it is not there.

  Returns:
    An exit status.
  """
  # A kernel that does not end keeps this process from seeing a closed socket.
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
  connection = socket.socket(fileno=descriptor)
  try:
    launcher = Launcher(device, helpers)
  except (DriverError, RuntimeError, OSError) as error:
    reason = jobs.StartFailed(str(error))
    connection.send(msgspec.msgpack.encode(reason))
    return 1
  connection.send(msgspec.msgpack.encode(launcher.hello))
  _serve(connection, launcher)
  return 0
