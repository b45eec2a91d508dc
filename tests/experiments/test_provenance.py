"""Commits and hardware of runs: recorded part by part, mixed by no accident."""

import pathlib

import pytest

from experiments import provenance

HERE = {"commit": "abc", "hardware": "X"}


@pytest.fixture(autouse=True)
def here(monkeypatch):
  monkeypatch.setattr(provenance, "commit", lambda: HERE["commit"])
  monkeypatch.setattr(provenance, "hardware", lambda: HERE["hardware"])


def part(step, **changes):
  return HERE | changes | {"from_step": step}


def test_a_run_that_goes_on_elsewhere_has_another_part():
  begun = provenance.continued((), 0)
  assert begun == [part(0)]
  assert provenance.continued(begun, 7) == begun
  for key in provenance.KEYS:
    before = [part(0, **{key: "other"})]
    assert provenance.continued(before, 7) == [*before, part(7)]
  # And back again.
  there = [part(0), part(3, commit="other")]
  assert provenance.continued(there, 7) == [*there, part(7)]


def test_what_an_older_version_did_not_record_is_unknown():
  unknown = {"commit": "unknown", "hardware": "unknown", "from_step": 0}
  assert provenance.continued((), 5) == [unknown, part(5)]


def run(*parts, **changes):
  return {"run": HERE | changes | ({"parts": list(parts)} if parts else {})}


def test_the_origins_of_runs_are_those_of_all_parts():
  runs = [run(), run(part(0, commit="old"), part(4)), run(hardware="Y")]
  assert provenance.of(runs) == {
    "commit": ["abc", "old"],
    "hardware": ["X", "Y"],
  }


@pytest.mark.parametrize(
  "results,words",
  [
    ([run(), run()], None),
    ([run(part(0)), run()], None),
    ([run()], None),
    ([run(), run(commit="old")], "a is of commit abc, b of old"),
    ([run(), run(hardware="Y")], "a is of hardware X, b of Y"),
    # One run that has changed on the way says so itself.
    (
      [run(part(0, commit="old"), part(4))],
      "a has parts of commit abc and old",
    ),
    ([run(part(0), part(4, hardware="Y"))], "a has parts of hardware X and Y"),
    # Two states of one name.
    ([run(commit="abc+changes")] * 2, "a and b are both of commit abc+changes"),
    ([run(commit="unknown")] * 2, "a and b are both of commit unknown"),
    ([run(commit="abc+changes")], None),
  ],
)
def test_a_clash(results, words):
  paths = [pathlib.Path(name) for name in "ab"]
  assert provenance.clash(dict(zip(paths, results, strict=False))) == words
  assert bool(provenance.mixtures(results)) == (words is not None)
