r"""Whole LEAP iterations of a 0.5B policy on one GPU: 32 problems, 8 samples.

    python -m experiments.bench step \
      --config=experiments/configs/bench_step_0_5b.py \
      --config.policy.source=FOLDER

FOLDER holds the weights and the tokenizer of a code model of about half a
billion parameters.
"""

from experiments.configs import base


def get_config():
  """Base with sizes for a code model, and kernels judged on the GPU."""
  c = base.get_config()
  c.policy.dtype = "bfloat16"
  c.policy.layers = "unrolled"
  c.policy.remat = "dots"  # trying what fits would take minutes of compiling
  c.sampler.dtype = "bfloat16"
  c.sampler.slot_ratio = 0.85
  c.sampler.least_slots = 32
  c.sampler.idle_fraction = 0.05
  c.harness.executor = "auto"
  c.rollout.num_problems = 32
  c.rollout.group_size = 8
  c.rollout.num_turns = 3
  c.rollout.max_prompt_tokens = 512
  c.rollout.max_feedback_tokens = 192
  c.rollout.max_new_tokens = 384
  c.rollout.max_context_tokens = 2048
  c.rollout.row_buckets = (64, 128)
  c.learner.bucket_tokens = (1024, 2048)
  c.learner.micro_tokens = 32768
  c.learner.head = "chunked"
  c.learner.head_tokens = 8192
  # Sampler and trainer round differently in 16 bits.
  c.learner.max_log_ratio = 0.3
  return c
