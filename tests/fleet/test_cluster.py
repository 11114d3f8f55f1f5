"""A fleet on a cluster of processes: one is killed, and one run is stopped halfway."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import count

import pytest

from conftest import steelyard
from fleet_logs import tiny_fleet
from steelyard.fleet import Fleet
from waiting import wait_until

LOGS = 16


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    return tiny_fleet(tmp_path_factory.mktemp("logs"), arms=2, logs=LOGS // 2)[0]


def rows(store):
    return list(store.glob("logs/*/*.parquet"))


def dask(what, *words):
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler, and two workers in processes of their own."""
    file = tmp_path / "scheduler.json"
    local = ("--host", "127.0.0.1", "--no-dashboard")
    processes = [dask("scheduler", "--port", "0", "--scheduler-file", str(file), *local)]
    alone = ("--nthreads", "1", "--no-nanny", "--scheduler-file", str(file), "--no-dashboard")
    processes += [dask("worker", *alone, "--local-directory", str(tmp_path)) for _ in range(2)]
    wait_until(lambda: file.exists() and file.read_text().rstrip().endswith("}"))
    address = json.loads(file.read_text())["address"]
    yield address, processes[1:]
    for process in processes:
        process.kill()
        process.wait()

    return json.loads(file.read_text())["address"]


@pytest.mark.thorough
def test_a_cluster_of_which_a_worker_is_killed(catalogue, cluster, tmp_path):
    address, workers = cluster
    store = tmp_path / "store"

    def kill():
        wait_until(lambda: len(rows(store)) >= 2)
        workers[0].send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    fleet = Fleet.build(catalogue, store, scheduler=address)
    killer.join()
    assert workers[0].wait(60) == -signal.SIGKILL
    assert workers[1].poll() is None
    assert dict(fleet.built) == {"new": LOGS, "changed": 0, "unchanged": 0, "failed": 0}
    here = Fleet.build(catalogue, tmp_path / "here", workers=1)
    for one, other in zip(fleet.identify().values(), here.identify().values(), strict=True):
        assert one.estimate.value.tolist() == pytest.approx(other.estimate.value.tolist(), rel=1e-9)


def test_a_run_that_is_stopped_is_completed_by_the_next(catalogue, tmp_path, monkeypatch):
    @contextmanager
    def stopping(self, what):
        calls = count()

        def done(share, words=""):
            if next(calls) == 4:
                raise KeyboardInterrupt

        yield done

    store = tmp_path / "store"
    monkeypatch.setattr("steelyard.cli.output.Output.progress", stopping)
    monkeypatch.setattr("steelyard.fleet._build._PROGRESS_INTERVAL_S", -1.0)
    run = steelyard("fleet", "build", catalogue, "-o", store, "--workers", "1")
    complaint = run.stderr
    assert run.returncode == 130
    assert complaint.splitlines()[-1].startswith("error: interrupted; the files in")
    done = len(rows(store))
    assert 2 <= done < LOGS
    assert not list(store.rglob("*.part"))
    assert len(Fleet(store).logs) == done
    fleet = Fleet.build(catalogue, store, workers=1)
    assert dict(fleet.built) == {"new": LOGS - done, "changed": 0, "unchanged": done, "failed": 0}
