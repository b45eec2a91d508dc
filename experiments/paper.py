"""Numbers that LEAP's paper reports (arXiv 2608.01804), second-hand.

From public summaries of its tables 1, 5 and 6: Qwen2.5-7B on KernelBench, 250
problems, one sample each, one seed as far as is known (the standard error of
80 % is 2.5 points). They are shown beside ours for their order, not for their
size: policy, problems and machines are others.
"""

NOTE = (
  "paper: LEAP (arXiv 2608.01804), second-hand; Qwen2.5-7B on KernelBench, 250 "
  "problems, one sample each. Its order can be compared with ours, its size "
  "cannot."
)

# table: row: column: value as shown
REPORTED: dict[str, dict[str, dict[str, float]]] = {
  "main": {
    "grpo_single_turn": {
      "acc_at_1": 66.0,
      "acc_at_2": 75.2,
      "acc_at_3": 75.2,
      "turns_per_pass": 1.90,
    },
    "murphy": {
      "acc_at_1": 67.6,
      "acc_at_2": 76.4,
      "acc_at_3": 77.2,
      "turns_per_pass": 1.93,
    },
    "trloo": {
      "acc_at_1": 68.4,
      "acc_at_2": 79.6,
      "acc_at_3": 80.4,
      "turns_per_pass": 1.84,
    },
    "leap": {
      "acc_at_1": 70.0,
      "acc_at_2": 79.2,
      "acc_at_3": 80.8,
      "turns_per_pass": 1.77,
    },
  },
  "cost": {
    "grpo_single_turn": {"step_seconds": 600},
    "murphy": {"step_seconds": 950},
    "trloo": {"step_seconds": 950},
    "leap": {"step_seconds": 700, "activation": 43.9},
  },
  "dcp": {
    "gate_easy": {"acc_at_3": 77.6, "activation": 57.1, "recovered": 73.9},
    "gate_hard": {"acc_at_3": 80.8, "activation": 43.9, "recovered": 61.8},
    "gate_open": {"acc_at_3": 80.4, "activation": 100.0, "recovered": 64.5},
  },
  # The first row equals LEAP's own Acc@1 and Acc@2 of table 1: perhaps misread.
  "reward": {
    "grpo_multi_turn": {"acc_at_1": 70.0, "acc_at_3": 79.2},
    "leap": {"acc_at_1": 70.0, "acc_at_3": 80.8},
  },
}

SPEEDUP = 1.93
"""Times as fast to the same performance as a baseline; which one is open."""
