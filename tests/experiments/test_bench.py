"""Bench: what is counted, what is written, what the table says."""

import dataclasses
import json
import pathlib
import sys
import types

import numpy as np
import pytest

from experiments import memory_check, settings
from experiments.bench import __main__ as bench
from experiments.bench import peaks, peers, roofline, sampler, table, update
from experiments.bench.record import FIELDS, RESULTS
from experiments.config_file import UsageError
from experiments.tables import TableError
from leap_jax.models.config import ModelConfig

ROOT = pathlib.Path(__file__).parents[2]
CONFIG = ROOT / "experiments" / "configs" / "bench_0_5b.py"


# A token of a layer is 2 * 1 * 2 numbers.
_MODEL = ModelConfig(
  vocab_size=5,
  width=2,
  num_layers=1,
  num_heads=1,
  num_kv_heads=1,
  head_size=2,
  mlp_width=4,
)


def test_the_bytes_of_a_roofline():
  weights = {"a": np.zeros(10, np.float16)}  # 20 bytes
  # Rows of 2 and 3 tokens behind a prompt of 4: 5 + 6 and 5 + 6 + 7 tokens of
  # 8 bytes; three steps.
  read = lambda group, slots=2: roofline.bytes_read(
    _MODEL, weights, "float16", 4, np.asarray([2, 3]), group, slots
  )
  assert read(1) == 3 * 20 + 8 * (11 + 18)
  # Together they read the prompt three times, and 1 + 2 and 1 + 2 + 3 others.
  assert read(2) == 3 * 20 + 8 * (3 * 4 + 3 + 6)
  # One after the other in one slot: five steps.
  assert read(1, slots=1) == 5 * 20 + 8 * (11 + 18)


def test_an_embedding_that_is_not_the_head_is_only_looked_up():
  weights = {
    "embedding": {"embedding": np.zeros((5, 2), np.float16)},
    "head": {"embedding": np.zeros((5, 2), np.float16)},
  }
  untied = dataclasses.replace(_MODEL, tied_head=False)
  # Two steps read the head of 20 bytes; three tokens a vector of 4 bytes each.
  assert roofline.weights_read(untied, weights, 2, 3) == 2 * 20 + 3 * 4


def test_a_local_layer_reads_its_window():
  answers = np.asarray([1, 3])
  # Behind a prompt of 2, a row of 3 tokens sees 3, 4, 5 tokens, of which 3 are
  # in the window; the row of one token sees 3. The prompt's part: 2, 1, 0.
  assert roofline.tokens_read(2, answers, 1, window=3) == 3 + (3 + 3 + 3)
  assert roofline.tokens_read(2, answers, 2, window=3) == 1 + 6 + (2 + 1 + 0)
  local = dataclasses.replace(
    _MODEL, num_layers=2, local_layers=(0,), local_window=3
  )
  assert roofline.cache_read(local, "float16", 2, answers, 1) == 8 * (12 + 15)


def test_only_devices_and_types_that_were_measured_have_peaks():
  h200, a100 = (
    types.SimpleNamespace(device_kind=f"NVIDIA {name}")
    for name in ("H200", "A100-SXM4-80GB")
  )
  assert peaks.flops(h200, "bfloat16") == 790e12
  assert peaks.bandwidth(h200) == 4.3e12
  assert peaks.flops(h200, "float32") is None
  assert peaks.flops(a100, "bfloat16") is None
  assert peaks.bandwidth(a100) is None
  assert peaks.share(1e3, 2.0, 1e3) == 0.5
  assert peaks.share(1e3, 2.0, None) is None


def test_decoding_is_measured_and_written(tmp_path, capsys):
  arguments = [
    f"--config={CONFIG}",
    "--config.policy.size=micro",
    "--config.rollout.num_problems=2",
    "--config.rollout.max_prompt_tokens=8",
    "--config.rollout.max_new_tokens=8",
    "--config.sampler.slot_ratio=0.5",
    "--repeats=1",
    f"--out={tmp_path}",
  ]
  assert bench.main(["bench", "sampler", *arguments]) == 0
  (path,) = tmp_path.glob("*.json")
  found = json.loads(path.read_text())
  assert path.name == "sampler_0_5b_b16.json"
  assert found["kind"] == "sampler" and found["model"] == "micro"
  assert found["steps"] == 8 and found["compilations"] == 0
  seconds = found["decode_seconds"]
  assert found["tokens_per_second"] == pytest.approx(16 * 8 / seconds)
  assert found["ms_per_decode_step"] == pytest.approx(1e3 * seconds / 8)
  assert 0 < found["useful_slot_fraction"] < 1
  assert found["varied"]["compilations"] == 0
  calls = found["varied"]["calls"]
  assert sum(steps for _, steps, _ in calls) == found["varied"]["steps"]
  slot_steps = sum(slots * steps for slots, steps, _ in calls)
  drawn = sampler.drawn_lengths(16, 8, found["seed"])
  assert found["useful_slot_fraction"] == pytest.approx(
    drawn.sum() / slot_steps
  )
  # Nobody has measured what this processor could do.
  assert found["roofline_fraction"] is None and found["devices"] == 1
  # The table takes what was written.
  assert bench.main(["bench", "table", f"--results={tmp_path}"]) == 0
  assert "| sampler | micro | 16 |" in capsys.readouterr().out


