"""Sampling with google-tunix 0.1.7: work as JSON on standard input.

Its own sampler with the smallest cache that holds prompt and answer, which
favours it: the cost of its attention follows the size of the cache. Llamas run
as its Qwen2 of the same sizes, which differs by three bias vectors a layer: its
Llama has no dtype.
"""

import json
import sys
import time
from importlib import metadata


class _Words:
  """A tokenizer of numbers: one word, one id. No id ends a row."""

  def __init__(self, vocab_size):
    self._end = vocab_size

  def encode(self, text, **_):
    return [int(word) for word in text.split()]

  def decode(self, ids, **_):
    return " ".join(str(i) for i in ids)

  def bos_id(self):
    return 1

  def eos_id(self):
    return self._end

  def pad_id(self):
    return 0


def _model(config, dtype):
  from flax import nnx
  from tunix.models.qwen2 import model as qwen2
  from tunix.models.qwen3 import model as qwen3

  module, kind = (
    (qwen3, qwen3.Qwen3) if config.has_qk_norm else (qwen2, qwen2.Qwen2)
  )
  sizes = module.ModelConfig(
    num_layers=config.num_layers,
    vocab_size=config.vocab_size,
    embed_dim=config.width,
    hidden_dim=config.mlp_width,
    num_heads=config.num_heads,
    head_dim=config.head_size,
    num_kv_heads=config.num_kv_heads,
    rope_theta=int(config.rope_theta),
    norm_eps=config.norm_eps,
    use_tied_embedding=config.tied_head,
    dtype=dtype,
    param_dtype=dtype,
  )
  return kind(sizes, rngs=nnx.Rngs(0))


def run(job: dict) -> dict:
  """Seconds of each counted repetition, from text to text."""
  import jax.numpy as jnp
  import numpy as np
  from tunix.generate import sampler as tunix

  from leap_jax.models import sizes

  own = "vocab_size" not in sizes.SIZES[job["size"]]
  config = sizes.model_config(job["size"], job["vocab_size"] if own else None)
  made = tunix.Sampler(
    _model(config, getattr(jnp, job["dtype"])),
    _Words(config.vocab_size),
    tunix.CacheConfig(
      cache_size=job["prompt_tokens"] + job["new_tokens"],
      num_layers=config.num_layers,
      num_kv_heads=config.num_kv_heads,
      head_dim=config.head_size,
    ),
  )
  rng = np.random.default_rng(job["seed"])
  # Its tokenizer puts one id in front.
  words = (job["batch"] // job["group_size"], job["prompt_tokens"] - 1)
  prompts = [
    " ".join(str(i) for i in row)
    for row in rng.integers(3, config.num_ids, words)
    for _ in range(job["group_size"])
  ]
  seconds = []
  for seed in range(job["repeats"] + 1):
    started = time.perf_counter()
    out = made(
      prompts,
      max_generation_steps=job["new_tokens"],
      max_prompt_length=job["prompt_tokens"],
      temperature=1.0,
      top_p=1.0,
      return_logprobs=True,
      seed=seed,
    )
    seconds.append(time.perf_counter() - started)
    assert all(len(row) == job["new_tokens"] for row in out.tokens)
  return {
    "version": metadata.version("google-tunix"),
    "seconds": seconds[1:],
  }


if __name__ == "__main__":
  print(json.dumps(run(json.load(sys.stdin))))
