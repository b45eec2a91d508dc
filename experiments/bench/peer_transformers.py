"""Sampling with transformers' `generate`: work as JSON on standard input.

PyTorch's fused attention, the default cache; without log-probabilities, which
it would have to keep as logits of the whole vocabulary. Nothing of it is
compiled, so that a few tokens are enough to begin with.
"""

import json
import sys
import time

_FIRST_TOKENS = 8  # of a batch that does not count


def run(job: dict) -> dict:
  """Seconds of each counted repetition, until the ids are on the host."""
  import numpy as np
  import torch
  import transformers

  from leap_jax.models import sizes
  from leap_jax.pretrained import hf_export

  own = "vocab_size" not in sizes.SIZES[job["size"]]
  config = sizes.model_config(job["size"], job["vocab_size"] if own else None)
  record = hf_export.config_record(config, [], job["dtype"])
  del record["architectures"], record["eos_token_id"], record["torch_dtype"]
  device = "cuda" if torch.cuda.is_available() else "cpu"
  torch.manual_seed(job["seed"])
  model = (
    transformers.AutoModelForCausalLM.from_config(
      transformers.AutoConfig.for_model(**record),
      dtype=getattr(torch, job["dtype"]),
    )
    .to(device)
    .eval()
  )
  model.generation_config.eos_token_id = None
  model.generation_config.pad_token_id = 0
  rng = np.random.default_rng(job["seed"])
  groups = (job["batch"] // job["group_size"], job["prompt_tokens"])
  prompts = torch.as_tensor(
    rng.integers(3, config.num_ids, groups).repeat(job["group_size"], 0)
  ).to(device)
  seconds = []
  for new_tokens in [_FIRST_TOKENS] + [job["new_tokens"]] * job["repeats"]:
    started = time.perf_counter()
    with torch.inference_mode():
      out = model.generate(
        input_ids=prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=new_tokens,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
      ).cpu()
    seconds.append(time.perf_counter() - started)
    assert out.shape[1] == job["prompt_tokens"] + new_tokens
  return {
    "version": transformers.__version__,
    "torch": torch.__version__,
    "seconds": seconds[1:],
  }


if __name__ == "__main__":
  print(json.dumps(run(json.load(sys.stdin))))
