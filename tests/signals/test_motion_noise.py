"""Noise of the measured motion makes inertias too small: it is known by how much, and said."""

from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording
from steelyard.robot import ParameterBasis, load_robot
from steelyard.signals import Preparation, prepare
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import DoubtKind

ROBOT = load_robot("ur10")
LOAD = InertialParameters.from_com(3.5, [0.02, -0.03, 0.06], np.diag([0.02, 0.03, 0.025]))
NOISE = np.array([0.4, 0.6, 0.3, 0.1, 0.08, 0.06])
ROTOR = np.array([6.0, 6.0, 4.0, 0.8, 0.8, 0.6])
STEP = 2 * np.pi / 2**15
SMOOTH = Preparation(trim_s=0.5, lag_s=(0.0,) * 6)
ROUGH = replace(SMOOTH, cutoff_hz=20.0)


def series(seed):
    return FourierTrajectory.random(
        [0, -1.2, 1.0, 0, 0, 0],
        reach=[1.5] * 6,
        speed=[1.5] * 6,
        period_s=20.0,
        harmonics=10,
        seed=seed,
    )


def recording(seed, robot=ROBOT, step=STEP, rotor=0.0):
    t = np.arange(0, 20, 0.008)
    q, v, a = series(seed).at(t)
    tau = (
        robot.torque(q, v, a) + rotor * a + NOISE * np.random.default_rng(seed).normal(size=q.shape)
    )
    return Recording(t=t, q=np.round(q / step) * step, tau=tau, joint_names=ROBOT.joint_names)


def test_noise_of_accelerations_is_what_they_are_off_by():
    samples = prepare(recording(1), ROUGH)
    off = samples.a - series(1).at(samples.t)[2]
    np.testing.assert_allclose(samples.a_noise, off.std(axis=0), rtol=0.15)
    fine = prepare(recording(1, step=1e-7), ROUGH)
    assert (fine.a_noise < 1e-3 * samples.a_noise).all()


def test_the_shift_of_the_parameters_is_predicted():
    model = identify(ROBOT, [prepare(recording(k), ROUGH) for k in (1, 2)])
    basis = ParameterBasis.of(ROBOT)
    truth = basis.K @ ROBOT.parameters
    shift, off = model.motion_shift, model.estimate.value - truth
    weights = 1 / np.diag(model.estimate.covariance - np.outer(shift, shift))
    assert (np.abs(shift) * np.sqrt(weights)).max() > 3
    along = (weights * shift) @ off / ((weights * shift) @ shift)
    assert along == pytest.approx(1.0, abs=0.25)
    assert np.mean(np.abs(off) < 1.96 * model.estimate.std) > 0.9


@pytest.mark.thorough
def test_a_payload_covers_what_noise_of_the_motion_does_and_doubts():
    loaded = ROBOT.with_payload(LOAD)
    runs = [recording(k, rotor=ROTOR) for k in (1, 2)]
    rough = sy.identify(ROBOT, runs, friction="linear", preparation=ROUGH)
    payload = sy.weigh(rough, recording(3, loaded, rotor=ROTOR))
    assert (np.abs(payload.unconstrained.vector - LOAD.vector) < 2.5 * payload.std).all()
    assert payload.verdict.has(DoubtKind.NOISY_MOTION)
    assert "Noise of the measured motion may have moved" in str(payload.verdict)
    assert payload.shares["motion"] > 0
    assert sum(payload.shares.values()) == pytest.approx(1.0)
    model = sy.identify(ROBOT, runs, friction="linear", preparation=SMOOTH)
    better = sy.weigh(model, recording(3, loaded, rotor=ROTOR))
    assert (np.abs(better.unconstrained.vector - LOAD.vector) < 3.3 * better.std).all()
    assert not better.verdict.has(DoubtKind.NOISY_MOTION)
    assert better.std[0] < 0.6 * payload.std[0]
    again = sy.DynamicModel.from_dict(model.to_dict())
    np.testing.assert_array_equal(again.motion_shift, model.motion_shift)
