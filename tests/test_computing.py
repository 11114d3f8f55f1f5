"""One BLAS thread while we work, and what the program had afterwards."""

import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  loads its BLAS
from threadpoolctl import threadpool_info, threadpool_limits

import steelyard
from conftest import steelyard as run_command
from steelyard._computing import one_blas_thread, real_time_priority, short_pauses
from steelyard.cli import _COMMANDS
from steelyard.recording import Samples
from steelyard.robot import load_robot
from steelyard.trajectory import FourierTrajectory


def threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        yield
        assert threads() == {2}


def test_the_limit_holds_inside_and_is_lifted_after_errors_too(two_threads):
    with one_blas_thread():
        assert threads() == {1}
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert threads() == {2}


def test_identify_works_with_one_thread(two_threads, rng):
    robot = load_robot("planar2r")
    series = FourierTrajectory.random(
        [0.3, -0.4], reach=[1.5, 1.5], speed=[1.5, 2.0], period_s=5.0, harmonics=5, seed=1
    )
    q, v, a = series.at(np.arange(0, 5, 0.01))
    tau = robot.torque(q, v, a) + 0.01 * rng.normal(size=q.shape)
    samples = Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")
    seen = []
    steelyard.identify(
        robot, samples, friction="power", progress=lambda share, words: seen.append(threads())
    )
    assert seen
    assert all(each == {1} for each in seen)


def test_every_verb_works_with_one_thread(two_threads, monkeypatch, tmp_path):
    seen = []
    module, function = _COMMANDS["robots"].split(".")
    monkeypatch.setattr(f"steelyard.cli.{module}.{function}", lambda: seen.append(threads()))
    assert run_command("robots", cwd=tmp_path).returncode == 0
    assert seen == [{1}]


def test_pauses_are_short_inside_and_restored_after():
    before = sys.getswitchinterval()
    with short_pauses():
        assert sys.getswitchinterval() < before
        assert gc.get_freeze_count() > 0
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() == 0


@pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="Linux has priorities of threads")
@pytest.mark.parametrize("allowed", [True, False])
def test_a_thread_is_real_time_priority_where_it_may_be_and_those_that_it_starts_are_not(
    allowed, monkeypatch
):
    real_time, asked = os.SCHED_RR | os.SCHED_RESET_ON_FORK, []

    def refused(_, policy, param):
        asked.append((policy, param.sched_priority))
        raise PermissionError

    def policies():
        with ThreadPoolExecutor(1) as pool:
            return os.sched_getscheduler(0), pool.submit(os.sched_getscheduler, 0).result()

    if not allowed:
        monkeypatch.setattr(os, "sched_setscheduler", refused)
    with ThreadPoolExecutor(1) as fresh:  # a thread of its own: pytest's stays as it is
        before = fresh.submit(os.sched_getscheduler, 0).result()
        inside, after = fresh.submit(_ahead, policies).result()
    assert after == before
    assert asked == ([] if allowed else [(real_time, 2), (before | os.SCHED_RESET_ON_FORK, 0)])
    if allowed and inside[0] == before:
        pytest.skip("this machine allows no real-time priority")
    assert inside == ((real_time, before) if allowed else (before, before))


def test_the_priority_can_be_left_as_it_is(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "sched_setscheduler", lambda *words: asked.append(words))
    with real_time_priority():
        pass
    assert len(asked) == 2
    monkeypatch.setenv("STEELYARD_REAL_TIME", "0")
    with real_time_priority():
        pass
    assert len(asked) == 2


def _ahead(policies):
    with real_time_priority():
        inside = policies()
    return inside, os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
