r"""Transfer: a code model of 0.5B writes Python functions; not run yet.

    python -m experiments.run \
      --config=experiments/configs/functions_0_5b.py \
      --config.policy.source=FILE --config.run.max_training_s=100.0

FILE is Qwen2.5-Coder-0.5B-Instruct, as a GGUF file or a folder. The headline's
settings with the other domain: the GPU samples and learns, functions are judged
on the processors, at about 45 ms of one of them each. For several methods from
one cold start see headline_0_5b.py. Learning rates are those that suited
kernels.
"""

from experiments.configs import headline_0_5b


def get_config():
  """The headline with functions for problems."""
  c = headline_0_5b.get_config()
  c.problems.source = "functions"
  c.problems.reduced = 0.5
  c.harness.executor = "cpu"
  # Words, signs and digits of 1,500 problems of up to six steps, which is about
  # tokens: prompts have at most 104 and a chat format, canonical answers 160,
  # feedback 170, one in a hundred of it more than 142.
  c.rollout.max_new_tokens = 256
  c.rollout.max_context_tokens = 1280
  c.learner.bucket_tokens = (192, 320, 640, 1280)
  c.learner.micro_tokens = 10240
  return c
