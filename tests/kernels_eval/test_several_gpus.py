"""One pool on several GPUs. Judges and servers are stand-ins (`fake_judge.py`):
what is tested is who judges what, and what happens when a GPU is lost."""

import collections
import pathlib
import sys

import msgspec
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
  killed: set[str] = set()

  def __init__(self, folder, device):
    self.socket = folder / f"gpu-{device}"
    self.running.add(self.socket.name)

  @property
  def status(self):
    return -9 if self.socket.name in self.killed else None

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
  _Server.killed.clear()


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
    "kernels_eval: going on without GPU 1, on GPU 0: GPU 1 is lost while it "
    "was starting\n"
  )


def test_a_server_that_is_gone_is_a_gpu_that_is_lost(capfd):
  with pool() as judges:
    assert all(e.passed for e in judge(judges, *texts("good", 8)))
    _Server.killed.add("gpu-1")
    found = judge(judges, *texts("well", 20))
    assert {(e.message, e.status) for e in found} == {("GPU 0", Status.PASSED)}
    _Server.killed.add("gpu-0")
    with pytest.raises(client.HarnessError) as caught:
      judge(judges, "more")
  assert str(caught.value) == "the server of GPU 0 has ended (status -9)"
  said = capfd.readouterr().err
  assert "going on without GPU 1, on GPU 0: the server of GPU 1 has e" in said


def test_judges_that_do_not_come_up_cost_no_other_gpu_a_job(tmp_path, capfd):
  """One judge for each GPU; that of the second one ends and starts in vain."""
  with pool(num_workers=2) as judges:
    (tmp_path / "mute 1").touch()
    # Whoever fails on the only GPU that is up is judged there again.
    batch = texts("lose1", 4) + texts("fail0", 1) + texts("good", 8)
    found = judge(judges, *batch)
    assert [e.status for e in found if not e.passed] == [
      Status.INFRASTRUCTURE_ERROR
    ]
    for i in range(100):
      judge(judges, *texts(f"again {i}", 4))
      if judges._gpus.devices == [0]:
        break
    assert [w.device for w in judges._workers] == [0, 0]
  assert "the judge process ended while it was starting" in (
    capfd.readouterr().err
  )


def test_who_stops_listening_leaves_a_pool_that_works(tmp_path):
  """In the middle of giving up a GPU, too."""
  with pool() as judges:
    requests = [Request(str(i), "relu", f"lose {i}") for i in range(8)]
    (tmp_path / "spare 0").touch()
    stream = judges.stream(requests)
    next(stream)  # lost twice, with its judges
    stream.close()
    found = judge(judges, *texts("good", 20))
    assert all(e.passed for e in found)


def test_protections_may_change():
  with pool() as judges:
    worker = judges._workers[0]
    changed = msgspec.structs.replace(worker.hello, protections="others")
    judges._greet(worker, msgspec.msgpack.encode(changed))
    assert worker.hello is not judges.hello


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
