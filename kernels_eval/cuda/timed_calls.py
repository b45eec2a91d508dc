"""Programs timed in turn on one GPU, in a launcher.

All programs of a call get the same inputs, which are others in each call. What
the first program writes, in every call, is put aside and compared on the device
with what the last one writes: idle, stale or partial work is seen in each call.
One call, which the programs cannot tell from the others while they run, the
judge checks as closely as a case: to that end its outputs stay on the device
until the last call is over, under a checksum that is read at once.
"""

import contextlib

import numpy as np

from kernels_eval.cuda import jobs, state
from kernels_eval.cuda import module as module_lib
from kernels_eval.cuda.driver import DriverError, call, cuda

_CLEAR = 0xDD
_PATTERN = 0xFF
_BLOCK = 256
# As `Compared` of helpers.cu, and a checksum.
_SUMS = np.dtype(
  [
    ("num_far", np.uint64),
    ("squared_gaps", np.float64),
    ("squares", np.float64),
    ("digest", np.uint64),
  ]
)


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
  with contextlib.ExitStack() as stack:
    calls = _Calls(launcher, job, host, stack)
    times_ms, sums = calls.run()
    checked = sums[job.checked]["digest"].tolist()
    is_intact = calls.is_intact and calls.digest(calls.shown) == checked
    calls.give()
  return jobs.Report(
    jobs.Outcome.DONE,
    times_ms=tuple(tuple(t[job.num_warm :]) for t in times_ms),
    compared=tuple(
      tuple(jobs.Compared(*s.tolist()[:3]) for s in row)
      for row in sums[job.num_warm :]
    ),
    is_intact=is_intact,
    num_changed=calls.num_changed,
    device_state=state.describe(launcher.uuid),
  )