def test_rows_wait_for_slots(tmp_path):
  arguments = [
    f"--config={CONFIG.with_name('bench_queue_0_5b.py')}",
    "--config.policy.size=micro",
    "--config.rollout.num_problems=4",
    "--config.sampler.max_slots=8",
    "--config.sampler.idle_fraction=0.25",
    "--prompts=own",
    "--config.rollout.max_prompt_tokens=8",
    "--config.rollout.max_new_tokens=8",
    "--repeats=1",
    f"--out={tmp_path}",
  ]
  assert bench.main(["bench", "sampler", *arguments]) == 0
  found = json.loads((tmp_path / "sampler_queue_0_5b_b8_of32.json").read_text())
  assert (found["rows"], found["batch"]) == (32, 8)
  assert found["steps"] == 4 * 8 and found["useful_slot_fraction"] > 0.7
  # Fewer steps than four batches that wait for their longest row.
  drawn = sampler.drawn_lengths(32, 8, found["seed"])
  assert found["varied"]["steps"] < drawn.reshape(4, 8).max(1).sum()


@pytest.mark.parametrize(
  "arguments,words",
  [
    (["bench"], "got nothing; one of sampler"),
    (["bench", "decode"], "got decode"),
    (["bench", "sampler"], "no config"),
    (
      ["bench", "peers", f"--config={CONFIG}", "--peers=vllm"],
      "--peers=vllm: one of google-tunix, transformers",
    ),
    (
      ["bench", "sampler", f"--config={CONFIG}", "--prompts=own,mine"],
      "--prompts=mine: some of shared, own",
    ),
    (
      ["bench", "sampler", f"--config={CONFIG}", "--config.sampler.top_p=2"],
      "config.sampler.top_p=2.0: must be above 0 and at most 1",
    ),
    (
      [
        "bench",
        "sampler",
        f"--config={CONFIG}",
        "--config.sampler.shared_prompts=True",
      ],
      "config.sampler.shared_prompts=True: it needs cuDNN's attention",
    ),
    (
      [
        "bench",
        "sampler",
        f"--config={CONFIG}",
        "--config.sampler.attention=cudnn",
      ],
      "config.sampler.attention=cudnn: it needs an NVIDIA GPU",
    ),
    (
      [
        "bench",
        "sampler",
        f"--config={CONFIG}",
        "--config.run.model_devices=2",
      ],
      "config.run.model_devices=2: decoding is measured on one device",
    ),
    (
      ["bench", "step", f"--config={CONFIG}", "--config.policy.source=nowhere"],
      "no policy in nowhere",
    ),
    *(
      (
        [
          "bench",
          kind,
          f"--config={CONFIG}",
          "--config.policy.size=smollm2-135m",
          "--config.rollout.max_context_tokens=99999",
        ],
        "max_context_tokens=99999 is longer than the model's context of 8192",
      )
      for kind in ("sampler", "update")
    ),
  ],
)
def test_a_mistake_is_one_line(arguments, words, capsys):
  assert bench.main(arguments) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("experiments.bench: ") and words in line


@pytest.mark.parametrize("kind", ["sampler", "update"])
def test_what_does_not_fit_is_refused_before_it_is_made(
  kind, capsys, monkeypatch
):
  monkeypatch.setattr(memory_check, "present_bytes", lambda: 24 * 2**30)
  for module, name in (
    (sampler, "random_params"),
    (update, "random_training"),
  ):
    monkeypatch.setattr(module, name, lambda *_: pytest.fail("it was made"))
  size = "--config.policy.size=qwen3-8b"
  assert bench.main(["bench", kind, f"--config={CONFIG}", size]) == 2
  line = capsys.readouterr().err.splitlines()[-1]
  assert "GiB" in line and "of 24.00" in line


