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

from kernels_eval.cuda import jobs, state
from kernels_eval.cuda import module as module_lib
from kernels_eval.cuda.driver import DriverError, call, cuda

ARENA_BYTES = 512 * 2**20
_CLEAR = 0xDD
_PR_SET_PDEATHSIG = 1
_PATTERN = 0xFF
_SCRUB_WORD = 0x7FC0DEAD  # a NaN
_PRINTF_BYTES = 256 * 1024
_HELPERS = pathlib.Path(__file__).parent / "helpers.cu"
_MIN_FLUSH_BYTES = 256 * 2**20


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
    context = call(cuda.cuDevicePrimaryCtxRetain, self._device)
    call(cuda.cuCtxSetCurrent, context)
    call(
      cuda.cuCtxSetLimit, cuda.CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE, _PRINTF_BYTES
    )
    self._stream = call(
      cuda.cuStreamCreate, cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
    )
    self._arena = int(call(cuda.cuMemAlloc, ARENA_BYTES))
    call(cuda.cuMemsetD8, self._arena, _CLEAR, ARENA_BYTES)
    self.hello = self._describe()
    self._helpers = self._load_helpers(helpers)
    self._log = _Log()
    self._flush = None

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

  def _load_helpers(self, path):
    if not path.exists():
      cubin = _compile_helpers(self.hello.compute_capability)
      own = path.with_name(f"{path.name}.{os.getpid()}")
      own.write_bytes(cubin)
      own.replace(path)
    module = call(cuda.cuModuleLoadData, path.read_bytes())
    names = ("ke_scrub_shared", *(f"ke_repeat_{n}" for n in (1, 2, 4, 8)))
    functions = {
      n: call(cuda.cuModuleGetFunction, module, n.encode()) for n in names
    }
    call(
      cuda.cuFuncSetAttribute,
      functions["ke_scrub_shared"],
      cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      self.hello.shared_bytes,
    )
    return functions

  def _helper(self, name, grid, block, shared_bytes, *arguments):
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
      do = self._run if isinstance(job, jobs.Run) else self._time
      report = do(job, memory)
    except module_lib.Ended as end:
      report = end.report
    except DriverError as error:
      report = jobs.Report(jobs.Outcome.MACHINE_FAILED, str(error), error.name)
    return msgspec.structs.replace(
      report,
      log=self._log.take(),
      wall_ms=(time.perf_counter() - started) * 1e3,
    )

  def _run(self, job, memory):
    if job.image_bytes > ARENA_BYTES:
      raise ValueError(f"an image of {job.image_bytes} bytes")
    # It ends where the arena ends: beyond the last buffer nothing is mapped.
    base = self._arena + (ARENA_BYTES - job.image_bytes) // 256 * 256
    host = np.frombuffer(memory, np.uint8)
    scrub = self._helper(
      "ke_scrub_shared",
      self.hello.num_processors,
      1024,
      self.hello.shared_bytes,
      self.hello.shared_bytes // 4,
      _SCRUB_WORD,
    )
    flat = [k for case in job.cases for k in case]
    module = module_lib.Program(
      host[: job.program_bytes].tobytes(), flat, self.hello.shared_bytes
    )
    try:
      cases = [[module.kernel(k, base) for k in case] for case in job.cases]
      for offset in job.image_offsets:
        address = host[offset:].ctypes.data
        call(
          cuda.cuMemcpyHtoDAsync, base, address, job.image_bytes, self._stream
        )
        for i, kernels in enumerate(cases):
          scrub.enqueue(self._stream)
          self._enqueue(kernels, i)
          try:
            call(cuda.cuStreamSynchronize, self._stream)
          except DriverError as error:
            raise module_lib.kernel_error(error, i) from None
        call(
          cuda.cuMemcpyDtoHAsync, address, base, job.image_bytes, self._stream
        )
      # The next candidate finds nothing of this one.
      call(cuda.cuMemsetD8Async, base, _CLEAR, job.image_bytes, self._stream)
      call(cuda.cuStreamSynchronize, self._stream)
    finally:
      module.unload()
    return jobs.Report(
      jobs.Outcome.DONE,
      num_registers=module.num_registers,
      shared_bytes=module.shared_bytes,
      local_bytes=module.local_bytes,
    )

  def _enqueue(self, kernels, case):
    for kernel in kernels:
      try:
        kernel.enqueue(self._stream)
      except DriverError as error:
        if error.name in module_lib.KERNEL_ERRORS:  # of an earlier launch
          raise module_lib.kernel_error(error, case) from None
        end = module_lib.judged(
          error, module_lib.LAUNCH_ERRORS, jobs.Outcome.LAUNCH_FAILED
        )
        end.report = msgspec.structs.replace(end.report, case=case)
        raise end from None

  def _time(self, job, memory):
    host = np.frombuffer(memory, np.uint8)
    if self._flush is None:
      size = max(2 * self._attribute("L2_CACHE_SIZE"), _MIN_FLUSH_BYTES)
      self._flush = (int(call(cuda.cuMemAlloc, size)), size)
    with contextlib.ExitStack() as stack:

      def allocate(num_bytes):
        address = call(cuda.cuMemAlloc, max(num_bytes, 256))
        stack.callback(_free, address)
        return int(address)

      base = allocate(job.image_bytes)
      tables = []
      for item in job.inputs:
        num_bytes = item.base_items * item.item_bytes
        tables.append(allocate(num_bytes))
        call(
          cuda.cuMemcpyHtoDAsync,
          tables[-1],
          host[item.base_offset :].ctypes.data,
          num_bytes,
          self._stream,
        )
      programs = []
      for subject in job.subjects:
        end = subject.program_offset + subject.program_bytes
        module = module_lib.Program(
          host[subject.program_offset : end].tobytes(),
          subject.launches,
          self.hello.shared_bytes,
        )
        stack.callback(module.unload)
        programs.append([module.kernel(k, base) for k in subject.launches])
      events = [
        call(cuda.cuEventCreate, cuda.CUevent_flags.CU_EVENT_DEFAULT)
        for _ in range(2)
      ]
      for event in events:
        stack.callback(_destroy_event, event)
      times = [[] for _ in programs]
      for c, rolls in enumerate(job.rolls):
        for s, kernels in enumerate(programs):
          self._fill(job, base, tables, rolls[s])
          times[s].append(self._timed_ms(kernels, events))
          if s == 0 and c == job.checked:
            for image_offset, offset, num_bytes in job.outputs:
              call(
                cuda.cuMemcpyDtoHAsync,
                host[offset:].ctypes.data,
                base + image_offset,
                num_bytes,
                self._stream,
              )
      call(cuda.cuMemsetD8Async, base, _CLEAR, job.image_bytes, self._stream)
      call(cuda.cuStreamSynchronize, self._stream)
      return jobs.Report(
        jobs.Outcome.DONE,
        times_ms=tuple(tuple(t[job.num_warm :]) for t in times),
        device_state=state.describe(int(self._device)),
      )

  def _fill(self, job, base, tables, roll):
    """New inputs; everything else gets the pattern."""
    call(cuda.cuMemsetD8Async, base, _PATTERN, job.image_bytes, self._stream)
    for item, table in zip(job.inputs, tables, strict=True):
      if not item.num_items:
        continue
      self._helper(
        f"ke_repeat_{item.item_bytes}",
        min(-(-item.num_items // 256), 16 * self.hello.num_processors),
        256,
        0,
        base + item.image_offset,
        table,
        item.num_items,
        item.base_items,
        roll % item.base_items if item.rolls else 0,
      ).enqueue(self._stream)

  def _timed_ms(self, kernels, events):
    # What a kernel has asked the cache to keep is forgotten, then the rest is
    # pushed out. While that runs, the launches below are already queued.
    call(cuda.cuCtxResetPersistingL2Cache)
    address, size = self._flush
    call(cuda.cuMemsetD8Async, address, 1, size, self._stream)
    call(cuda.cuEventRecord, events[0], self._stream)
    self._enqueue(kernels, 0)
    call(cuda.cuEventRecord, events[1], self._stream)
    try:
      call(cuda.cuStreamSynchronize, self._stream)
    except DriverError as error:
      raise module_lib.kernel_error(error, 0) from None
    return float(call(cuda.cuEventElapsedTime, *events))


def _free(address):
  with contextlib.suppress(DriverError):
    call(cuda.cuMemFree, address)


def _destroy_event(event):
  with contextlib.suppress(DriverError):
    call(cuda.cuEventDestroy, event)


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
