"""Small Hugging Face folders, written without any library of theirs."""

import json

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from leap_jax.pretrained import safetensors_writer
from tests.golden import tiny_models

CHATML = (
  "{% for m in messages %}{% if loop.first and m.role != 'system' %}"
  "<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}"
  "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
  "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def vocabulary(special=SPECIAL):
  """Byte-level BPE with ChatML's special tokens first; 298 ids."""
  inner = tokenizers.Tokenizer(models.BPE())
  inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
  inner.decoder = decoders.ByteLevel()
  trainer = trainers.BpeTrainer(
    vocab_size=298,
    special_tokens=list(special),
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False,
  )
  texts = ["system user assistant Be kind.", "int i = threadIdx.x; if (i < n)"]
  inner.train_from_iterator(texts * 4, trainer)
  return inner


def write_tokenizer(folder, inner, template=CHATML, end="<|im_end|>"):
  """tokenizer.json and the two files beside it."""
  (folder / "tokenizer.json").write_text(inner.to_str())
  settings = {"eos_token": {"content": end}, "bos_token": "<|endoftext|>"}
  if template is not None:
    settings["chat_template"] = template
  (folder / "tokenizer_config.json").write_text(json.dumps(settings))
  ends = [inner.token_to_id(end), inner.token_to_id("<|endoftext|>")]
  (folder / "generation_config.json").write_text(
    json.dumps({"eos_token_id": ends})
  )


def write_weights(path, shapes, family, dtype="float32", change=None):
  """The rule's weights; `change(name, array)` may replace some."""
  change = change or (lambda name, array: array)

  def entry(name, shape):
    make = lambda: change(name, tiny_models.tensor(name, tuple(shape), family))
    return safetensors_writer.Tensor(name, tuple(shape), make)

  tensors = [entry(name, shape) for name, shape in shapes.items()]
  safetensors_writer.write(path, tensors, dtype)


def write_model(folder, record, shapes, family):
  """A folder of a golden model with a larger vocabulary and a tokenizer."""
  inner = vocabulary()
  rows = inner.get_vocab_size() + 4  # padding
  config = record | {"vocab_size": rows}
  shapes = {
    name: [rows, *shape[1:]] if "embed" in name or "lm_head" in name else shape
    for name, shape in shapes.items()
  }
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "config.json").write_text(json.dumps(config))
  write_weights(folder / "model.safetensors", shapes, family)
  write_tokenizer(folder, inner)
  return config, shapes
