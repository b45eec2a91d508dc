"""Which candidates a soak submits: seeded, each text its own.

Kinds and what they must get:

    good       canonical kernels of all problems        passed
    numba      canonical Numba-CUDA kernels, where      passed
               Numba is installed
    wrong      the same, one output element spoiled     wrong_answer
    mutated    the same with a plausible mistake        any verdict, and the
               (`mutations.py`), every other one twice  same one both times;
                                                        `twins.py`
    slow       two fifths of the time limit             passed
    crashing, hanging, flooding, forking, memory, malicious
               files (`templates.py`)                   what the file says
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from kernels_eval import candidate, dtypes, mutations, problems
from kernels_eval.problems import spec
from kernels_eval.schema import Request, Status
from kernels_eval.soak.templates import Template

SHARES = {  # of all candidates; what hangs costs a second each
  "good": 0.32,
  "wrong": 0.15,
  "mutated": 0.15,
  "crashing": 0.1,
  "numba": 0.04,
  "malicious": 0.09,
  "memory": 0.04,
  "flooding": 0.04,
  "forking": 0.03,
  "slow": 0.02,
  "hanging": 0.02,
}
# The driver handles failing kernels one after the other, up to 0.6 s each
# (LOG.md), and what hangs costs seconds more.
CUDA_SHARES = SHARES | {
  "crashing": 0.01,
  "malicious": 0.02,
  "memory": 0.01,
  "flooding": 0.01,
  "slow": 0.01,
  "hanging": 0.002,
}
_VERDICTS = frozenset(Status) - {Status.INFRASTRUCTURE_ERROR}
_PASSED = frozenset({Status.PASSED})


@dataclasses.dataclass(frozen=True)
class Candidate:
  """One submission."""

  request: Request
  kind: str
  allowed: frozenset[Status]
  twin: str | None = None  # candidates with one twin have one text


def _unique(text, i):
  return f"{text}\n__device__ int soak_{i}() {{ return {i}; }}\n"


def spoiled(problem: spec.Problem) -> str:
  """A canonical kernel, behind which another one changes an output: wrong by
  construction, whatever the problem."""
  text = problem.canonical
  parsed = candidate.parse(text, problem)
  plan = ""
  if parsed.launches[0].line is None:
    plan = f"// launch: {parsed.launches[0].kernel} {problem.launch}\n"
  output = problem.outputs[0]
  dtype = dtypes.DTYPES[output.dtype]
  # The highest bit but one: another exponent, or a number far away.
  return (
    f"{text}\n{plan}"
    f"// launch: soak_spoils grid=(1) block=(1) args=({output.name})\n"
    f"__global__ void soak_spoils({dtype.cuda}* p) {{\n"
    f"  ((unsigned char*)p)[{dtype.item_bytes - 1}] ^= 0x40;\n}}\n"
  )


def slow(num_steps: int) -> str:
  """A right kernel for vector_add that first computes for some time.

  Args:
    num_steps: of the computation, in one thread of one case.
  """
  problem = problems.get("vector_add")
  text = problem.canonical
  opening = text.index("{") + 1
  return (
    text[:opening]
    + f"""
  if (n == 33 && threadIdx.x + blockIdx.x == 0) {{
    unsigned s = 1;
    for (long long j = 0; j < {num_steps}LL; j++) {{
      s ^= s << 13;  // steps that no compiler puts together
      s ^= s >> 17;
      s ^= s << 5;
    }}
    if (s == 7u) printf("7");
  }}"""
    + text[opening:]
  )


def _mutants(rng, count):
  """(problem's name, text, twin), half of them twice."""
  names = sorted(problems.FAMILIES)
  made = []
  while len(made) < count:
    name = names[int(rng.integers(len(names)))]
    mutated = mutations.mutate(problems.FAMILIES[name].canonical, rng)
    if mutated is None:
      continue
    i = len(made)
    text, twin = _unique(mutated[1], i), f"mutated-{i}"
    made.append((name, text, twin))
    if i % 3 == 0 and len(made) < count:
      made.append((name, text, twin))
  return made


def _counts(count, shares):
  """How many of each kind; at least one, and together `count`."""
  counts = {kind: max(1, int(share * count)) for kind, share in shares.items()}
  counts["good"] = max(1, counts["good"] + count - sum(counts.values()))
  return counts


def draw(
  count: int,
  seed: int,
  templates: Mapping[str, Sequence[Template]],
  num_slow_steps: int,
  shares: Mapping[str, float] = SHARES,
) -> list[Candidate]:
  """The candidates, in the order of their submission.

  Args:
    count: how many; no fewer than there are kinds.
    seed: of the choice and of the order.
    templates: by kind.
    num_slow_steps: what takes two fifths of the time limit here.
    shares: of the kinds that take part; "good" must, and gets what is left.
  """
  if count < len(SHARES):
    raise ValueError(f"{count} candidates; at least {len(SHARES)}")
  rng = np.random.default_rng(seed)
  names = sorted(problems.FAMILIES)
  made = []
  for kind, number in _counts(count, shares).items():
    if kind == "mutated":
      made += [
        ("mutated", name, text, _VERDICTS, twin)
        for name, text, twin in _mutants(rng, number)
      ]
      continue
    start = int(rng.integers(1000))
    for i in range(start, start + number):
      if kind in ("good", "wrong"):
        problem = problems.FAMILIES[names[i % len(names)]]
        text = problem.canonical if kind == "good" else spoiled(problem)
        allowed = _PASSED if kind == "good" else {Status.WRONG_ANSWER}
        made.append((kind, problem.name, text, frozenset(allowed), None))
      elif kind == "numba":
        problem = problems.FAMILIES[names[i % len(names)]]
        text = problem.numba_canonical
        made.append((kind, problem.name, text, _PASSED, None))
      elif kind == "slow":
        text = slow(num_slow_steps)
        made.append((kind, "vector_add", text, _PASSED, None))
      else:
        chosen = templates[kind][i % len(templates[kind])]
        made.append((kind, chosen.problem, chosen.text, chosen.allowed, None))
  marks = {t.text: t.comment for every in templates.values() for t in every}
  order = rng.permutation(len(made))
  candidates = []
  for i, j in enumerate(order):
    kind, problem, text, allowed, twin = made[j]
    if twin is None:
      comment = "#" if kind == "numba" else marks.get(text, "//")
      text = f"{text}\n{comment} soak {seed} {i}\n"
    candidates.append(
      Candidate(Request(f"{kind}-{i}", problem, text), kind, allowed, twin)
    )
  return candidates
