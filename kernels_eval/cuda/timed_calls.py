"""Programs timed in turn on one GPU, in a launcher.

All programs of a call get the same inputs, which differ from call to call. What
the first program writes, in every call, is kept aside and compared on the
device with what the last one writes: idle, stale or partial work in some of the
calls is seen in each of them. That comparison is coarse; the judge checks one
call, which the programs cannot tell from the others, as closely as a case.
"""

import contextlib
import struct

import numpy as np

from kernels_eval.cuda import jobs, state
from kernels_eval.cuda import module as module_lib
from kernels_eval.cuda.driver import DriverError, call, cuda

_CLEAR = 0xDD
_PATTERN = 0xFF
_BLOCK = 256


def measure(launcher, job: jobs.Timing, memory) -> jobs.Report:
  """Does the job.

  Args:
    launcher: a `launcher.Launcher`.
    job: what to time.
    memory: the job's mapping; gets the outputs of the checked call.

  Raises:
    Ended: a program has failed.
    DriverError: the device has.
  """
  host = np.frombuffer(memory, np.uint8)
  stream = launcher.stream
  num_timed = len(job.rolls) - job.num_warm
  num_far = np.zeros((len(job.rolls), len(job.outputs)), np.uint64)
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
        stream,
      )
    kept = [allocate(output.num_bytes) for output in job.outputs]
    counts = allocate(num_far.nbytes)
    call(cuda.cuMemsetD8Async, counts, 0, num_far.nbytes, stream)
    programs = []
    for subject in job.subjects:
      end = subject.program_offset + subject.program_bytes
      module = module_lib.Program(
        host[subject.program_offset : end].tobytes(),
        subject.launches,
        launcher.hello.shared_bytes,
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
    for c, roll in enumerate(job.rolls):
      for s, kernels in enumerate(programs):
        _fill(launcher, job, base, tables, roll)
        times[s].append(_timed_ms(launcher, kernels, events))
        if s == 0:
          _keep(job, base, kept, stream)
          if c == job.checked:
            _give(job, base, host, stream)
      row = counts + c * num_far.strides[0]
      for o, output in enumerate(job.outputs):
        _count_far(launcher, output, kept[o], base, row + o * num_far.itemsize)
    call(
      cuda.cuMemcpyDtoHAsync,
      num_far.ctypes.data,
      counts,
      num_far.nbytes,
      stream,
    )
    # The next candidate finds nothing of this one.
    call(cuda.cuMemsetD8Async, base, _CLEAR, job.image_bytes, stream)
    for address, output in zip(kept, job.outputs, strict=True):
      call(cuda.cuMemsetD8Async, address, _CLEAR, output.num_bytes, stream)
    call(cuda.cuStreamSynchronize, stream)
  return jobs.Report(
    jobs.Outcome.DONE,
    times_ms=tuple(tuple(t[-num_timed:]) for t in times),
    num_far=tuple(tuple(int(n) for n in row) for row in num_far[-num_timed:]),
    device_state=state.describe(int(launcher.device)),
  )


def _fill(launcher, job, base, tables, roll):
  """New inputs; everything else gets a pattern."""
  stream = launcher.stream
  call(cuda.cuMemsetD8Async, base, _PATTERN, job.image_bytes, stream)
  for output in job.outputs:
    call(
      cuda.cuMemsetD8Async,
      base + output.image_offset,
      output.poison_byte,
      output.num_bytes,
      stream,
    )
  for item, table in zip(job.inputs, tables, strict=True):
    if not item.num_items:
      continue
    launcher.helper(
      f"ke_repeat_{item.item_bytes}",
      _num_blocks(launcher, item.num_items),
      _BLOCK,
      0,
      base + item.image_offset,
      table,
      item.num_items,
      item.base_items,
      roll % item.base_items if item.rolls else 0,
    ).enqueue(stream)


def _num_blocks(launcher, num_items):
  return min(-(-num_items // _BLOCK), 16 * launcher.hello.num_processors)


def _timed_ms(launcher, kernels, events):
  # While the cache is filled, the launches below are already queued.
  launcher.push_out()
  call(cuda.cuEventRecord, events[0], launcher.stream)
  launcher.enqueue(kernels, 0)
  call(cuda.cuEventRecord, events[1], launcher.stream)
  try:
    call(cuda.cuStreamSynchronize, launcher.stream)
  except DriverError as error:
    raise module_lib.kernel_error(error, 0) from None
  return float(call(cuda.cuEventElapsedTime, *events))


def _keep(job, base, kept, stream):
  for output, address in zip(job.outputs, kept, strict=True):
    call(
      cuda.cuMemcpyDtoDAsync,
      address,
      base + output.image_offset,
      output.num_bytes,
      stream,
    )


def _give(job, base, host, stream):
  for output in job.outputs:
    call(
      cuda.cuMemcpyDtoHAsync,
      host[output.mapping_offset :].ctypes.data,
      base + output.image_offset,
      output.num_bytes,
      stream,
    )


def _count_far(launcher, output, got, base, counter):
  if not output.num_items:
    return
  launcher.helper(
    f"ke_count_far_{output.dtype}",
    _num_blocks(launcher, output.num_items),
    _BLOCK,
    0,
    got,
    base + output.image_offset,
    output.num_items,
    _bits(output.largest_gap),
    _bits(output.largest_share),
    counter,
  ).enqueue(launcher.stream)


def _bits(number):
  """Of a double, for a kernel's parameter."""
  return int.from_bytes(struct.pack("<d", number), "little")


def _free(address):
  with contextlib.suppress(DriverError):
    call(cuda.cuMemFree, address)


def _destroy_event(event):
  with contextlib.suppress(DriverError):
    call(cuda.cuEventDestroy, event)
