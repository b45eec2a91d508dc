"""The picture of a run: all of its metrics, each with a name."""

import json

import matplotlib
import pytest
from matplotlib import pyplot

from experiments import picture

RESULT = {
  "before": {"acc_at_1": 0.2},
  "after": {"acc_at_1": 0.6},
  "run": {"method": "leap", "seed": 3},
}


@pytest.fixture
def draw(monkeypatch, tmp_path):
  """draw(warm steps, iterations) -> the figure, also written as a file."""
  figures = []
  monkeypatch.setattr(pyplot, "close", figures.append)

  def make(num_warm, num_iterations):
    lines = [{"step": i, "warm/loss": 6.0 - i} for i in range(num_warm)]
    for i in range(num_iterations):
      lines.append(
        {
          "step": num_warm + i,
          "rollout/acc_at_1": 0.1 * i,
          "rollout/acc_at_last": 0.1 * i + 0.05,
          "rollout/activation": 0.5,
          "seconds/sample": 1.0,
          "seconds/harness": 2.0,
          "seconds/update": 3.0,
          "seconds/total": 10.0,
        }
      )
    if num_iterations > 2:
      lines[num_warm + 1]["eval/acc_at_1"] = 0.3
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text)
    path = picture.draw(tmp_path, RESULT)
    assert path.name == "learning_curve.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    return figures.pop()

  yield make
  monkeypatch.undo()
  matplotlib.pyplot.close("all")


@pytest.mark.parametrize("num_iterations", [1, 2, 7])
@pytest.mark.parametrize("num_warm", [0, 4])
def test_every_iteration_is_drawn(draw, num_warm, num_iterations):
  *warm, solved, debugged, seconds = draw(num_warm, num_iterations).axes
  assert len(warm) == (num_warm > 0)
  held_out = solved.lines[-1].get_xydata().tolist()
  middle = [[2, 30]] if num_iterations > 2 else []
  assert held_out == [[0, 20], *middle, [num_iterations, 60]]
  x = list(range(1, num_iterations + 1))
  assert debugged.lines[0].get_xdata().tolist() == x
  # Stages and the rest add up to the iteration.
  tops = [bar.get_y() + bar.get_height() for bar in seconds.patches]
  assert max(tops) == 10 and len(tops) == 4 * num_iterations


def test_an_accuracy_that_does_not_exist_is_not_drawn(draw, monkeypatch):
  # Every sample was lost to the harness.
  monkeypatch.setitem(RESULT, "before", {"acc_at_1": None})
  held_out = draw(0, 1).axes[0].lines[-1].get_xydata().tolist()
  assert held_out == [[1, 60]]


def test_a_warm_start_alone_shows_its_loss(draw):
  (warm,) = draw(5, 0).axes
  assert warm.lines[0].get_ydata().tolist() == [6, 5, 4, 3, 2]


def test_every_strong_line_stands_in_a_legend(draw):
  for axis in draw(0, 7).axes:
    strong = [line for line in axis.lines if line.get_alpha() is None]
    names = {text.get_text() for text in axis.get_legend().get_texts()}
    assert {line.get_label() for line in strong} <= names
    assert len(names) >= 1
