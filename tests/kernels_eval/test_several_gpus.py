"""One pool on several GPUs. Judges and servers are stand-ins (`fake_judge.py`):
what is tested is who judges what, and what happens when a GPU is lost."""

import collections
import pathlib
import sys

import pytest

from kernels_eval import client
from kernels_eval import worker as worker_lib
from kernels_eval.cuda import presence, servers
from kernels_eval.cuda.settings import CudaSettings
from kernels_eval.schema import Request, Status

FAKE = pathlib.Path(__file__).parent / "fake_judge.py"


class _Server:
  """In the place of a ServerProcess: `running` are those that have no end."""

  running: set[str] = set()

  def __init__(self, folder, device):
    self.socket = folder / f"gpu-{device}"
    self.running.add(self.socket.name)

  def stop(self):
    self.running.discard(self.socket.name)


@pytest.fixture(autouse=True)
def _two_gpus(monkeypatch, tmp_path):
  monkeypatch.setattr(presence, "obstacle", lambda: None)
  monkeypatch.setattr(servers.server_process, "ServerProcess", _Server)
  monkeypatch.setattr(
    worker_lib, "_COMMAND", (sys.executable, str(FAKE), "--folder", tmp_path)
  )
  yield
  assert not _Server.running


def pool(num_workers=4, devices=(0, 1)):
  return client.Pool(
    num_workers=num_workers,
    executor="cuda",
    cuda_settings=CudaSettings(devices=devices),
  )


def judge(judges, *texts):
  requests = [Request(str(i), "relu", text) for i, text in enumerate(texts)]
  return judges.evaluate(requests)


def texts(what, count):
  return [f"{what} {i}" for i in range(count)]


def test_judges_are_shared_out_and_all_gpus_judge():
  with pool(5, (2, 0)) as judges:
    assert "5 judges, executor cuda on GPU 2, 0 (" in judges.description
    places = collections.Counter(w.device for w in judges._workers)
    assert places == {2: 3, 0: 2}
    found = judge(judges, *texts("good", 40))
    assert {e.message for e in found} == {"GPU 2", "GPU 0"}
    assert all(e.passed for e in found)


def test_what_one_gpu_fails_at_is_judged_on_another():
  with pool() as judges:
    found = judge(judges, *texts("fail1", 30))
    assert {e.message for e in found} == {"GPU 0"}
    assert all(e.passed for e in found)
    assert judges.num_restarts == 0


def test_a_gpu_that_is_lost_is_given_up_and_costs_no_verdict(capfd):
  with pool() as judges:
    batch = texts("good", 20) + texts("lose1", 20) + texts("well", 40)
    found = judge(judges, *batch)
    assert all(e.passed for e in found)
    for i in range(100):  # a judge of GPU 1 starts meanwhile
      judge(judges, *texts(f"again {i}", 4))
      if judges._gpus.devices == [0]:
        break
    assert "executor cuda on GPU 0 (" in judges.description
    assert [w.device for w in judges._workers] == [0, 0, 0, 0]
    found = judge(judges, *texts("later", 20))
    assert {(e.message, e.status) for e in found} == {("GPU 0", Status.PASSED)}
  said = capfd.readouterr().err
  assert said == (
    "kernels_eval: going on without GPU 1, on GPU 0: GPU 1 is lost\n"
  )


def test_the_last_gpu_that_is_lost_ends_the_pool(capfd):
  with pool() as judges, pytest.raises(client.HarnessError, match="is lost"):
    for i in range(100):
      judge(judges, *texts(f"lose {i}", 4))


def test_gpus_that_are_not_alike_are_refused(tmp_path):
  (tmp_path / "other kind 1").touch()
  with pytest.raises(client.HarnessError) as caught:
    pool()
  assert str(caught.value) == (
    "GPU 1 is not like the others: another GPU, not a GPU; a pool needs GPUs "
    "that are alike"
  )


def test_a_gpu_that_is_not_there_is_refused_at_the_start(tmp_path):
  (tmp_path / "lost 1").touch()
  with pytest.raises(client.HarnessError, match="GPU 1 is lost"):
    pool()


@pytest.mark.parametrize("devices", [(), (0, 0), (-1,)])
def test_devices_that_mean_nothing_are_refused(devices):
  with pytest.raises(client.HarnessError, match="none twice"):
    pool(devices=devices)


def test_more_gpus_than_judges_are_refused():
  with pytest.raises(client.HarnessError, match="1 judges for 2 GPUs"):
    pool(num_workers=1)
