"""Faulty streams: outliers, frozen drivers, clock changes; and harmless variations."""

import time
from dataclasses import replace

import numpy as np
import pytest

from measured_rows import MeasuredRow
from steelyard.errors import InvalidSamples
from steelyard.live import track
from steelyard.recording import Preparation, Recording
from steelyard.robot import load_robot
from steelyard.signals import JointPath
from steelyard.torque.tracking import TorqueTracker
from steelyard.workflow import TrackingOptions
from tracking_runs import BODIES, LOAD, RATE_HZ, model, motion, stream

ROBOT = load_robot("ur10")
HOW = Preparation(cutoff_hz=10.0)
NOISE = 0.5 * np.random.default_rng(9).normal(size=(1000, 6))


def rows(load="LOAD", start_s=0.0, seed=3):
    """What an arm sends in 10 s."""
    q, v, a = motion(seed)
    arm = ROBOT if load is None else ROBOT.with_payload(BODIES[load])
    tau = arm.torque(q, v, a) + NOISE
    return [MeasuredRow(start_s + k / RATE_HZ, q[k][None], tau[k]) for k in range(len(q))]


def weighed(sent):
    """The estimator and its state after all rows, through the filters."""
    path = JointPath(6, RATE_HZ, HOW, v_max=ROBOT.limits.v_max)
    estimator = TorqueTracker(model(), "measured")
    state, kept = estimator.init(), path.init()
    for row in sent:
        kept, ready = path.step(kept, *row)
        for sample in ready:
            state = estimator.step(state, sample)
    return estimator, state


def close(estimator, state, mass=LOAD.mass):
    found = estimator.estimate(state, physical=False)
    assert abs(found.unconstrained.mass - mass) < max(4 * found.std[0], 0.02 * mass)
    return found


def test_an_outlier_of_position_is_dropped_and_counted():
    sent = rows()
    sent[500] = sent[500]._replace(motion=sent[500].motion + 100.0 * (np.arange(6) == 2))
    estimator, state = weighed(sent)
    found = close(estimator, state)
    assert state.counts.impossible == 1
    assert not state.history
    assert "1 impossible" in found.status
    sent = rows()
    sent[0] = sent[0]._replace(
        motion=sent[0].motion + 100.0
    )  # the first row is wrong, the others agree
    estimator, state = weighed(sent)
    close(estimator, state)
    assert state.counts.impossible == 10


def test_frozen_readings_are_dropped_and_counted():
    sent = rows()
    sent[400:440] = [sent[400]._replace(t=row.t) for row in sent[400:440]]
    estimator, state = weighed(sent)
    found = close(estimator, state)
    assert state.counts.frozen == 39
    assert state.counts.gaps == 1
    assert not state.history
    assert "39 frozen" in found.status


def test_a_clock_that_is_set_back_starts_anew():
    estimator, state = weighed([*rows(start_s=1000.0), *rows("LIGHT", start_s=200.0, seed=4)])
    found = close(estimator, state, BODIES["LIGHT"].mass)
    assert state.counts.clocks == 1
    assert len(state.history) == 1
    assert "the clock was set back: the payload before is forgotten" in found.status


def test_a_stamp_from_the_future_costs_ten_rows():
    sent = rows()
    sent[500] = sent[500]._replace(t=1e6)
    estimator, state = weighed(sent)
    close(estimator, state)
    assert state.counts.late == 10
    assert state.counts.clocks == 0
    assert state.counts.used > 850


def test_a_part_of_the_load_that_is_taken_in_a_pause_is_seen():
    q, v, a = motion(3)
    lighter = replace(LOAD, mass=2.9, first_moment=2.9 * LOAD.com)
    tau = ROBOT.with_payload(lighter).torque(q, v, a) + NOISE
    after = [MeasuredRow(9.0 + k / RATE_HZ, q[500 + k][None], tau[500 + k]) for k in range(300)]
    estimator, state = weighed([*rows()[:500], *after])
    close(estimator, state, 2.9)
    assert len(state.history) == 1
    assert state.history[0].end_s < 10.0


def test_samples_behind_are_late_until_ten_agree():
    estimator = TorqueTracker(model(), "measured")
    state = estimator.init()
    for sample in stream()[:500]:
        state = estimator.step(state, sample)
    mixed = [
        s for k in range(500, 520) for s in (stream()[k], stream()[k - 100])
    ]  # each late one alone
    for sample in mixed:
        state = estimator.step(state, sample)
    assert state.counts.late == 20
    assert state.counts.clocks == 0
    for sample in stream()[100:110]:
        state = estimator.step(state, sample)
    assert state.counts.clocks == 1
    assert state.last_s == pytest.approx(1.09)


def lost(sent, rng):
    return [row for row in sent if rng.random() > 0.5 or row.t < 0.1]


def repeated(sent, rng):
    return [row for row in sent for _ in range(1 + (rng.random() < 0.2))]


def reordered(sent, rng):
    order = np.argsort(np.arange(len(sent)) + 3 * (rng.random(len(sent)) < 0.05), kind="stable")
    return [sent[k] for k in order]


def broken(sent, rng):
    return [row._replace(effort=row.effort * np.nan) if rng.random() < 0.1 else row for row in sent]


def paused(sent, rng):
    return [row for row in sent if row.t % 2.5 < 2.0]


def slower(sent, rng):
    return sent[:500] + sent[500::2]


@pytest.mark.parametrize("change", [lost, repeated, reordered, broken, paused, slower])
def test_what_streams_do_is_harmless(change):
    estimator, state = weighed(change(rows(), np.random.default_rng(1)))
    close(estimator, state)
    assert not state.history


def test_a_state_that_ends_in_the_future_is_refused(tmp_path):
    q, v, a = (x[:300] for x in motion(3))
    recording = Recording(
        np.arange(300) / RATE_HZ, q, ROBOT.joint_names, tau=ROBOT.torque(q, v, a) + NOISE[:300]
    )
    how = replace(HOW, lag_s=None)
    done = track(recording, model=model(), options=TrackingOptions(preparation=how))
    later = replace(done, state=done.state._replace(last_s=time.time() + 1e6))
    later.save_state(tmp_path / "later.json")
    options = TrackingOptions(preparation=how)
    with pytest.raises(
        InvalidSamples, match=r"later.json ends in the future \(.* s\); start without `resume`"
    ):
        track(recording, model=model(), options=options, resume=tmp_path / "later.json")
