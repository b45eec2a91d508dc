"""Twins: candidates with one text, which must get one verdict. On a GPU they
may get two where the text does what only the CPU executor checks."""

from collections.abc import Sequence

from kernels_eval import agreement, client, verdict_cache
from kernels_eval.client import Settings
from kernels_eval.schema import Evaluation
from kernels_eval.soak.mix import Candidate


def differing(
  candidates: Sequence[Candidate], answers: Sequence[Evaluation]
) -> dict[int, int]:
  """Places of those with another status than the first of their twins had ->
  that one's place."""
  firsts: dict[str, int] = {}
  found = {}
  for i, candidate in enumerate(candidates):
    if candidate.twin is not None:
      first = firsts.setdefault(candidate.twin, i)
      if answers[first].status != answers[i].status:
        found[i] = first
  return found


def reasons(
  candidates: Sequence[Candidate],
  answers: Sequence[Evaluation],
  settings: Settings,
) -> dict[int, str]:
  """Why twins may differ that a GPU has judged, where the CPU executor finds
  it: their places as of `differing` -> the reason.

  Args:
    candidates: all.
    answers: to them, of a GPU.
    settings: of the judge that is asked.

  Raises:
    client.HarnessError: this machine cannot judge on its CPU.
  """
  places = differing(candidates, answers)
  if not places:
    return {}
  with client.Pool(
    num_workers=1,
    settings=settings,
    executor="cpu",
    cache=verdict_cache.Nothing(),
  ) as pool:
    on_cpu = pool.evaluate([candidates[i].request for i in places])
  found = {}
  for (i, first), cpu in zip(places.items(), on_cpu, strict=True):
    both = [agreement.unchecked_on_gpu(cpu, answers[j]) for j in (first, i)]
    if all(both):
      found[i] = both[0]
  return found
