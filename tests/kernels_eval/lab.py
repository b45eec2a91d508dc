"""Runs kernels that belong to no problem: arrays in, arrays out."""

from kernels_eval import candidate as candidate_lib
from kernels_eval import dtypes
from kernels_eval.outcome import Stop
from kernels_eval.problems import spec

_NAMES = {d.storage: d.name for d in dtypes.DTYPES.values()}


def make_problem(inputs=(), outputs=(), scalars=(), dims=(), launch=""):
  """A problem record without a reference.

  Args:
    inputs, outputs: (name, dtype, number of elements).
    scalars, dims: names.
    launch: the default plan.
  """
  return spec.Problem(
    name="lab",
    level=1,
    statement="",
    dims=tuple(dims),
    inputs=tuple(spec.Tensor(n, (str(size),), d) for n, d, size in inputs),
    outputs=tuple(spec.Tensor(n, (str(size),), d) for n, d, size in outputs),
    scalars=tuple(spec.Scalar(s, (0.0,)) for s in scalars),
    reference=lambda: 0,
    launch=launch or "grid=(1) block=(32)",
    shapes=({},),
  )


class Lab:
  """Owns nothing; uses a judge's executor."""

  def __init__(self, executor):
    self.executor = executor

  def run(
    self, text, *, outputs, inputs=None, scalars=None, dims=None, launch=""
  ):
    """Runs `text` once and returns its outputs, in stored form.

    Args:
      text: CUDA C++, which may hold a plan.
      outputs: name -> (dtype, number of elements).
      inputs: name -> array in stored form (uint16 holds bfloat16).
      scalars, dims: name -> value.
      launch: the plan of a text without one.

    Raises:
      Stop, CandidateError: the evaluation ended early.
    """
    inputs, scalars, dims = inputs or {}, scalars or {}, dims or {}
    problem = make_problem(
      [(n, _NAMES[a.dtype], a.size) for n, a in inputs.items()],
      [(n, d, size) for n, (d, size) in outputs.items()],
      scalars,
      dims,
      launch,
    )
    parsed = candidate_lib.parse(text, problem)
    case = spec.Case(0, dims, "given", scalars)
    with self.executor.folder() as folder:
      artefact = self.executor.compile(parsed, problem, folder)
      self.result = self.executor.run(
        artefact, parsed, problem, [(case, inputs)]
      )
    return {
      n: self.result.passes[0].outputs[0][n].view(dtypes.DTYPES[d].storage)
      for n, (d, _) in outputs.items()
    }

  def out(self, text, dtype="float32", size=32, **settings):
    """`run` with one output called `out`; returns it."""
    return self.run(text, outputs={"out": (dtype, size)}, **settings)["out"]

  def stop(self, text, size=64, **settings):
    """The Stop or CandidateError that `text` ends with."""
    try:
      self.out(text, size=size, **settings)
    except (Stop, candidate_lib.CandidateError) as stop:
      return stop
    raise AssertionError("the kernel came to its end")
