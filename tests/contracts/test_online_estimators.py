"""Every online estimator passes one suite: of joint torques and of a wrist sensor."""

import json
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import wrist_streams
from steelyard.errors import InvalidSamples
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Sample, Samples
from steelyard.robot import load_robot
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerState
from steelyard.trajectory import FourierTrajectory
from steelyard.wrist.tracking import WristTrackerState

MASSES = {"LOAD": 4.0, "HEAVY": 6.0}
every = pytest.mark.parametrize("kind", ["torque", "wrist"])


@cache
def torque_estimator():
    robot = load_robot("ur10")
    return TorqueTracker(
        identify(robot, [torque_samples(robot, seed) for seed in (0, 1)]), "measured"
    )


def torque_samples(robot, seed):
    series = FourierTrajectory.random(
        np.zeros(6), reach=[2.0] * 6, speed=[1.5] * 6, period_s=10.0, harmonics=5, seed=seed
    )
    q, v, a = series.at(np.arange(0, 10, 0.01))
    tau = robot.torque(q, v, a) + 0.5 * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured", usable=np.abs(v) >= 0.01)


@cache
def torque_stream(load="LOAD", start_s=0.0):
    body = InertialParameters.from_com(
        MASSES[load], [0.02, -0.01, 0.07], np.diag([0.03, 0.025, 0.02])
    )
    part = torque_samples(load_robot("ur10").with_payload(body), 5)
    parts = zip(part.t + start_s, part.q, part.v, part.a, part.tau, strict=True)
    return tuple(Sample.of_joints(*row) for row in parts)


@cache
def wrist_made(load="LOAD", start_s=0.0):
    return wrist_streams.samples(wrist_streams.rows(load, start_s=start_s))


class Kind(NamedTuple):
    """An estimator and streams for it."""

    state: type
    estimator: Callable
    stream: Callable


KINDS = {
    "torque": Kind(TorqueTrackerState, torque_estimator, torque_stream),
    "wrist": Kind(
        WristTrackerState,
        lambda: wrist_made()[1],
        lambda *how: tuple(wrist_made(*how)[0]),
    ),
}


def fed(estimator, parts, state=None):
    state = estimator.init() if state is None else state
    for sample in parts:
        state = estimator.step(state, sample)
    return state


def written(state):
    return json.dumps(state.to_dict())


@every
def test_it_weighs_converges_and_says_so(kind):
    estimator, stream = KINDS[kind].estimator(), KINDS[kind].stream()
    assert not estimator.converged(estimator.init())
    assert np.isinf(estimator.estimate(estimator.init()).std[0])
    assert not estimator.estimate(estimator.init()).verdict.ok
    state = fed(estimator, stream)
    found = estimator.estimate(state)
    assert found.body.mass == pytest.approx(4.0, abs=4 * found.std[0])
    assert found.std[0] < 0.02
    assert found.status.startswith("converged: the mass is known to 0.")
    assert estimator.converged(state)
    assert found.body.is_physical


@every
def test_states_are_values_and_survive_a_file(kind):
    estimator, stream = KINDS[kind].estimator(), KINDS[kind].stream()
    state = fed(estimator, stream[:-101])
    kept = written(state)
    end = written(fed(estimator, stream[-101:], state))
    estimator.estimate(state, physical=False)
    assert written(state) == kept
    back = KINDS[kind].state.from_dict(json.loads(kept))
    assert written(back) == kept
    assert written(fed(estimator, stream[-101:], back)) == end
    first = estimator.init()
    assert written(KINDS[kind].state.from_dict(json.loads(written(first)))) == written(first)


@every
def test_bad_samples_are_counted_and_change_nothing(kind):
    estimator, good = KINDS[kind].estimator(), KINDS[kind].stream()
    dirty = []
    for i, sample in enumerate(good):
        dirty.append(sample)
        if i == 100:
            dirty += [sample, good[50]]  # repeated, late
        if i == 300:
            t = sample.t + 1e-4
            for bad in (np.nan, np.inf, 1e300):
                effort = np.where(np.arange(6) == 2, bad, sample.effort)
                dirty.append(sample._replace(t=t, effort=effort))
            dirty.append(sample._replace(t=np.nan))
            dirty.append(Sample.unusable("frozen"))
    clean, state = fed(estimator, good), fed(estimator, dirty)
    counts = state.counts
    assert (counts.repeated, counts.late, counts.corrupt, counts.frozen) == (1, 1, 4, 1)
    one, other = (estimator.estimate(s, physical=False) for s in (clean, state))
    np.testing.assert_allclose(other.unconstrained.vector, one.unconstrained.vector, atol=1e-12)
    assert "skipped 1 repeated, 1 late, 4 corrupt, 1 frozen samples" in other.status


@every
def test_another_shape_is_refused_and_the_stream_goes_on(kind):
    estimator, stream = KINDS[kind].estimator(), KINDS[kind].stream()
    state = fed(estimator, stream[:10])
    with pytest.raises(InvalidSamples, match="a sample is a time, "):
        estimator.step(state, stream[10]._replace(effort=np.zeros(5)))
    assert estimator.step(state, stream[10]).last_s > state.last_s


@every
def test_lost_samples_and_a_pause_of_minutes(kind):
    estimator, stream = KINDS[kind].estimator(), KINDS[kind].stream()
    rng = np.random.default_rng(0)
    parts = [sample for sample in stream if rng.random() > 0.3]
    parts += [sample._replace(t=sample.t + 300.0) for sample in stream[:400]]
    state = fed(estimator, parts)
    assert state.counts.gaps == 1
    assert not state.history
    found = estimator.estimate(state, physical=False)
    assert found.body.mass == pytest.approx(4.0, abs=4 * found.std[0])
    assert "1 pause" in found.status


@every
def test_another_load_is_seen_and_the_one_before_remembered(kind):
    estimator = KINDS[kind].estimator()
    state = fed(estimator, (*KINDS[kind].stream(), *KINDS[kind].stream("HEAVY", 10.0)))
    (episode,) = state.history
    assert episode.end_s == pytest.approx(10.0, abs=0.3)
    assert episode.vector[0] == pytest.approx(4.0, abs=4 * np.sqrt(episode.covariance[0, 0]))
    found = estimator.estimate(state, physical=False)
    assert found.body.mass == pytest.approx(6.0, abs=4 * found.std[0])
    assert found.std[0] < 0.02
    assert f"payload 2, since {episode.end_s:.2f} s" in found.status
    assert written(KINDS[kind].state.from_dict(json.loads(written(state)))) == written(state)


@pytest.mark.thorough
@every
def test_the_state_does_not_grow(kind):
    estimator, stream = KINDS[kind].estimator(), KINDS[kind].stream()
    sizes, state = [], estimator.init()
    for k in range(6):
        state = fed(estimator, (sample._replace(t=sample.t + 10.0 * k) for sample in stream), state)
        sizes.append(len(written(state)))
    assert not state.history
    assert sizes[-1] < 1.3 * max(sizes[1:3])
