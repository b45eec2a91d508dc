"""Compares a published policy with what others make of the same file.

    python -m experiments.parity MODEL --against=transformers
    python -m experiments.parity MODEL.gguf --against=llama_cpp

Three prompts are continued greedily by the other library; read back by ours,
every one of its tokens must be the likeliest: then our greedy text is the same.
Ten thousand snippets of code and random text must give the same token ids on
both sides and come back from them as they were. The other library is not
installed with this package: pip install 'leap-jax[parity]' or llama-cpp-python.
MODEL is a Hugging Face folder or a GGUF file. --chat_template=FILE gives a base
model the template that it lacks. Exit status 1: they differ.
"""

import pathlib
import random
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from absl import flags

from experiments.config_file import asks_for_help

PROMPTS = (
  "__global__ void vec_add(const float* a, const float* b, float* c, int n) {",
  "def fibonacci(n):\n",
  "The three most important ideas in parallel programming are",
)


class Reference(NamedTuple):
  """What the other library does."""

  name: str  # with its version
  encode: Callable[[str], list[int]]
  # (prompt ids, number of new tokens) -> new ids
  continue_greedily: Callable[[Sequence[int], int], list[int]]


def _transformers(model, num_context):
  del num_context
  import torch
  import transformers

  name = {"gguf_file": model.name} if model.is_file() else {}
  folder = model.parent if model.is_file() else model
  theirs = transformers.AutoModelForCausalLM.from_pretrained(
    folder, dtype=torch.float32, **name
  ).eval()
  tokenizer = None
  if not name:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

  def continue_greedily(ids, count):
    with torch.inference_mode():
      out = theirs.generate(
        torch.tensor([list(ids)]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        max_new_tokens=count,
        min_new_tokens=count,
        do_sample=False,
        # None of what a folder's generation config may change.
        repetition_penalty=1.0,
        eos_token_id=None,
        pad_token_id=0,
      )
    return out[0, len(ids) :].tolist()

  encode = None
  if tokenizer is not None:
    encode = lambda text: tokenizer.encode(
      text, add_special_tokens=False, split_special_tokens=True
    )
  return Reference(
    f"transformers {transformers.__version__}", encode, continue_greedily
  )


def _llama_cpp(model, num_context):
  import llama_cpp
  import numpy as np

  theirs = llama_cpp.Llama(
    str(model),
    n_ctx=num_context,
    n_threads=2,
    logits_all=False,
    verbose=False,
  )

  def encode(text):
    return theirs.tokenize(text.encode(), add_bos=False, special=False)

  def continue_greedily(ids, count):
    theirs.reset()
    theirs.eval(list(ids))
    out = []
    for _ in range(count):
      logits = np.ctypeslib.as_array(
        theirs._ctx.get_logits(), (theirs.n_vocab(),)
      )
      out.append(int(logits.argmax()))
      theirs.eval(out[-1:])
    return out

  return Reference(
    f"llama-cpp-python {llama_cpp.__version__}", encode, continue_greedily
  )


REFERENCES = {"transformers": _transformers, "llama_cpp": _llama_cpp}


def snippets(count: int, seed: int) -> list[str]:
  """Pieces of this project's sources, and lines of random characters."""
  draw = random.Random(seed)
  root = pathlib.Path(__file__).parents[1]
  texts = [
    path.read_text()
    for package in ("kernels_eval", "leap_jax", "experiments")
    for kind in ("*.py", "*.cu", "*.h", "*.txt")
    for path in sorted((root / package).rglob(kind))
  ]
  letters = "abcXYZ019 \t\n_(){}[];<>|+-*/%&^~'\"\\#éßñçøΩжя中文日本語한국🙂—…"
  out = []
  for i in range(count):
    if i % 4 == 3:
      out.append("".join(draw.choices(letters, k=draw.randint(1, 60))))
      continue
    text = draw.choice(texts)
    begin = draw.randrange(max(len(text), 1))
    out.append(text[begin : begin + draw.randint(1, 200)])
  return out


def compare_text(
  policy, params, reference, num_tokens
) -> list[tuple[int, str]]:
  """For each prompt, how many tokens in a row are the likeliest here too."""
  import jax
  import jax.numpy as jnp
  import numpy as np

  from leap_jax.models import transformer, whole_rows
  from leap_jax.types import Message

  config, tokenizer = policy.config, policy.tokenizer

  @jax.jit
  def likeliest(params, tokens):
    hidden = whole_rows.hidden_states(config, params, tokens)
    best = jax.lax.top_k(transformer.logits_of(config, params, hidden), 2)
    return best[1][..., 0], best[0][..., 0] - best[0][..., 1]

  results = []
  for prompt in PROMPTS:
    ids = tokenizer.opening(Message("user", prompt))
    new = reference.continue_greedily(ids, num_tokens)
    best, margin = likeliest(params, jnp.asarray([ids + new[:-1]]))
    best, margin = (np.asarray(x)[0, len(ids) - 1 :] for x in (best, margin))
    same = best == np.asarray(new)
    agreed = len(new) if same.all() else int(np.argmin(same))
    line = (
      f"prompt {prompt.splitlines()[0][:40]!r}: {agreed} of {len(new)} greedy "
      f"tokens agree (smallest margin {margin[:agreed].min(initial=99):.4f}); "
      f"text {tokenizer.decode(new)[:60]!r}"
    )
    results.append((agreed, line))
  return results


def compare_ids(tokenizer, reference, texts) -> tuple[int, str]:
  """How many texts differ, in their ids or when they come back; one line."""
  ids = [tokenizer.encode(text) for text in texts]
  lost = [
    t for t, i in zip(texts, ids, strict=True) if tokenizer.decode(i) != t
  ]
  line = f"tokenizer: {len(texts) - len(lost)} of {len(texts)} texts come back"
  if lost:
    line += f" (not {lost[0][:40]!r})"
  if reference.encode is None:
    return len(lost), f"{line}; no tokenizer to compare with"
  other = [
    t for t, i in zip(texts, ids, strict=True) if reference.encode(t) != i
  ]
  line += f"; {len(texts) - len(other)} have the same ids"
  if other:
    line += f" (not {other[0][:40]!r})"
  return len(lost) + len(other), line


def _flags(argv):
  values = flags.FlagValues()
  flags.DEFINE_enum(
    "against",
    "transformers",
    sorted(REFERENCES),
    "the other library",
    flag_values=values,
  )
  flags.DEFINE_integer("tokens", 40, "greedy tokens", flag_values=values)
  flags.DEFINE_integer(
    "snippets", 10_000, "texts for the tokenizer", flag_values=values
  )
  flags.DEFINE_string(
    "chat_template", None, "Jinja file for a base model", flag_values=values
  )
  rest = values(argv)
  if len(rest) != 2:
    raise flags.Error("give one MODEL: a Hugging Face folder or a GGUF file")
  return pathlib.Path(rest[1]), values


def main(argv: list[str]) -> int:
  """Prints the comparison; 0 if all agrees, 1 if not, 2 for bad input."""
  if asks_for_help(argv):
    print(__doc__)
    return 0
  try:
    model, values = _flags(argv)
  except flags.Error as error:
    print(f"experiments.parity: {error}", file=sys.stderr)
    return 2
  from leap_jax import chat_format, policy_io

  try:
    template = values.chat_template
    overrides = chat_format.ChatOverrides(
      template=template and pathlib.Path(template).read_text()
    )
    policy = policy_io.open_policy(model, overrides)
    for note in policy.notes:
      print(note, file=sys.stderr)
    params = policy.read()
  except (policy_io.PolicyError, OSError) as error:
    print(f"experiments.parity: {error}", file=sys.stderr)
    return 2
  try:
    reference = REFERENCES[values.against](model, 1024)
  except ImportError as error:
    print(f"experiments.parity: {error}", file=sys.stderr)
    return 2
  print(f"{model.name} against {reference.name}, float32 on our side")
  different, line = compare_ids(
    policy.tokenizer, reference, snippets(values.snippets, 0)
  )
  print(line)
  texts = compare_text(policy, params, reference, values.tokens)
  print("\n".join(line for _, line in texts))
  agreed = all(count == values.tokens for count, _ in texts)
  return 0 if agreed and not different else 1


if __name__ == "__main__":
  sys.exit(main(sys.argv))
