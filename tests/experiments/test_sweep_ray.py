"""Sweeps over a cluster of several nodes on this machine, one of them killed.

A stand-in takes the place of experiments.run: it lies in the folder from which
the sweep is started.
"""

import json
import os
import signal
import threading
import time

import msgspec
import pytest

from experiments import provenance, rows, sweep, sweep_ray
from experiments.config_file import UsageError
from experiments.sweep_plan import Planned
from kernels_eval.client import HarnessError
from tests.experiments.command_lines import QUICKSTART, ROOT
from tests.kernels_eval import ray_machines

_STAND_IN = """
import json, os, pathlib, sys, time
options = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:])
folder = pathlib.Path(options["workdir"])
begun = time.time()
tries = len(list(folder.glob("begun_*")))
(folder / f"begun_{tries}").write_text(str(os.getppid()))
print("progress", file=sys.stderr)
time.sleep(float(options["first"] if tries == 0 else options["later"]))
(folder / "ended.json").write_text(
  json.dumps({"agent": os.getppid(), "begun": begun, "ended": time.time()})
)
sys.exit(int(options["status"]))
"""


@pytest.fixture(scope="module")
def cluster():
  ray_machines.needs_ray()
  with ray_machines.machines(2) as found:
    yield found


@pytest.fixture
def here(tmp_path, monkeypatch):
  """A folder from which `-m experiments.run` is the stand-in."""
  package = tmp_path / "experiments"
  package.mkdir()
  (package / "__init__.py").touch()
  (package / "run.py").write_text(_STAND_IN)
  monkeypatch.chdir(tmp_path)
  (tmp_path / "runs").mkdir()
  return tmp_path


def planned(here, name, first=1.0, later=0.0, status=0):
  row = rows.Row(name, name, {})
  arguments = (f"--first={first}", f"--later={later}", f"--status={status}")
  folder = here / "runs" / name / "seed0"
  return Planned(row, 0, {}, arguments, folder, here / "kept")


def ended(one):
  return json.loads((one.run_folder / "ended.json").read_text())


def test_each_machine_does_one_run_at_a_time(cluster, here):
  left = [planned(here, f"r{i}") for i in range(3)]
  left.append(planned(here, "bad", status=3))
  said = []
  found = list(sweep_ray.run_all(left, cluster.address, said.append))
  codes = {one.row.name: code for one, code in found}
  assert codes == {"r0": 0, "r1": 0, "r2": 0, "bad": 3}
  times = {}
  for one in left:
    record = ended(one)
    times.setdefault(record["agent"], []).append(
      (record["begun"], record["ended"])
    )
    assert "progress" in (one.run_folder / sweep_ray.ERRORS).read_text()
  assert len(times) == 2  # both machines worked
  for spans in times.values():
    spans.sort()
    assert all(
      before[1] <= after[0]
      for before, after in zip(spans, spans[1:], strict=False)
    )
  assert sum(" on " in line for line in said) == 4
  assert not (here / "runs" / ".sweep_token").exists()


def test_a_run_whose_machine_dies_goes_on_elsewhere(cluster, here):
  """The agent of the long run is killed, as by its machine's end."""
  long, short = planned(here, "long", first=300.0), planned(here, "short")
  said = []

  def kill():
    mark = long.run_folder / "begun_0"
    deadline = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()):
      assert time.monotonic() < deadline
      time.sleep(0.05)
    os.kill(int(mark.read_text()), signal.SIGKILL)

  killer = threading.Thread(target=kill)
  killer.start()
  found = list(sweep_ray.run_all([long, short], cluster.address, said.append))
  killer.join()
  assert [code for _, code in found] == [0, 0]
  assert sum("is lost" in line for line in said) == 1
  first = int((long.run_folder / "begun_0").read_text())
  assert ended(long)["agent"] != first
  # The run that it had begun has ended with it.
  assert ray_machines.gone(first)


def test_the_end_of_a_sweep_ends_its_runs(cluster, here):
  long = planned(here, "long", first=300.0)
  runs = sweep_ray.run_all([long], cluster.address, lambda _: None)

  def stop():
    while not (long.run_folder / "begun_0").exists():
      time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGUSR1)

  def interrupt(*_):
    raise KeyboardInterrupt

  before = signal.signal(signal.SIGUSR1, interrupt)
  try:
    killer = threading.Thread(target=stop)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
      next(runs)
    killer.join()
  finally:
    signal.signal(signal.SIGUSR1, before)
  agent = int((long.run_folder / "begun_0").read_text())
  deadline = time.monotonic() + 30
  while not ray_machines.gone(agent):
    assert time.monotonic() < deadline
    time.sleep(0.05)


def test_a_machine_that_is_not_like_this_one_is_named(
  cluster, here, monkeypatch
):
  monkeypatch.setattr(provenance, "commit", lambda: "another")
  runs = sweep_ray.run_all(
    [planned(here, "a")], cluster.address, lambda _: None
  )
  with pytest.raises(UsageError, match="this machine another: tables do not"):
    list(runs)
  assert not list(here.glob("runs/a/seed0/begun_*"))


def test_a_machine_that_does_not_see_the_folder_is_named(tmp_path):
  greeting = sweep_ray.Greeting("far", provenance.commit(), None)
  members = sweep_ray._Cluster(
    None, tmp_path / "runs" / ".token", "secret", lambda _: None
  )
  with pytest.raises(UsageError, match=r"far does not see .*runs; --runs must"):
    members.greeted(None, msgspec.json.encode(greeting))
  agent = sweep_ray.Agent()
  path = str(tmp_path / "nowhere").encode()
  assert msgspec.json.decode(agent.hello(path))["token"] is None


def test_a_cluster_that_is_not_there_is_one_line(here, tmp_path, capsys):
  ray_machines.needs_ray()
  status = sweep.main(
    [
      "sweep",
      f"--config={ROOT / QUICKSTART}",
      "--table=credit",
      "--rows=leap",
      f"--runs={tmp_path / 'runs'}",
      f"--results={tmp_path / 'kept'}",
      "--ray_address=127.0.0.1:1",
    ]
  )
  assert status == 1
  assert "no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err
  with pytest.raises(HarnessError, match="form host:port"):
    list(sweep_ray.run_all([planned(here, "a")], "nowhere", lambda _: None))
