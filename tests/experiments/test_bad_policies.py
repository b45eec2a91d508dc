"""What is wrong with a policy is answered before any judge is started."""

import json
import pathlib

import pytest

from experiments import endings, pools, run, start
from kernels_eval.client import HarnessError
from tests.leap_jax import hf_folders

CONFIG = pathlib.Path(__file__).parent / "tiny_run.py"
GOLDEN = json.loads(
  (
    pathlib.Path(__file__).parents[1] / "golden" / "transformers_logits.json"
  ).read_text()
)


@pytest.fixture
def asked(monkeypatch):
  """Judges that cannot start; how often they were asked to."""
  calls = []

  def make_pool(config):
    calls.append(config)
    raise HarnessError("asked for judges")

  monkeypatch.setattr(pools, "make_pool", make_pool)
  return calls


@pytest.fixture
def folder(tmp_path):
  """Published weights that the config can use."""
  golden = GOLDEN["qwen2"]
  record = golden["config"] | {"max_position_embeddings": 4096}
  path = tmp_path / "published"
  hf_folders.write_model(path, record, golden["shapes"], "qwen2")
  return path


def answer(tmp_path, capsys, *arguments):
  """Exit status and last line of the program."""
  argv = ["run", f"--config={CONFIG}", f"--workdir={tmp_path / 'run'}"]
  status = run.main([*argv, *arguments])
  return status, capsys.readouterr().err.strip().splitlines()[-1]


def missing(folder):
  folder.rename(folder.with_name("elsewhere"))


def truncated(folder):
  path = folder / "model.safetensors"
  path.write_bytes(path.read_bytes()[:-100])


def foreign(folder):
  path = folder / "config.json"
  names = {"architectures": ["Qwen2_5_VLForConditionalGeneration"]}
  path.write_text(json.dumps(json.loads(path.read_text()) | names))


def untouched(folder):
  del folder


@pytest.mark.parametrize(
  "damage, arguments, words",
  [
    (missing, [], "no policy in"),
    (truncated, [], "model.safetensors is truncated"),
    (foreign, [], "Qwen2_5_VLForConditionalGeneration is not supported"),
    (untouched, ["--config.policy.thinking=False"], "knows no enable_thinking"),
    (
      untouched,
      ["--config.rollout.max_prompt_tokens=8"],
      "no problem's prompt fits into config.rollout.max_prompt_tokens=8",
    ),
    (
      untouched,
      ["--config.rollout.max_context_tokens=8000"],
      "is longer than the model's context of 4096",
    ),
  ],
)
def test_a_bad_policy_is_answered_before_the_judges_start(
  tmp_path, capsys, folder, asked, damage, arguments, words
):
  damage(folder)
  source = f"--config.policy.source={folder}"
  status, line = answer(tmp_path, capsys, source, *arguments)
  assert status == endings.EXIT_USAGE and words in line, line
  assert not asked


def test_a_good_policy_is_opened_once_and_gets_to_the_judges(
  tmp_path, capsys, folder, asked, monkeypatch
):
  opened = []
  open_source = start.policies.open_source

  def count(config):
    opened.append(len(asked))
    return open_source(config)

  monkeypatch.setattr(start.policies, "open_source", count)
  source = f"--config.policy.source={folder}"
  # The tiny policy's prompts have other tokens than this one's.
  fits = "--config.rollout.max_prompt_tokens=400"
  context = "--config.rollout.max_context_tokens=800"
  bucket = "--config.learner.bucket_tokens=(800,)"
  status, line = answer(tmp_path, capsys, source, fits, context, bucket)
  assert status == endings.EXIT_MACHINE and "asked for judges" in line, line
  assert opened == [0] and len(asked) == 1


def test_a_random_policy_learns_its_vocabulary_behind_the_judges(
  tmp_path, capsys, asked
):
  source = "--config.policy.source=random"
  steps = "--config.warm_start.num_steps=1"
  status, line = answer(tmp_path, capsys, source, steps)
  assert status == endings.EXIT_MACHINE and "asked for judges" in line, line
  assert len(asked) == 1
  assert not (tmp_path / "run" / "tokenizer.json").exists()


def test_what_was_chosen_in_a_policy_is_said(tmp_path, capsys, folder, asked):
  (folder / "model.safetensors.index.json").write_text("{}")
  source = f"--config.policy.source={folder}"
  argv = ["run", f"--config={CONFIG}", f"--workdir={tmp_path / 'run'}", source]
  run.main(argv)
  lines = capsys.readouterr().err.splitlines()
  assert (
    sum("model.safetensors is read, not the" in line for line in lines) == 1
  )
