"""Element-wise problems."""

from kernels_eval.problems.spec import Problem, Tensor

_VECTOR = tuple({"n": n} for n in (1, 37, 256, 1000, 4099))
_LAUNCH = "grid=(ceil_div(n, 256)) block=(256)"

PROBLEMS = (
  Problem(
    name="vector_add",
    level=1,
    statement="out[i] = x[i] + y[i] for every i < n.",
    dims=("n",),
    inputs=(Tensor("x", ("n",)), Tensor("y", ("n",))),
    outputs=(Tensor("out", ("n",)),),
    reference=lambda x, y: x + y,
    launch=_LAUNCH,
    shapes=_VECTOR,
  ),
)
