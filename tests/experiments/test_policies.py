"""Where a run's policy comes from, and the way out to Hugging Face."""

import json
import pathlib

import chex
import pytest

from experiments import export, parity, policies
from experiments.config_file import UsageError, load_file
from leap_jax import policy_io, sharding
from leap_jax.policy_error import PolicyError
from leap_jax.pretrained import hf_export
from tests.leap_jax import hf_folders

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = json.loads(
  (ROOT / "tests" / "golden" / "transformers_logits.json").read_text()
)


@pytest.fixture
def folder(tmp_path):
  """A Hugging Face folder whose model reads 256 tokens."""
  golden = GOLDEN["qwen2"]
  hf_folders.write_model(
    tmp_path / "published", golden["config"], golden["shapes"], "qwen2"
  )
  return tmp_path / "published"


@pytest.fixture
def config(folder):
  config = load_file(str(ROOT / "experiments" / "configs" / "base.py"))
  config.policy.source = str(folder)
  config.rollout.max_context_tokens = 256
  return config


def test_a_run_starts_from_a_hugging_face_folder(config):
  config.policy.system_prompt = "Write kernels."
  opened = policies.open_source(config)
  model, tokenizer = opened.config, opened.tokenizer
  params = policies.read(config, opened, sharding.make_mesh())
  assert model.max_context_tokens == 256
  assert params["embedding"]["embedding"].shape == (302, 16)
  text = tokenizer.inner.decode(
    list(tokenizer.chat.opening_ids), skip_special_tokens=False
  )
  assert "Write kernels." in text


def test_a_longer_context_than_the_models_is_refused(config):
  config.rollout.max_context_tokens = 257
  with pytest.raises(UsageError, match="257 is longer than the model's .* 256"):
    policies.open_source(config)


def test_feedback_must_have_room_for_the_format(config):
  config.rollout.max_feedback_tokens = 12
  with pytest.raises(UsageError, match="=12 is too little .* at least 1"):
    policies.open_source(config)
  config.rollout.num_turns = 1
  policies.open_source(config)


def test_a_template_of_the_run_replaces_the_models(config, tmp_path):
  path = tmp_path / "plain.jinja"
  config.policy.chat_template = str(path)
  with pytest.raises(UsageError, match="chat_template=.*plain.jinja"):
    policies.open_source(config)
  path.write_text(hf_folders.CHATML.replace("Be kind.", "Be brief."))
  text = policies.open_source(config).tokenizer.chat.template
  assert "Be brief." in text


def test_a_switch_that_the_template_does_not_have_is_refused(config):
  config.policy.thinking = False
  with pytest.raises(UsageError, match="thinking=False: .* unset it"):
    policies.open_source(config)


def test_the_shipped_policy_has_a_format_of_its_own(config):
  config.policy.source = "shipped"
  policy = policies.open_source(config)
  assert policy.tokenizer.chat.frame_tokens == 4
  config.policy.system_prompt = "Write kernels."
  with pytest.raises(PolicyError, match="the chat format that it was trained"):
    policies.open_source(config)


def test_the_shipped_policy_is_exported_and_comes_back(tmp_path, capsys):
  out = tmp_path / "out"
  assert export.main(["export", "shipped", str(out), "--dtype=float32"]) == 0
  assert "MiB of weights, float32" in capsys.readouterr().out
  settings = json.loads((out / "config.json").read_text())
  assert settings["architectures"] == ["Qwen3ForCausalLM"]
  config, params, tokenizer = policy_io.load(policy_io.SHIPPED)
  _, again, tokenizer_again = policy_io.load(out)
  chex.assert_trees_all_equal(again, params)
  # The same format, found by way of the template.
  for field in ("opening_ids", "user_ids", "answer_ids", "stop_tokens"):
    mine, found = (getattr(t.chat, field) for t in (tokenizer, tokenizer_again))
    assert mine == found


def test_an_export_says_what_was_chosen_in_the_policy(folder, tmp_path, capsys):
  (folder / "model.safetensors.index.json").write_text("{}")
  assert export.main(["export", str(folder), str(tmp_path / "out")]) == 0
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith(f"{folder}: model.safetensors is read, not the shards")


@pytest.mark.parametrize(
  "main,arguments,text",
  [
    (export.main, ["shipped"], "give a policy and a folder"),
    (export.main, ["nowhere", "out"], "no policy in nowhere"),
    (export.main, ["shipped", "out", "--dtype=int8"], "int8"),
    (parity.main, [], "give one MODEL"),
    (parity.main, ["nowhere"], "no policy in nowhere"),
  ],
)
def test_bad_input_is_one_line(main, arguments, text, capsys, tmp_path):
  arguments = [str(tmp_path / a) if a == "out" else a for a in arguments]
  assert main(["program", *arguments]) == 2
  said = capsys.readouterr()
  assert text in said.err and not said.out
  assert not (tmp_path / "out").exists()


def test_dtypes_of_the_command_are_those_of_the_export():
  assert export.DTYPES == hf_export.DTYPES


def test_a_policy_error_is_the_one_that_a_run_answers():
  assert policy_io.PolicyError is PolicyError
