"""Recreates transformers_logits.json with the transformers library.

python -m tests.golden.make_transformers_logits   (pip install -e '.[parity]')
"""

import json
import pathlib

from tests.golden import tiny_models

PATH = pathlib.Path(__file__).with_name("transformers_logits.json")


def main() -> None:
  """Computes and writes."""
  import torch
  import transformers

  out = {"computed by": f"transformers {transformers.__version__}, float32"}
  for family, (class_name, _) in tiny_models.CONFIGS.items():
    config = getattr(transformers, class_name)(**tiny_models.arguments(family))
    model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    shapes = {}
    with torch.no_grad():
      for name, parameter in model.named_parameters():
        shapes[name] = list(parameter.shape)
        values = tiny_models.tensor(name, tuple(parameter.shape), family)
        parameter.copy_(torch.tensor(values))
      logits = model(torch.tensor(tiny_models.TOKENS)).logits.numpy()
    record = json.loads(config.to_json_string(use_diff=False))
    record["architectures"] = [type(model).__name__]
    keep = {k: v for k, v in record.items() if not k.startswith("_")}
    out[family] = {
      "config": keep,
      "shapes": shapes,
      "logits": [[[round(float(x), 5) for x in t] for t in r] for r in logits],
    }
  PATH.write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
  main()
