r"""Speed of a 135M policy's update on one GPU: 256 rows of up to 1,024 tokens.

    python -m experiments.bench update \
      --config=experiments/configs/bench_update_135m.py

Random weights of SmolLM2-135M (a Llama), bfloat16 over float32 masters.
"""

from experiments.configs import base


def get_config():
  """Base with published sizes, 16-bit computation and a chunked head."""
  c = base.get_config()
  c.policy.size = "smollm2-135m"
  c.policy.dtype = "bfloat16"
  c.policy.remat = "dots"
  c.policy.layers = "unrolled"
  c.rollout.num_problems = 32
  c.rollout.group_size = 8
  c.rollout.max_prompt_tokens = 384
  c.rollout.max_feedback_tokens = 128
  c.rollout.max_new_tokens = 192
  c.rollout.max_context_tokens = 1024
  c.learner.bucket_tokens = (1024,)
  c.learner.micro_tokens = 65536
  c.learner.head = "chunked"
  c.learner.head_tokens = 8192
  return c
