"""The names that a setting may have, where importing the thing takes JAX.

A mistake on the command line is answered before JAX is loaded; a test holds
these equal to the keys of the tables that they name.
"""

REMAT = ("none", "dots", "block")  # models.whole_rows.REMAT
LAYERS = ("scan", "unrolled")  # models.whole_rows.LAYERS
DTYPES = ("float32", "bfloat16")
HEADS = ("whole", "chunked")  # head.HEADS
LORA_TARGETS = ("query", "key", "value", "out", "gate", "up", "down")
SIZES = (  # models.sizes.SIZES
  "micro",
  "tiny",
  "smollm2-135m",
  "smollm2-360m",
  "smollm2-1.7b",
  "qwen2.5-0.5b",
  "qwen2.5-1.5b",
  "qwen2.5-7b",
  "qwen3-0.6b",
  "qwen3-1.7b",
  "qwen3-4b",
  "qwen3-8b",
  "llama3.2-1b",
  "llama3.2-3b",
  "gemma3-270m",
  "gemma3-1b",
)
ATTENTION = ("xla", "cudnn")  # models.attention.IMPLEMENTATIONS
METHODS = (  # methods.METHODS
  "leap",
  "grpo_multi_turn",
  "grpo_single_turn",
  "kevin",
  "murphy",
  "trloo",
  "prime_echo",
)
# methods.TURN_ADVANTAGES: no reward of a whole sample, no credit to spread.
TURN_LEVEL_METHODS = ("kevin", "murphy", "trloo")
GATES = (  # methods.GATES
  "open",
  "closed",
  "difficulty",
  "easy",
  "hard",
  "hard_not_hopeless",
  "band",
  "random",
  "smoothed",
)
REWARDS = (  # methods.REWARDS
  "rank",
  "rank_std",
  "rank_floor_solved",
  "rank_fail_tiers",
  "rank_speed",
  "solved_std",
  "solved_loo",
  "first_turn_std",
  "hand_set_std",
  "hand_set_loo",
  "prime_echo_std",
)
# methods.CREDITS
CREDITS = ("discounted", "discounted_last", "shared", "first_turn")
# corrections.CORRECTIONS
CORRECTIONS = ("none", "tis", "geometric_mask", "mirror_pop")
SAMPLINGS = ("uniform", "predictive")  # gathering.SAMPLINGS
# losses.NORMALIZATIONS
NORMALIZATIONS = ("token_mean", "sequence_mean", "constant_length")
DENOMINATORS = ("with_advantage", "all_judged")  # losses.DENOMINATORS
