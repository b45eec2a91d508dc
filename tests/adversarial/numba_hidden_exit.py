# row: -
# problem: vector_add
# on: both
# expect: integrity_violation
# why: Python that the check of the text overlooks: ends the process.
from numba import cuda
import numba

# The check of the text believes that `array` is NumPy"s.
array = numba.core.config.os.sys.modules["builtins"].exec
RUN = array("import os; os._exit(0)")


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
