"""How many kernels a second torch's extension route judges, for comparison with
`python -m kernels_eval bench`.

    python -m experiments.compare_load_inline --count=16

KernelBench's evaluator compiles each candidate with `torch.utils.cpp_extension.
load_inline` (nvcc, host and device code, ninja) and calls it from Python. This
does the same to the harness's canonical ReLU, each copy with a text of its own,
as many at once as there are processors, and compares the result with torch's.
Needs torch, nvcc, ninja and a GPU. The cost of KernelBench's trials and of
loading its models comes on top; what is measured here is a lower bound of it.
"""

import concurrent.futures
import json
import multiprocessing
import os
import sys
import tempfile
import time

from absl import app, flags

_COUNT = flags.DEFINE_integer("count", 16, "Kernels to judge.", lower_bound=1)
_WRAPPER = """
torch::Tensor run(torch::Tensor x) {
  auto out = torch::empty_like(x);
  int n = x.numel();
  relu<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""


def _judge(task):
  """Compiles and checks one kernel; returns whether it is right."""
  index, source, folder = task
  import torch
  from torch.utils import cpp_extension

  os.makedirs(f"{folder}/{index}")
  module = cpp_extension.load_inline(
    name=f"candidate_{index}",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=f"{source}\n__device__ int u{index}() {{ return {index}; }}\n"
    + _WRAPPER,
    functions=["run"],
    build_directory=f"{folder}/{index}",
  )
  x = torch.randn(4099, device="cuda")
  return bool(torch.equal(module.run(x), torch.relu(x)))


def main(_):
  """Prints one line of JSON."""
  from kernels_eval import problems

  source = problems.get("relu").canonical
  num_workers = min(len(os.sched_getaffinity(0)), _COUNT.value)
  context = multiprocessing.get_context("spawn")
  with (
    tempfile.TemporaryDirectory() as folder,
    concurrent.futures.ProcessPoolExecutor(num_workers, context) as pool,
  ):
    tasks = [(i, source, folder) for i in range(_COUNT.value)]
    started = time.perf_counter()
    right = list(pool.map(_judge, tasks))
    seconds = time.perf_counter() - started
  record = {
    "route": "torch load_inline",
    "num_kernels": len(right),
    "num_right": sum(right),
    "num_workers": num_workers,
    "seconds": seconds,
    "kernels_per_second": len(right) / seconds,
  }
  print(json.dumps(record))
  return 0 if all(right) else 1


if __name__ == "__main__":
  sys.exit(app.run(main))
