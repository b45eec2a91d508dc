r"""LEAP against its baselines: a code model of 0.5B on one GPU.

    bash experiments/headline.sh MODEL

    python -m experiments.run --config=experiments/configs/headline_0_5b.py \
      --config.policy.source=MODEL

The first is all of it, the second LEAP alone.
MODEL is Qwen2.5-Coder-0.5B-Instruct, as a GGUF file or a folder. One cold start
for all, then each of three methods has the same seconds of training, with each
of two seeds. Adapters of rank 8 are trained: a checkpoint is 54 MiB, small
enough to be carried to another machine on which a run goes on.

On an H200 the cold start takes 4 minutes, and 80 s of training take 3.5 with
what is compiled and evaluated. What came out: docs/headline.md.
"""

from experiments.configs import base


def get_config():
  """Base for a 0.5B policy whose kernels run on the GPU."""
  c = base.get_config()
  c.policy.dtype = "bfloat16"
  c.policy.lora_rank = 8
  c.policy.lora_alpha = 16.0
  # Of 1,024 problems of up to six operators prompts have at most 165 tokens
  # of this policy, canonical answers 276.
  c.problems.max_operators = 6
  c.problems.num_heldout = 64  # two rollouts, without repeats
  c.harness.executor = "cuda"
  c.sampler.dtype = "bfloat16"
  c.sampler.slot_ratio = 0.85
  c.sampler.idle_fraction = 0.05
  c.rollout.num_problems = 32
  c.rollout.group_size = 8
  c.rollout.num_turns = 3
  c.rollout.max_prompt_tokens = 192
  c.rollout.max_feedback_tokens = 160
  c.rollout.max_new_tokens = 320
  c.rollout.max_context_tokens = 1472
  c.rollout.row_buckets = (64, 128)
  # At 1e-4 LEAP falls by ten points for a while, at 2e-4 it does not recover
  # (LOG.md, "Learning rates of the headline").
  c.learner.learning_rate = 5e-5
  # Most rows are one turn of 180 to 400 tokens. With answers as long as the
  # canonical ones a third of what is computed is padding (a simulation).
  c.learner.bucket_tokens = (256, 384, 768, 1472)
  c.learner.micro_tokens = 11776
  c.learner.head = "chunked"
  c.learner.head_tokens = 8192
  # Sampler and trainer round differently in 16 bits.
  c.learner.max_log_ratio = 0.3
  # Most first answers of the conversations are wrong, so that there is
  # something left to learn.
  c.warm_start.num_steps = 100
  c.warm_start.num_conversations = 2048
  c.warm_start.learning_rate = 2e-4
  c.warm_start.warmup_steps = 10
  c.warm_start.checkpoint_every = 50
  # A time to accuracy is sound from four gaps between evaluations on
  # (experiments/time_to_accuracy.py). An iteration is 0.5 to 4 s long, and an
  # evaluation 2 to 3: as many as iterations would take longer than training.
  c.eval.every = 1
  c.eval.growth = 0.1
  c.eval.random_feedback = True
  c.run.num_iterations = 1000  # the seconds decide
  c.run.checkpoint_every = 10
  return c
