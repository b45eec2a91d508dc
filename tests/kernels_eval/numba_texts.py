"""Numba modules made from the body of one kernel."""

HEAD = (
  "import math\nimport numpy as np\n"
  "from numba import cuda, float32, float64, int32, int64, uint32\n"
  "from numba.cuda import libdevice\n"
)


def kernel(body, parameters="out", before=""):
  """A module whose kernel has this body. Line 1 of it is line 7."""
  lines = "\n".join(f"  {line}" for line in body.strip("\n").split("\n"))
  return f"{HEAD}{before}@cuda.jit\ndef k({parameters}):\n{lines}\n"


def per_thread(expression, before="", parameters="out"):
  return kernel(
    f"t = cuda.threadIdx.x\nout[t] = {expression}", parameters, before
  )
