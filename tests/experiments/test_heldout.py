"""Held-out evaluation against a scripted harness."""

import dataclasses

import pytest

from experiments import (
  heldout,
)
from experiments.state import Cost, Progress
from kernels_eval.schema import Status
from tests.experiments.scripted_harness import (
  place,
  read_conversations,
)


@pytest.mark.parametrize("num_heldout", [1, 2, 3])
def test_evaluation_is_counted_apart_and_without_its_filler(
  setup, stopping, tmp_path, num_heldout
):
  # Batches of two problems: one and three need a repeat at the end.
  decide = lambda r: (
    Status.PASSED if place(r)[0] % 4 == 0 else Status.WRONG_ANSWER
  )
  run, made, state, pool, _ = setup(decide, stopping)
  run = dataclasses.replace(run, heldout=run.heldout[:num_heldout])
  progress = Progress()
  result = heldout.evaluate(run, made, state, progress, "before")
  samples = read_conversations(tmp_path)["heldout_before.jsonl.gz"]
  assert len(samples) == num_heldout * run.shape.group_size
  turns = [turn for sample in samples for turn in sample["turns"]]
  tokens = sum(turn["num_tokens"] for turn in turns)
  assert progress.evaluation.sampled_tokens == tokens > 0
  assert progress.evaluation.harness_calls == len(turns)
  assert progress.evaluation.kernels_judged == pool.num_evaluated
  assert result["sampled_tokens"] == tokens
  assert result["harness_calls"] == len(turns)
  assert progress.training == Cost()