class _Calls:
  """A job on the device. Owns memory, modules and events until `stack` ends,
  which leaves nothing of them for the next candidate to find."""

  def __init__(self, launcher, job, host, stack):
    self._launcher, self._job, self._host = launcher, job, host
    self._stack, self._stream = stack, launcher.stream
    self.is_intact, self.num_changed = True, 0
    self._base, _ = self._allocate(job.image_bytes)
    self._tables = [
      self._allocate(i.base_items * i.item_bytes) for i in job.inputs
    ]
    for (address, num_bytes), item in zip(
      self._tables, job.inputs, strict=True
    ):
      start = host[item.base_offset :].ctypes.data
      call(cuda.cuMemcpyHtoDAsync, address, start, num_bytes, self._stream)
    sizes = [output.num_bytes for output in job.outputs]
    self._kept = [self._allocate(n) for n in sizes]
    self.shown = [self._allocate(n) for n in sizes]
    self._sum, _ = self._allocate(_SUMS.itemsize)
    self._programs = [self._load(subject) for subject in job.subjects]
    self._events = [self._event() for _ in range(2)]

  def _allocate(self, num_bytes):
    address = int(call(cuda.cuMemAlloc, max(num_bytes, 256)))
    self._stack.callback(_clear_and_free, address, num_bytes, self._stream)
    return address, num_bytes

  def _load(self, subject):
    end = subject.program_offset + subject.program_bytes
    module = module_lib.Program(
      self._host[subject.program_offset : end].tobytes(),
      subject.launches,
      self._launcher.hello.shared_bytes,
    )
    self._stack.callback(module.unload)
    return [module.kernel(k, self._base) for k in subject.launches]

  def _event(self):
    event = call(cuda.cuEventCreate, cuda.CUevent_flags.CU_EVENT_DEFAULT)
    self._stack.callback(_destroy_event, event)
    return event

  def run(self):
    """Milliseconds by program and call, and [call][output] of `_SUMS`."""
    job = self._job
    times_ms = [[] for _ in self._programs]
    sums = np.zeros((len(job.keys), len(job.outputs)), _SUMS)
    tables = self.digest(self._tables)
    for c, key in enumerate(job.keys):
      # Each call is followed by the same work, whichever is checked.
      kept = self.shown if c == job.checked else self._kept
      for s, kernels in enumerate(self._programs):
        self._fill(key)
        times_ms[s].append(self._timed_ms(kernels))
        if s == 0:
          self._keep(kept)
          sums[c]["digest"] = self.digest(kept)
          self.is_intact &= self.digest(self._tables) == tables
          self.num_changed += self._count_changed()
      for o, (address, _) in enumerate(kept):
        found = self._compare(job.outputs[o], address)
        for name in _SUMS.names[:3]:
          sums[c, o][name] = found[name]
    return times_ms, sums

  def _fill(self, key):
    """New inputs; everything else gets a pattern."""
    job, base = self._job, self._base
    self._set(base, _PATTERN, job.image_bytes)
    for output in job.outputs:
      start = base + output.image_offset
      self._set(start, output.poison_byte, output.num_bytes)
    for i, (item, (table, _)) in enumerate(
      zip(job.inputs, self._tables, strict=True)
    ):
      self._start(
        f"ke_draw_{item.item_bytes}",
        item.num_items,
        base + item.image_offset,
        table,
        item.num_items,
        item.base_items,
        key,
        i,
      )

  def _timed_ms(self, kernels):
    # While the cache is filled, the launches below are already queued.
    self._launcher.push_out()
    call(cuda.cuEventRecord, self._events[0], self._stream)
    self._launcher.enqueue(kernels, 0)
    call(cuda.cuEventRecord, self._events[1], self._stream)
    try:
      call(cuda.cuStreamSynchronize, self._stream)
    except DriverError as error:
      raise module_lib.kernel_error(error, 0) from None
    return float(call(cuda.cuEventElapsedTime, *self._events))

  def _keep(self, kept):
    for output, (address, num_bytes) in zip(
      self._job.outputs, kept, strict=True
    ):
      start = self._base + output.image_offset
      call(cuda.cuMemcpyDtoDAsync, address, start, num_bytes, self._stream)

  def _compare(self, output, got):
    """What is kept beside what the last program has written."""
    self._set(self._sum, 0, _SUMS.itemsize)
    self._start(
      f"ke_compare_{output.dtype}",
      output.num_items,
      got,
      self._base + output.image_offset,
      output.num_items,
      module_lib.bits(output.gap),
      module_lib.bits(output.share),
      self._sum,
    )
    return self._read_sum()

  def _count_changed(self):
    """Bytes between the first program's buffers that lost the pattern."""
    self._set(self._sum, 0, _SUMS.itemsize)
    for offset, num_bytes in self._job.guards:
      self._start(
        "ke_count_changed",
        num_bytes,
        self._base + offset,
        num_bytes,
        _PATTERN,
        self._sum,
      )
    return int(self._read_sum()["num_far"])

  def digest(self, places) -> list[int]:
    """A checksum of each (address, bytes)."""
    found = []
    for address, num_bytes in places:
      self._set(self._sum, 0, _SUMS.itemsize)
      at = self._sum + _SUMS.fields["digest"][1]
      self._start("ke_digest", num_bytes // 4 + 1, address, num_bytes, at)
      found.append(int(self._read_sum()["digest"]))
    return found

  def give(self) -> None:
    """Outputs of the checked call, into the mapping."""
    for output, (address, num_bytes) in zip(
      self._job.outputs, self.shown, strict=True
    ):
      place = self._host[output.mapping_offset :].ctypes.data
      call(cuda.cuMemcpyDtoHAsync, place, address, num_bytes, self._stream)
    call(cuda.cuStreamSynchronize, self._stream)

  def _set(self, address, byte, num_bytes):
    if not num_bytes:
      return
    call(cuda.cuMemsetD8Async, address, byte, num_bytes, self._stream)

  def _start(self, name, num_items, *arguments):
    if not num_items:
      return
    most = 16 * self._launcher.hello.num_processors
    num_blocks = min(-(-num_items // _BLOCK), most)
    kernel = self._launcher.helper(name, num_blocks, _BLOCK, 0, *arguments)
    kernel.enqueue(self._stream)

  def _read_sum(self):
    found = np.zeros(1, _SUMS)
    place = found.ctypes.data
    call(cuda.cuMemcpyDtoHAsync, place, self._sum, found.nbytes, self._stream)
    call(cuda.cuStreamSynchronize, self._stream)
    return found[0]


def _clear_and_free(address, num_bytes, stream):
  with contextlib.suppress(DriverError):
    call(cuda.cuMemsetD8Async, address, _CLEAR, max(num_bytes, 256), stream)
  with contextlib.suppress(DriverError):
    call(cuda.cuMemFree, address)


def _destroy_event(event):
  with contextlib.suppress(DriverError):
    call(cuda.cuEventDestroy, event)
