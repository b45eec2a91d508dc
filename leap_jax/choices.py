"""The names that a setting may have, where importing the thing takes JAX.

A mistake on the command line is answered before JAX is loaded; a test holds
these equal to the keys of the tables that they name.
"""

SIZES = ("micro", "tiny")  # models.transformer.SIZES
REMAT = ("none", "dots", "block")  # models.whole_rows.REMAT
DTYPES = ("float32", "bfloat16")
HEADS = ("whole", "chunked")  # head.HEADS
LORA_TARGETS = ("query", "key", "value", "out", "gate", "up", "down")
METHODS = ("leap", "grpo_multi_turn", "grpo_single_turn")  # methods.METHODS
# losses.NORMALIZATIONS
NORMALIZATIONS = ("token_mean", "sequence_mean", "constant_length")
