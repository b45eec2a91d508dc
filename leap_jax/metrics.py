"""Every metric, declared once; JSON lines and TensorBoard.

An undeclared name is an error, so that the table below is the whole glossary.
"""

import json
import math
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

from leap_jax import files

# name: (unit, meaning)
METRICS = {
  "rollout/acc_at_1": ("fraction", "samples solved in the first turn"),
  "rollout/acc_at_last": ("fraction", "samples solved in any turn that ran"),
  "rollout/activation": ("fraction", "groups to which the gate gave turns"),
  "rollout/active_fail_rate": (
    "fraction",
    "first-turn failures in the groups that were given turns",
  ),
  "rollout/recovery_rate": (
    "fraction",
    "failed first turns of active groups that a later turn solved",
  ),
  "rollout/turns_per_sample": (
    "turns",
    "turns that ran, for each sample that was not lost",
  ),
  "rollout/spread_groups": ("groups", "groups with a non-zero advantage"),
  "rollout/refill_rounds": ("rounds", "extra rollouts for want of spread"),
  "rollout/refilled_groups": ("groups", "groups that a refill replaced"),
  "rollout/faults": ("samples", "samples lost to the harness"),
  "rollout/truncated_fraction": ("fraction", "turns cut at their budget"),
  "rollout/context_full": ("samples", "trajectories that ran out of context"),
  "rollout/feedback_cut": ("turns", "feedback cut to its token budget"),
  "rollout/tokens": ("tokens", "sampled by the policy"),
  "rollout/useful_slots": ("fraction", "decoding slots that gave a token"),
  "rollout/kept_mass": (
    "fraction",
    "of the softmax that top-k, top-p and min-p left, per sampled token",
  ),
  "kernels/submitted": ("candidates", "turns sent to the harness"),
  "kernels/judged": (
    "candidates",
    "different texts given to a judge, whatever its verdict; a repeat is "
    "answered from memory",
  ),
  "kernels/passed": (
    "fraction",
    "of submitted candidates; not in an answer that was cut",
  ),
  "kernels/wrong_answer": ("fraction", "of submitted candidates"),
  "kernels/compile_error": ("fraction", "of submitted candidates"),
  "kernels/runtime_error": ("fraction", "of submitted candidates"),
  "kernels/other_failure": (
    "fraction",
    "of submitted candidates; passed in an answer that was cut, too",
  ),
  "kernels/judge_restarts": ("processes", "judges replaced so far"),
  "update/loss": ("1", "weighted sum over own tokens"),
  "update/entropy": ("nats", "of the sampling distribution, own tokens"),
  "update/grad_norm": ("1", "global, before the clip"),
  "update/relative_step": ("1", "norm of the update over that of the weights"),
  "update/clip_fraction": ("fraction", "tokens whose gradient was clipped"),
  "update/kl": ("nats", "k3 estimate from the sampling policy, per token"),
  "update/log_ratio_mean": (
    "nats",
    "|trainer - sampler| log-probability, first update of the iteration; "
    "tokens with weight",
  ),
  "update/log_ratio_p95": ("nats", "95th percentile of the same, at most 10"),
  "update/log_ratio_max": (
    "nats",
    "maximum of the same over all own tokens of the rows, with weight or not "
    "(learner.head=chunked: with weight)",
  ),
  "update/rejected": (
    "fraction",
    "own tokens with weight to which a correction gave none",
  ),
  "update/rows": ("rows", "trajectories with an advantage"),
  "update/rows_dropped": ("rows", "trajectories without one"),
  "update/samples": (
    "turns",
    "what the loss is divided by (losses.DENOMINATORS)",
  ),
  "update/tokens": ("tokens", "own tokens with weight"),
  "update/padding": ("fraction", "computed tokens that are padding"),
  "update/skipped": ("updates", "1 if there was nothing to learn from"),
  "warm/loss": ("nats", "cross-entropy of own tokens"),
  "warm/entropy": ("nats", "of the policy, own tokens"),
  "warm/grad_norm": ("1", "global, before the clip"),
  "eval/acc_at_1": ("fraction", "held-out samples solved by turn 1"),
  "eval/acc_at_2": ("fraction", "held-out samples solved by turn 2"),
  "eval/acc_at_3": ("fraction", "held-out samples solved by turn 3"),
  "eval/turns_per_pass": ("turns", "held-out turns used / samples solved"),
  "eval/recovery_rate": ("fraction", "held-out first failures solved later"),
  "compile/count": ("programs", "compiled during this step"),
  "compile/seconds": ("s", "spent compiling during this step"),
  "seconds/sample": ("s", "sampling"),
  "seconds/harness": ("s", "waiting for the harness"),
  "seconds/update": ("s", "updating"),
  "seconds/total": ("s", "of the step"),
  "idle/accelerator": (
    "fraction",
    "of the step, in neither of the stages sampling and update; what the host "
    "does within them counts as busy, so that more may be idle",
  ),
  "idle/harness": ("fraction", "of the step in which it had no candidate"),
}  # fmt: skip

