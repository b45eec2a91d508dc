"""Writes a policy as a Hugging Face folder that the transformers library loads.

    python -m experiments.export WORKDIR/policy FOLDER [--dtype=bfloat16]

The policy may be anything that config.policy.source takes: a folder that a run
has written, "shipped", a Hugging Face folder, or a GGUF file.
"""

import pathlib
import sys

from absl import flags

from experiments.config_file import asks_for_help

DTYPES = ("bfloat16", "float16", "float32")  # hf_export.DTYPES


def _arguments(argv):
  values = flags.FlagValues()
  flags.DEFINE_enum(
    "dtype", "bfloat16", DTYPES, "of the weights", flag_values=values
  )
  rest = values(argv)
  if len(rest) != 3:
    raise flags.Error("give a policy and a folder to write")
  return rest[1], pathlib.Path(rest[2]), values.dtype


def main(argv: list[str]) -> int:
  """Exports from the command line; returns the exit status."""
  if asks_for_help(argv):
    print(__doc__)
    return 0
  fail = lambda text: print(f"experiments.export: {text}", file=sys.stderr)
  try:
    source, folder, dtype = _arguments(argv)
  except flags.Error as error:
    fail(error)
    return 2
  from leap_jax import policy_io
  from leap_jax.pretrained import hf_export

  path = policy_io.SHIPPED if source == "shipped" else pathlib.Path(source)
  try:
    policy = policy_io.open_policy(path)
    for note in policy.notes:
      print(note, file=sys.stderr)
    hf_export.export(
      folder, policy.config, policy.read(), policy.tokenizer, dtype=dtype
    )
  except policy_io.PolicyError as error:
    fail(error)
    return 2
  except OSError as error:
    where = f" ({error.filename})" if error.filename else ""
    fail(f"{error.strerror or error}{where}; nothing written")
    return 1
  size = sum(p.stat().st_size for p in folder.glob("model*.safetensors"))
  print(f"{folder}: {size / 2**20:.1f} MiB of weights, {dtype}")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
