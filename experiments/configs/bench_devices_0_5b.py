r"""Several GPUs against one: 1,024 rows of 1,024 tokens, sampled and learnt.

    python -m experiments.bench devices \
      --config=experiments/configs/bench_devices_0_5b.py

Random weights of Qwen2.5-0.5B in bfloat16 over float32 masters, prompts of 512
tokens and 512 new ones. Some minutes.
"""

from experiments.configs import bench_update_0_5b


def get_config():
  """The update's policy, with rows that one turn samples."""
  c = bench_update_0_5b.get_config()
  c.rollout.num_problems = 128
  c.rollout.num_turns = 1
  c.rollout.max_prompt_tokens = 512
  c.rollout.max_new_tokens = 512
  c.sampler.dtype = "bfloat16"
  # Each device's part of a micro-batch is then as large as one device's of
  # bench_update_0_5b.
  c.learner.micro_tokens = 65536
  return c
