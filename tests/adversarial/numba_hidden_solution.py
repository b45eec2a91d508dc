# row: 26
# problem: vector_add
# on: both
# expect: compile_error
# why: Python that the check of the text overlooks: reads our solution.
from numba import cuda
import numba

# The check of the text believes that `array` is NumPy"s.
array = numba.core.config.os.sys.modules["builtins"].exec
RUN = array("import kernels_eval.problems.spec as s; raise ValueError(open(s.__file__).read())")


@cuda.jit
def k(x, y, out, n):
  i = cuda.grid(1)
  if i < n:
    out[i] = x[i] + y[i]
