"""The process of a judge (`python -m kernels_eval.judge_process`).

It reads requests from standard input and answers on standard output, in
length-prefixed msgpack frames (`frames.py`). The learner talks to it through
`client.py`.
"""

import argparse
import os
import pathlib
import select
import shutil
import sys
import threading
from collections.abc import Callable

import msgspec

from kernels_eval import frames, sandbox
from kernels_eval.cpu import executor as executor_lib
from kernels_eval.cpu import host as host_lib
from kernels_eval.cpu import toolchain
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.functions import judging as function_judging
from kernels_eval.functions import pipelines
from kernels_eval.judge import Hello, Judge
from kernels_eval.schema import Request
from kernels_eval.settings import Settings


def make(
  root: pathlib.Path, seed: int, settings: Settings
) -> tuple[Judge, Hello, Callable[[], None]]:
  """A judge that runs candidates on the CPU, what it says of itself, and its
  end.

  Args:
    root: existing folder for temporary files.
    seed: of all inputs.
    settings: limits of an evaluation.

  Raises:
    toolchain.ToolchainError, host.HostError: this machine cannot judge.
  """
  tools = toolchain.prepare()
  protections = sandbox.probe()
  executor = executor_lib.Executor(tools, protections, root, settings)
  hello = Hello(
    executor_lib.NAME, f"g++ {tools.version}", protections.describe()
  )

  def close():
    executor.close()
    tools.release()

  return Judge(executor, seed), hello, close


def make_cuda(
  root: pathlib.Path,
  seed: int,
  settings: Settings,
  server: pathlib.Path,
  cuda_settings: CudaSettings,
  index: int,
) -> tuple[Judge, Hello, Callable[[], None]]:
  """As `make`, on the GPU of this index, whose server listens at `server`, in
  the folder of the pool."""
  from kernels_eval.cuda import diagnosis as diagnosis_lib
  from kernels_eval.cuda import executor as cuda_executor
  from kernels_eval.cuda import jax_reference, timing, toolkit
  from kernels_eval.cuda import sanitizer as sanitizer_lib
  from kernels_eval.cuda import screen as screen_lib

  tool = sanitizer_lib.find() if cuda_settings.with_sanitizer else None
  if cuda_settings.with_sanitizer and tool is None:
    raise toolchain.ToolchainError(
      "compute-sanitizer is asked for and not installed: put the toolkit's on "
      "PATH, or pip install nvidia-cuda-sanitizer-api"
    )
  tools = toolchain.prepare()
  protections = sandbox.probe()
  try:
    kit = toolkit.find()
  except toolkit.ToolkitError as error:
    raise toolchain.ToolchainError(str(error)) from None
  executor = cuda_executor.CudaExecutor(
    tools, kit, protections, root, server, settings, cuda_settings
  )
  device = executor.device
  cpu_executor = executor_lib.Executor(tools, protections, root, settings)
  screen, before = None, ""
  if cuda_settings.with_cpu_first:
    screen = screen_lib.Screen(cpu_executor)
    before = f", after g++ {tools.version} on the CPU"
  hello = Hello(
    cuda_executor.NAME,
    f"NVRTC {kit.version}, {device.device}, driver {device.driver_version}"
    + before,
    protections.describe(),
    cuda_settings.with_timing,
  )
  timer = jax = None
  if cuda_settings.with_jax:
    jax = jax_reference.JaxReference(
      server.parent,
      index,
      cuda_settings.jax_wall_s,
      executor.alone,
    )
  sanitizer = None
  if cuda_settings.with_sanitizer:
    sanitizer = sanitizer_lib.Sanitizer(
      tool,
      executor,
      seed,
      index,
      cuda_settings.sanitizer_wall_s,
    )
  if cuda_settings.with_timing:
    timer = timing.Timer(executor, seed, cuda_settings.timing_wall_s, jax)
  diagnosis = diagnosis_lib.Diagnosis(cpu_executor, seed, sanitizer)

  def close():
    executor.close()
    diagnosis.close()
    tools.release()

  return Judge(executor, seed, timer, diagnosis, screen), hello, close


def _end_with_client(ending, close, root):
  """Ends this process when the client is gone, in the middle of a job too."""
  poll = select.poll()
  poll.register(0, 0)  # nothing but a hang-up
  poll.poll()
  ending.set()
  close()
  shutil.rmtree(root, ignore_errors=True)
  os._exit(0)


def main(argv: list[str]) -> int:
  """Serves until standard input closes."""
  parser = argparse.ArgumentParser(prog="python -m kernels_eval.judge_process")
  parser.add_argument("--root", type=pathlib.Path, required=True)
  parser.add_argument("--settings", default="{}")
  parser.add_argument(
    "--server", type=pathlib.Path, help="socket of a GPU's server"
  )
  parser.add_argument("--device", type=int, default=0, help="index of that GPU")
  parser.add_argument("--cuda-settings", default="{}")
  arguments = parser.parse_args(argv)
  # Nothing that a library prints may get between the frames.
  answers = os.fdopen(os.dup(1), "wb", buffering=0)
  os.dup2(2, 1)
  requests = sys.stdin.buffer
  # The seed comes as the first frame, not in argv, where others could see it.
  seed = msgspec.msgpack.decode(frames.read(requests), type=int)
  settings = msgspec.convert(msgspec.json.decode(arguments.settings), Settings)
  cuda_settings = msgspec.json.decode(
    arguments.cuda_settings, type=CudaSettings
  )
  try:
    if arguments.server is None:
      judge, hello, close = make(arguments.root, seed, settings)
    else:
      judge, hello, close = make_cuda(
        arguments.root,
        seed,
        settings,
        arguments.server,
        cuda_settings,
        arguments.device,
      )
  except (toolchain.ToolchainError, host_lib.HostError, OSError) as error:
    frames.write(answers, msgspec.msgpack.encode(str(error)))
    return 1
  functions = function_judging.FunctionJudge(arguments.root, settings, seed)

  def close_both():
    functions.close()
    close()

  ending = threading.Event()
  ender = threading.Thread(
    target=_end_with_client,
    args=(ending, close_both, arguments.root),
    daemon=True,
  )
  ender.start()
  frames.write(answers, msgspec.msgpack.encode(hello))
  try:
    while True:
      frame = frames.read(requests)
      if frame is None:
        break
      request = msgspec.msgpack.decode(frame, type=Request)
      is_function = pipelines.is_name(request.problem)
      found = (functions if is_function else judge).evaluate(request)
      frames.write(answers, msgspec.msgpack.encode(found))
  except (host_lib.HostError, frames.FrameError, OSError) as error:
    if not ending.wait(0.1):  # else it is the end that makes the job fail
      if not isinstance(error, host_lib.HostError):
        raise
      reason = " ".join(str(error).split())  # one line, written in one piece
      sys.stderr.write(f"kernels_eval: a judge ends: {reason}\n")
      return 1
  ender.join()
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
