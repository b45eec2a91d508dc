"""What a judge says on its error output when it cannot go on."""

import pathlib
import subprocess
import sys

import msgspec
import pytest

from kernels_eval import frames
from kernels_eval.schema import Request

_ROOT = pathlib.Path(__file__).parents[2]
# A judge whose executor does not come up again after a fault.
_JUDGE = """\
import sys
from kernels_eval import judge, judge_process
from kernels_eval.cpu.host import HostError
def evaluate(self, request):
  try:
    raise HostError("the server of the GPU has ended")
  except HostError:
    raise {error}("GPU 0 is not usable:\\n  no device")
judge.Judge.evaluate = evaluate
hello = judge.Hello("cuda", "none", "none")
judge_process.make = lambda *_: (judge.Judge(None, 0), hello, lambda: None)
sys.exit(judge_process.main(sys.argv[1:]))
"""


def _error_output(tmp_path, error):
  """Of a judge that a request ends, and its status."""
  judge = subprocess.Popen(
    [sys.executable, "-c", _JUDGE.format(error=error), "--root", str(tmp_path)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    cwd=_ROOT,
  )
  for payload in (7, Request("a", "relu", "")):
    frames.write(judge.stdin, msgspec.msgpack.encode(payload))
  judge.stdin.flush()
  try:
    status = judge.wait(60)  # its client is there all the time
    return judge.stderr.read().decode(), status
  finally:
    judge.kill()
    for end in (judge.stdin, judge.stdout, judge.stderr):
      end.close()


def test_a_lost_gpu_is_one_line(tmp_path):
  said, status = _error_output(tmp_path, "HostError")
  assert status == 1
  assert said == (
    "kernels_eval: a judge ends: GPU 0 is not usable: no device\n"
  )


@pytest.mark.parametrize("error", ["OSError", "RuntimeError"])
def test_a_fault_of_our_own_keeps_its_traceback(tmp_path, error):
  said, status = _error_output(tmp_path, error)
  assert status == 1
  assert said.startswith("Traceback") and "in evaluate" in said
