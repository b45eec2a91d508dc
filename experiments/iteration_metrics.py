"""The metrics of one iteration but for times and compilations."""

import numpy as np

from kernels_eval.schema import Status

_FAILURES = {
  Status.WRONG_ANSWER: "kernels/wrong_answer",
  Status.COMPILE_ERROR: "kernels/compile_error",
  Status.RUNTIME_ERROR: "kernels/runtime_error",
}


def iteration_metrics(run, gathered, batch, first, last) -> dict[str, float]:
  """Every metric of an iteration but times and compilations.

  Rollout and kernel metrics are over all groups that were rolled out, those
  that a refill replaced included: choosing groups by their outcome would bias
  them. Update metrics are over what was trained on.

  Args:
    run: for its sizes.
    gathered: the rollouts.
    batch: what was packed.
    first: metrics of the first update, or None if there was none.
    last: of the last one.
  """
  stats = gathered.stats
  together = lambda name: np.concatenate(
    [getattr(r, name) for r in gathered.rounds]
  )
  correct, executed = together("correct"), together("executed")
  ok, gate = together("ok"), together("active")
  # Without a sample that counts there is no rate (NaN), not a rate of 0.
  num_ok = ok.sum() if ok.any() else np.nan
  solved = (correct & executed).any(-1) & ok
  failed_first = ok & ~correct[..., 0]
  active = gate[:, None] & failed_first
  in_active = max(int((gate[:, None] & ok).sum()), 1)
  turns = [
    turn
    for once in gathered.rounds
    for trajectory in once.trajectories
    for turn in trajectory.turns
  ]
  submitted = max(len(turns), 1)
  counts = {name: 0 for name in _FAILURES.values()}
  for turn in turns:
    if turn.evaluation.status in _FAILURES:
      counts[_FAILURES[turn.evaluation.status]] += 1
  passed = sum(turn.correct for turn in turns)
  # Among them a kernel that passes in an answer that was cut.
  other = len(turns) - passed - sum(counts.values())
  values = {
    "rollout/acc_at_1": (correct[..., 0] & ok).sum() / num_ok,
    "rollout/acc_at_last": solved.sum() / num_ok,
    "rollout/activation": gate.mean(),
    "rollout/active_fail_rate": active.sum() / in_active
    if gate.any()
    else np.nan,
    "rollout/recovery_rate": (solved & active).sum() / active.sum()
    if active.any()
    else np.nan,
    "rollout/turns_per_sample": (executed & ok[..., None]).sum() / num_ok,
    "rollout/spread_groups": gathered.has_spread.sum(),
    "rollout/refill_rounds": len(gathered.rounds) - 1,
    "rollout/refilled_groups": gathered.num_replaced,
    "rollout/faults": gathered.num_faults,
    "rollout/truncated_fraction": stats.truncated_turns / max(stats.turns, 1),
    "rollout/context_full": stats.context_full,
    "rollout/feedback_cut": stats.feedback_cut,
    "rollout/tokens": stats.sampled_tokens,
    "rollout/useful_slots": stats.sampled_tokens / max(stats.decode_slots, 1),
    "rollout/kept_mass": stats.kept_mass / max(stats.sampled_tokens, 1),
    "kernels/submitted": stats.harness_calls,
    "kernels/passed": passed / submitted,
    **{name: n / submitted for name, n in counts.items()},
    "kernels/other_failure": other / submitted,
    "update/rows": batch.num_rows,
    "update/rows_dropped": batch.num_dropped,
    "update/samples": batch.num_samples,
    "update/tokens": batch.num_tokens,
    "update/padding": 1.0 - batch.real_tokens / max(batch.padded_tokens, 1),
    "update/skipped": float(batch.is_empty),
    "seconds/sample": stats.sample_seconds,
    "seconds/harness": stats.harness_seconds,
  }
  if last is not None:
    values |= {
      "update/loss": last["loss"],
      "update/entropy": last["entropy"],
      "update/grad_norm": last["grad_norm"],
      "update/relative_step": last["update_norm"] / last["weight_norm"],
      "update/clip_fraction": last["clip_fraction"],
      "update/kl": last["kl"],
      "update/rejected": 1.0 - last["num_tokens"] / batch.num_tokens,
      "update/log_ratio_mean": first["log_ratio_mean"],
      "update/log_ratio_p95": first["log_ratio_p95"],
      "update/log_ratio_max": first["log_ratio_max"],
    }
  return values
