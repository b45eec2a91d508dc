"""What runs on each machine of a cluster: a local pool behind messages.

The class is an asynchronous Ray actor; nothing here imports Ray. It holds
trusted code only: candidates run in the sandboxed processes of its pool, which
end when the actor does, however it ends, because their standard input closes.
All that comes in or goes out is msgpack, strictly decoded.
"""

import asyncio
import dataclasses
import os
import socket

import msgspec

from kernels_eval import client, feed, temporary
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.judge import Hello
from kernels_eval.schema import HARNESS_VERSION, Evaluation, Request
from kernels_eval.settings import Settings


class Setup(msgspec.Struct, frozen=True):
  """What a machine must know before it can judge."""

  harness_version: str
  num_judges: int
  seed: int  # of all test inputs: in this message, not in argv or environment
  settings: Settings
  executor: str
  cuda_settings: CudaSettings

  def frame_for(self, num_judges: int, num_gpus: int) -> bytes:
    """The message to a machine, which counts its GPUs from 0."""
    devices = tuple(range(num_gpus))
    return msgspec.msgpack.encode(
      msgspec.structs.replace(
        self,
        num_judges=num_judges,
        cuda_settings=dataclasses.replace(self.cuda_settings, devices=devices),
      )
    )


class Welcome(msgspec.Struct, frozen=True, tag=True):
  """A machine is ready."""

  harness_version: str
  host: str
  pid: int
  num_judges: int
  judge: Hello


class Verdict(msgspec.Struct, frozen=True, tag=True):
  """A candidate has been judged."""

  evaluation: Evaluation


class Beat(msgspec.Struct, frozen=True, tag=True):
  """The machine still works."""

  num_restarts: int  # of its judges, since its start


class Failure(msgspec.Struct, frozen=True, tag=True):
  """The machine cannot judge; one line says why."""

  message: str


Reply = Welcome | Verdict | Beat | Failure


class _Version(msgspec.Struct):
  """The part of a Setup that every version has."""

  harness_version: str


class NodeAgent:
  """One machine's judges. Its methods take and give msgpack frames."""

  def __init__(self):
    self._feed: feed.Feed | None = None
    self._starting = asyncio.Lock()

  async def start(self, frame: bytes) -> bytes:
    """Starts the pool: Setup -> Welcome or Failure."""
    async with self._starting:
      reply = await asyncio.to_thread(self._start, frame)
    return msgspec.msgpack.encode(reply)

  def _start(self, frame):
    version = msgspec.msgpack.decode(frame, type=_Version).harness_version
    if version != HARNESS_VERSION:
      return Failure(
        f"the harness there has version {HARNESS_VERSION}, here it has "
        f"{version}; install the same one on all machines"
      )
    setup = msgspec.msgpack.decode(frame, type=Setup)
    try:
      pool = client.Pool(
        num_workers=setup.num_judges,
        seed=setup.seed,
        settings=setup.settings,
        executor=setup.executor,
        cuda_settings=setup.cuda_settings,
      )
    except (client.HarnessError, OSError) as error:
      return Failure(str(error))
    self._feed = feed.Feed(pool)
    return Welcome(
      HARNESS_VERSION,
      socket.gethostname(),
      os.getpid(),
      setup.num_judges,
      pool.hello,
    )

  async def judge(self, frame: bytes) -> bytes:
    """Request -> Verdict or Failure."""
    request = msgspec.msgpack.decode(frame, type=Request)
    try:
      reply = Verdict(await asyncio.wrap_future(self._feed.submit(request)))
    except feed.FeedError as error:
      reply = Failure(str(error))
    return msgspec.msgpack.encode(reply)

  async def beat(self) -> bytes:
    """() -> Beat or Failure."""
    try:
      self._feed.check()
      reply = Beat(self._feed.num_restarts)
    except feed.FeedError as error:
      reply = Failure(str(error))
    return msgspec.msgpack.encode(reply)

  async def abandon(self) -> bytes:
    """Forgets all requests that came before: () -> Beat or Failure."""
    self._feed.abandon()
    return await self.beat()

  async def stop(self) -> None:
    """Ends the judges and removes their files."""
    async with self._starting:
      if self._feed is not None:
        await asyncio.to_thread(self._feed.close)
      temporary.remove_stale()  # of agents that were killed before
