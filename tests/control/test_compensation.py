"""What compensation refuses, and what it leaves alone."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.control._compensation import Compensator, flange_body
from steelyard.errors import InvalidInertia, InvalidRobot, InvalidSamples
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import Payload
from steelyard.robot import load_robot
from steelyard.verdict import Doubt, DoubtKind, Verdict

BODY = InertialParameters.from_com(2.0, [0.01, 0.02, 0.05], np.diag([0.02, 0.03, 0.04]))


def payload(body=BODY, unknown=()):
    variance = np.full(10, 1e-4)
    variance[[PARAMETER_NAMES.index(name) for name in unknown]] = np.inf
    return Payload(
        body, body, np.diag(variance), np.ones(6), Verdict("all ten parameters were excited")
    )


@pytest.fixture(scope="module")
def ur10():
    return load_robot("ur10")


def test_a_payload_of_another_flange_is_refused(ur10):
    foreign = BODY.renamed("tool0")
    q = np.zeros((1, 6))
    for act in (
        lambda: Compensator(ur10, foreign),
        lambda: Compensator(ur10, payload(foreign)),
        lambda: ur10.with_payload(flange_body(ur10, foreign)),
        lambda: Compensator(ur10, foreign).payload_torque(q, q, q),
    ):
        with pytest.raises(
            InvalidRobot,
            match=r"in frame 'tool0', the flange of .* is 'flange': express the payload in this",
        ):
            act()


def test_numbers_that_were_not_excited_are_refused(ur10):
    with pytest.raises(InvalidInertia, match="payload's mz, Izz were not excited"):
        Compensator(ur10, payload(unknown=("mz", "Izz")))
    assert Compensator(ur10, payload(unknown=("mz", "Izz")).body).body == BODY


def test_numbers_that_an_arm_can_never_feel_may_be_unknown():
    planar = load_robot("planar2r")
    unseen = payload(BODY.renamed(planar.flange), unknown=("mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz"))
    assert flange_body(planar, unseen).mass == 2.0
    q = np.array([[0.3, -0.7]])
    assert np.isfinite(Compensator(planar, unseen).payload_torque(q, q, q).std).all()


def test_a_payload_that_is_no_body_is_refused(ur10):
    odd = InertialParameters.from_com(2.0, [0.0, 0.0, 0.05], np.diag([0.02, 0.03, -0.04]))
    with pytest.raises(InvalidInertia, match="the payload is not that of a real body"):
        Compensator(ur10, payload(odd))


def test_a_payload_that_says_not_to_trust_it_is_refused(ur10):
    doubt = Doubt(
        DoubtKind.CONTRADICTS_MODEL, "the loaded torques contradict the model of the empty arm"
    )
    strange = replace(payload(), verdict=Verdict(doubts=(doubt,)))
    with pytest.raises(
        InvalidInertia, match="the payload is doubtful: the loaded torques contradict"
    ):
        ur10.with_payload(flange_body(ur10, strange))
    assert Compensator(ur10, strange.body).body == BODY


def test_an_invalid_mass_is_refused_though_the_rest_is_unknown():
    planar = load_robot("planar2r")
    hole = InertialParameters.from_vector(-BODY.vector, planar.flange)
    with pytest.raises(
        InvalidInertia, match="the payload is not that of a real body: the mass is -2 kg"
    ):
        Compensator(planar, payload(hole, unknown=("mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz")))


def test_a_payload_without_covariance_has_no_uncertainty_to_tell(ur10, rng):
    q, v, a = rng.normal(size=(3, 4, 6))
    assert np.isnan(Compensator(ur10, BODY).payload_torque(q, v, a).std).all()
    assert (Compensator(ur10, payload()).payload_torque(q, v, a).std > 0).all()


def test_the_given_model_stays_as_it_is(ur10, rng):
    before = ur10.parameters
    q = rng.normal(size=6)
    held = ur10.gravity_torque(q)
    loaded = ur10.with_payload(flange_body(ur10, payload()))
    Compensator(ur10, payload())
    np.testing.assert_array_equal(ur10.parameters, before)
    np.testing.assert_array_equal(ur10.gravity_torque(q), held)
    assert loaded.links[-1].mass == pytest.approx(ur10.links[-1].mass + 2.0)
    with pytest.raises(ValueError, match="read-only"):
        Compensator(ur10).batch(*rng.normal(size=(3, 2, 6))).gravity[0, 0] = 1.0


@pytest.mark.parametrize("shape", [(4, 5), (6,), (0, 6)])
def test_a_motion_of_another_shape_is_refused(ur10, shape):
    wrong = np.zeros(shape)
    with pytest.raises(
        InvalidSamples, match=r"q, v and a of a motion of .* must have the shape \(N, 6\), got"
    ):
        Compensator(ur10).batch(wrong, wrong, wrong)


def test_numbers_that_are_none_are_refused(ur10):
    q = np.zeros((2, 6))
    bad = q.copy()
    bad[1, 3] = np.nan
    with pytest.raises(InvalidSamples, match="a motion must be finite"):
        Compensator(ur10).batch(q, bad, q)
    compensator = Compensator(ur10)
    with pytest.raises(
        InvalidSamples, match=r"q, v and a of a sample of .* must be 6 finite numbers each"
    ):
        compensator.step(compensator.init(), q[0], bad[1], q[0])
    with pytest.raises(
        InvalidSamples, match=r"q, v and a of a sample of .* must be 6 finite numbers each"
    ):
        compensator.step(compensator.init(), q[0][:5], q[0][:5], q[0][:5])


def test_friction_at_a_low_speed_is_never_negative(ur10):
    drive = replace(ur10.drive, coulomb=np.full(6, -5.0), viscous=np.full(6, 0.1))
    assert (Compensator(ur10.with_drive(drive)).slow_friction(0.01) == 0).all()
    found = Compensator(ur10).slow_friction(0.2)
    np.testing.assert_allclose(found, ur10.drive.friction(np.full(6, 0.2)) - ur10.drive.offset)