# What depends on the machine's speed or on caches, not on the computation.
NOT_REPRODUCIBLE = (
  "seconds/",
  "compile/",
  "idle/",
  "kernels/judged",
  "kernels/judge_restarts",
)


class UndeclaredMetric(KeyError):
  """A name that METRICS does not hold."""


class Writer:
  """Writes metrics of a run. Owns two files; close it."""

  def __init__(self, workdir: pathlib.Path, next_step: int):
    """Opens the files; lines of steps that will be done again are removed.

    Args:
      workdir: of the run.
      next_step: the first step to come; what stands in the file from there on
        was written after the checkpoint that the run resumes from.
    """
    self._path = workdir / "metrics.jsonl"
    _drop_from(self._path, next_step)
    self._file = open(self._path, "a", encoding="utf-8")
    self._board = _open_board(workdir / "tensorboard", next_step)

  def write(self, step: int, values: Mapping[str, Any]) -> None:
    """Writes one line.

    Raises:
      UndeclaredMetric: a name is not in METRICS.
      OSError: the disk is full, say; the line may be incomplete then.
    """
    unknown = sorted(set(values) - set(METRICS))
    if unknown:
      raise UndeclaredMetric(
        f"metric `{unknown[0]}` is not declared in leap_jax/metrics.py"
      )
    numbers = {name: float(value) for name, value in values.items()}
    # JSON has no NaN: a metric without a value is left out.
    line = {k: v for k, v in numbers.items() if math.isfinite(v)}
    self._file.write(json.dumps({"step": step, **line}) + "\n")
    self._file.flush()
    os.fsync(self._file.fileno())
    # tensorboardX imports PyTorch where it is installed, which takes seconds:
    # only for those who write.
    from tensorboardX import summary
    from tensorboardX.proto import event_pb2

    for name, value in line.items():
      event = event_pb2.Event(step=step, summary=summary.scalar(name, value))
      event.wall_time = time.time()
      self._board.write_event(event)
    self._board.flush()

  def close(self) -> None:
    """Flushes and closes."""
    try:
      self._file.close()
    finally:
      self._board.close()


def _open_board(folder, next_step):
  """An event file that is written at once, in this thread.

  The library's SummaryWriter writes in a thread of its own behind a short
  queue: on a full disk that thread dies and the next metric waits for ever.
  """
  from tensorboardX import event_file_writer
  from tensorboardX.proto import event_pb2

  folder.mkdir(exist_ok=True)
  board = event_file_writer.EventsWriter(
    str(folder / "events"),
    # Two starts in one second must not share a file.
    filename_suffix=f".{os.getpid()}.{next_step}",
  )
  # What was written from this step on is hidden: it will be done again.
  start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
  board.write_event(event_pb2.Event(step=next_step, session_log=start))
  board.flush()
  return board


def _drop_from(path, next_step):
  if not path.exists():
    return
  kept = []
  for line in path.read_text("utf-8").splitlines():
    try:
      record = json.loads(line)
    except ValueError:
      continue  # half a line: the run was killed while writing it
    if record["step"] < next_step:
      kept.append(line)
  text = "".join(line + "\n" for line in kept)
  files.write_whole(path.parent, {path.name: text.encode()})


def read(path: pathlib.Path) -> list[dict[str, float]]:
  """The lines of a metrics file."""
  return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def reproducible(record: Mapping[str, float]) -> dict[str, float]:
  """A line without what depends on the machine's speed."""
  return {
    name: value
    for name, value in record.items()
    if not name.startswith(NOT_REPRODUCIBLE)
  }
