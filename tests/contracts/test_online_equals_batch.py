"""Tracking without forgetting equals batch: same rows, same noise, same payload to 1e-8."""

import numpy as np
import pytest

from conftest import lively_motion
from steelyard.identification import FrictionLaw, identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording, Sample, Samples
from steelyard.robot import load_robot
from steelyard.signals import Preparation, prepare, replay
from steelyard.torque import weigh
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerOptions
from tiers import thorough_but

LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))


def samples(robot, seed, trajectory_seed, noise=0.5, lowest_speed=0.01):
    q, v, a = lively_motion(robot, trajectory_seed)
    tau = robot.torque(q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    usable = np.abs(v) >= lowest_speed
    how = Preparation(cutoff_hz=None, lowest_speed=lowest_speed)
    return Samples(
        q, v, a, tau, 100.0, robot.joint_names, "measured", usable=usable, preparation=how
    )


def stream(part, epoch_s=0.0):
    for t, q, v, a, tau in zip(part.t + epoch_s, part.q, part.v, part.a, part.tau, strict=True):
        yield Sample.of_joints(t, q, v, a, tau)


def fed(estimator, part):
    state = estimator.init()
    for sample in stream(part, epoch_s=1000.0):
        state = estimator.step(state, sample)
    return state


@pytest.mark.parametrize(
    ("name", "friction", "lowest_speed"),
    thorough_but(
        [("ur10", "presliding-power", 0.01), ("panda", None, 0.01), ("tx60", None, 0.2)],
        [
            ("ur10", None, 0.01),
            ("ur10", "band", 0.01),
            ("ur10", "presliding-power", 0.01),
            ("ur10", "stribeck", 0.01),
            ("lwr4", "smooth", 0.01),
            ("panda", None, 0.01),
            ("tx60", None, 0.2),
        ],
    ),
)
def test_online_equals_batch(name, friction, lowest_speed):
    robot = load_robot(name)
    law = None if friction is None else FrictionLaw.named(friction, robot.n)
    model = identify(robot, samples(robot, 0, 1, lowest_speed=lowest_speed), friction=law)
    loaded = samples(robot.with_payload(LOAD), 1, 2, lowest_speed=lowest_speed)
    batch = weigh(model, loaded)
    estimator = TorqueTracker(model, "measured", batch.noise, TorqueTrackerOptions(alarm=None))
    state = fed(estimator, loaded)
    online = estimator.estimate(state)
    scale = np.maximum(np.abs(batch.unconstrained.vector), batch.std)
    np.testing.assert_allclose(
        online.unconstrained.vector / scale, batch.unconstrained.vector / scale, rtol=0, atol=1e-8
    )
    assert estimator._drained(state).counts.used == len(loaded)
    assert state.counts.spikes == 0


def test_combinations_that_the_empty_runs_tell_count_online_too():
    """The second joint rests: some parameters are known only as sums, not one by one."""
    robot = load_robot("ur10")
    empty = samples(robot, 0, 1)
    q, v, a = (
        np.where(np.arange(6) == 1, still, x)
        for still, x in ((-1.0, empty.q), (0, empty.v), (0, empty.a))
    )
    tau = robot.torque(q, v, a) + 0.5 * np.random.default_rng(0).normal(size=q.shape)
    resting = Samples(q, v, a, tau, 100.0, robot.joint_names, "measured", usable=np.abs(v) >= 0.01)
    model = identify(robot, resting)
    unknown = np.isinf(np.diag(model.estimate.covariance))
    assert unknown[[name[0] != "F" for name in model.estimate.names]].any()
    loaded = samples(robot.with_payload(LOAD), 1, 2)
    batch = weigh(model, loaded)
    estimator = TorqueTracker(model, "measured", batch.noise, TorqueTrackerOptions(alarm=None))
    online = estimator.estimate(fed(estimator, loaded), physical=False)
    apart = (online.unconstrained.vector - batch.unconstrained.vector) / online.std
    assert np.abs(apart).max() < 1e-3


def test_blocks_do_not_matter():
    robot = load_robot("ur10")
    model = identify(robot, samples(robot, 0, 1))
    loaded = samples(robot.with_payload(LOAD), 1, 2)
    vectors = []
    for block in (1, 4, 7):
        estimator = TorqueTracker(model, "measured", options=TorqueTrackerOptions(block=block))
        vectors.append(estimator.estimate(fed(estimator, loaded)).unconstrained.vector)
    np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-9)
    np.testing.assert_allclose(vectors[2], vectors[0], atol=1e-9)


def test_a_replayed_recording_weighs_what_its_prepared_samples_weigh():
    """The causal path agrees with `prepare` to a tenth of the payload's uncertainty."""
    robot = load_robot("ur10")
    how = Preparation(cutoff_hz=10.0, trim_s=0.3)
    empty, loaded = (
        samples(arm, k, 1 + k) for k, arm in enumerate((robot, robot.with_payload(LOAD)))
    )
    recordings = [
        Recording(t=s.t, q=s.q, tau=s.tau, joint_names=s.joint_names) for s in (empty, loaded)
    ]
    model = identify(robot, prepare(recordings[0], how))
    estimator = TorqueTracker(model, "measured", options=TorqueTrackerOptions(alarm=None))
    batch = fed(estimator, prepare(recordings[1], how))
    causal = estimator.init()
    for sample in replay(recordings[1], Preparation(cutoff_hz=10.0)):
        causal = estimator.step(causal, sample)
    one, other = (estimator.estimate(state, physical=False) for state in (batch, causal))
    apart = (one.unconstrained.vector - other.unconstrained.vector) / one.std
    assert np.abs(apart).max() < 0.35  # the causal path sees a little more of the ends
    assert np.sqrt(np.mean(apart**2)) < 0.2