def test_peers_and_order_of_the_table(tmp_path):
  common = dict(model="m", batch=4, hardware="X", commit="c")
  peer = dict(version="1", times_faster=5.04, varied_times_faster=20)
  records = [
    common | dict(kind="update", mfu=0.412),
    common | dict(kind="peers", peers={"other": peer}, rows=8),
    common | dict(kind="sampler", roofline_fraction=0.61, num_params=9),
    common
    | dict(kind="sampler", num_params=2, shared_prompts=True)
    | dict(roofline_fraction=0.5, shared_roofline_fraction=0.43),
  ]
  for i, record in enumerate(records):
    (tmp_path / f"{i}.json").write_text(json.dumps(record))
  rows = table.markdown(table.load(tmp_path)).splitlines()[2:6]
  assert [row.split(" | ")[0] for row in rows] == [
    "| sampler, shared prompts",
    "| sampler",
    "| peers",
    "| update",
  ]
  # Against a roofline of rows that read for themselves, and of groups.
  assert "| 50 (43) |" in rows[0]
  assert "| 61 |" in rows[1] and "| 41 |" in rows[3]
  assert "other 1: 5.0 x, lengths varied 20.0 x" in rows[2]
  assert "| m | 4 |" in rows[1] and "| m | 8 in 4 slots |" in rows[2]
  for broken in (
    "{}",
    json.dumps({"kind": "update", "model": "m", "batch": 4}),
  ):
    (tmp_path / "5.json").write_text(broken)
    with pytest.raises(TableError, match="5.json"):
      table.load(tmp_path)


def test_a_file_says_in_what_a_measurement_differs():
  found = dict(batch=4, devices=1, shared_prompts=True)
  assert bench._file_name("sampler", "m", found) == "sampler_m_shared_b4"
  found = dict(batch=4, devices=1, rows=16)
  assert bench._file_name("sampler", "m", found) == "sampler_m_b4_of16"
  found = dict(batch=4, devices=2)
  assert bench._file_name("update", "update_m", found) == "update_m_b4_x2"


def test_what_takes_less_memory_is_measured_first():
  config = types.SimpleNamespace(
    sampler=types.SimpleNamespace(shared_prompts=False)
  )
  assert sampler.layouts(config, ["own", "shared"]) == (True, False)
  assert sampler.layouts(config, ["shared"]) == (True,)
  assert sampler.layouts(config, []) == (False,)


def _peers_run(monkeypatch, programs, path=CONFIG):
  """`peers` with these texts in place of the peers' programs."""
  monkeypatch.setattr(
    peers, "_command", lambda name: [sys.executable, "-c", programs[name]]
  )
  monkeypatch.setattr(peers, "check", lambda names: None)
  ours = dict(tokens_per_second_with_prompts=300.0)
  ours["varied"] = dict(tokens_per_second_with_prompts=200.0)
  monkeypatch.setattr(sampler, "measure", lambda *_: iter([ours]))
  config = settings.load_file(path)
  effort = peers.Effort(repeats=1, limit_s=60.0)
  return peers.measure(config, 1, [], list(programs), effort)


def test_a_peer_that_fails_does_not_cost_the_other_ones_record(monkeypatch):
  # 512 rows of 256 tokens in half the time that ours would take.
  seconds = 512 * 256 / 300 / 2
  found = _peers_run(
    monkeypatch,
    {
      "broken": "raise SystemExit(3)",
      "fast": f"print('{{\"seconds\": [{seconds}]}}')",
    },
  )
  record = next(found)
  assert list(record["peers"]) == ["fast"] and record["kind"] == "peers"
  assert record["peers"]["fast"]["times_faster"] == pytest.approx(0.5)
  with pytest.raises(UsageError, match="broken failed with status 3"):
    next(found)


def test_peers_take_a_queue_in_batches(monkeypatch):
  path = CONFIG.with_name("bench_queue_0_5b.py")
  # A batch of 512 rows of 256 tokens in 10 s, four times.
  fast = "import json, sys; job = json.load(sys.stdin); "
  fast += "assert job['batch'] == 512; print('{\"seconds\": [10]}')"
  (record,) = _peers_run(monkeypatch, {"other": fast}, path)
  peer = record["peers"]["other"]
  assert peer["tokens_per_second"] == 512 * 256 / 10
  drawn = sampler.drawn_lengths(2048, 256, settings.load_file(path).seed)
  assert peer["varied_tokens_per_second"] == pytest.approx(drawn.sum() / 40)
  config = settings.load_file(path)
  config.sampler.max_slots = 500
  with pytest.raises(UsageError, match="500 for 2048 rows in groups of 8"):
    next(peers.measure(config, 1, [], [], peers.Effort(1, 1.0)))


def test_every_file_has_the_fields_that_are_compared():
  files = sorted(RESULTS.glob("*.json"))
  assert files
  for path in files:
    found = json.loads(path.read_text())
    assert set(FIELDS) <= set(found), path
    assert all(found[name] is not None for name in ("kind", "model", "batch"))
