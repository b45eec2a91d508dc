"""Problems whose prompt does not fit."""

import pytest

from experiments import problem_sets, settings


@pytest.mark.parametrize("policy", ["skip", "refuse"])
@pytest.mark.covers("P10")
def test_prompts_that_do_not_fit_are_skipped_or_refused(
  vocabulary, shape, policy
):
  long = "chain-" + "-".join(["max_y"] * 8) + "-sum"
  names = ["chain-relu", long]
  if policy == "skip":
    cards, skipped = problem_sets.cards(names, vocabulary, shape, policy)
    assert [c.name for c in cards] == ["chain-relu"] and skipped == 1
    with pytest.raises(settings.UsageError, match="no problem's prompt fits"):
      problem_sets.cards([long], vocabulary, shape, policy)
  else:
    with pytest.raises(settings.UsageError, match=long):
      problem_sets.cards(names, vocabulary, shape, policy)
