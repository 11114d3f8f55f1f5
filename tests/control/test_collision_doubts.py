"""Collision detection refuses or doubts what cannot be right: payloads, recordings, short runs."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.control._compensation import flange_body
from steelyard.control.collision import ArmDynamics, Detector, Observer, Residuals, Thresholds
from steelyard.control.collision._dynamics import TorqueUncertainty
from steelyard.errors import InvalidInertia, InvalidRecording
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording, Samples
from steelyard.robot import DriveModel, RobotModel, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Doubt, DoubtKind, Verdict

NOISE = 0.05


def motion(robot, seed, seconds=10.0, reach=1.0):
    n = robot.n
    series = FourierTrajectory.random(
        np.zeros(n), reach=[reach] * n, speed=[1.5] * n, period_s=10.0, harmonics=5, seed=seed
    )
    return series.at(np.arange(0, seconds, 0.01))


def samples(robot, seed):
    q, v, a = motion(robot, seed)
    tau = robot.torque(q, v, a) + np.random.default_rng(seed).normal(0, NOISE, q.shape)
    return Samples(q, v, a, tau, 100.0, robot.joint_names, "measured")


def recording(robot, seed, rows=slice(None)):
    run = samples(robot, seed)
    return Recording(run.t[rows], run.q[rows], robot.joint_names, v=run.v[rows], tau=run.tau[rows])


@pytest.fixture(scope="module")
def robot(tiny):
    drive = DriveModel(
        np.array([0.3, 0.2, 0.1]),
        np.array([5.0, 4.0, 2.0]),
        np.array([3.0, 2.0, 1.0]),
        sign_width=0.02,
    )
    return RobotModel.from_urdf_text(tiny["revolute"]).with_drive(drive)


@pytest.fixture(scope="module")
def model(robot):
    return identify(robot, [samples(robot, 1), samples(robot, 2)])


@pytest.fixture(scope="module")
def load(robot):
    body = InertialParameters.from_com(
        2.0, [0.05, 0.03, 0.1], np.diag([0.01] * 3), frame=robot.flange
    )
    covariance = np.diag([0.3**2] * 4 + [0.05**2] * 6)
    return Payload(body, body, covariance, np.ones(3), Verdict("all ten parameters were excited"))


@pytest.fixture(scope="module")
def detector(model):
    observer = Observer.of(model)
    return Detector(observer, Thresholds.fixed(observer, 6.0))


# --- what the arm carries


def test_a_payload_that_says_not_to_trust_it_is_refused(model, load):
    touched = Verdict(doubts=(Doubt(DoubtKind.CONTRADICTS_MODEL, "touched"),))
    with pytest.raises(InvalidInertia, match="the payload is doubtful: touched; weigh it again"):
        ArmDynamics.of(model, replace(load, verdict=touched))
    negative = InertialParameters.from_vector(-load.body.vector, load.body.frame)
    with pytest.raises(InvalidInertia, match="the payload is not that of a real body"):
        ArmDynamics.of(model, replace(load, body=negative))
    assert (
        ArmDynamics.of(model, load).robot.links[-1].mass
        > ArmDynamics.of(model).robot.links[-1].mass
    )


def test_a_payload_weighed_at_rest_is_watched_with_one_of_unknown_mass_is_not(model, load):
    """gaz2017, section VI.B: only mass and centre of mass are known; inertia is missing."""
    at_rest, massless = np.array(load.covariance), np.array(load.covariance)
    at_rest[range(4, 10), range(4, 10)] = np.inf
    massless[0, 0] = np.inf
    assert ArmDynamics.of(model, replace(load, covariance=at_rest)).robot.links[-1].mass > 0
    with pytest.raises(InvalidInertia, match="the payload's m were not excited"):
        ArmDynamics.of(model, replace(load, covariance=massless))
    with pytest.raises(InvalidInertia, match=r"the payload.s Ixx, .* were not excited"):
        flange_body(model.robot, replace(load, covariance=at_rest))


def test_the_uncertainty_keeps_what_is_known_of_a_payload(model, load):
    """The torque's variance falls by that of the unknown numbers, never by that of the mass."""
    half = np.array(load.covariance)
    half[range(4, 10), range(4, 10)] = np.inf
    q = np.array([0.4, -0.7, 1.1])
    rest = np.array([[q, np.zeros(3), np.zeros(3)]])
    memory = np.array([np.zeros(3), q])
    bare, known, part = (
        TorqueUncertainty.of(ArmDynamics.of(model, x)).std(rest, memory)[0, 0] ** 2
        for x in (None, load, replace(load, covariance=half))
    )
    np.testing.assert_allclose(part, known, rtol=1e-9)  # at rest the inertia does not count
    assert (part[1:] > 2 * bare[1:]).all()


# --- what was recorded


def test_joints_in_another_order_are_refused(robot, detector):
    run, turn = recording(robot, 3), [1, 0, 2]
    names = [robot.joint_names[i] for i in turn]
    turned = Recording(run.t, run.q[:, turn], names, v=run.v[:, turn], tau=run.tau[:, turn])
    for act in (
        lambda: detector.detect(turned),
        lambda: Detector.learned(detector.observer, turned),
    ):
        with pytest.raises(
            InvalidRecording,
            match=r"order shoulder, elbow, wrist, those of the recording elbow, shoulder",
        ):
            act()
    assert detector.detect(run).contacts == ()


def test_joints_with_names_of_their_own_are_taken_as_they_come(robot, detector):
    run = recording(robot, 3)
    assert detector.detect(replace(run, joint_names=("a", "b", "c"))).verdict.doubts == ()


def test_degrees_are_refused(robot, detector):
    run = recording(robot, 3)
    with pytest.raises(InvalidRecording, match="the recording is not fit for use: q reaches"):
        detector.detect(replace(run, q=np.rad2deg(run.q), v=np.rad2deg(run.v)))


def test_a_torque_with_the_wrong_sign_is_doubted(robot, detector):
    run = recording(robot, 3)
    found = detector.detect(replace(run, tau=-run.tau))
    assert any(
        "% of the recording would be contact" in doubt.words for doubt in found.verdict.doubts
    )
    assert detector.detect(run).verdict.doubts == ()


def test_a_few_rows_are_refused_and_a_short_run_says_so(robot, detector):
    with pytest.raises(InvalidRecording, match="3 rows in"):
        detector.detect(recording(robot, 3, slice(0, 3)))
    short = detector.detect(recording(robot, 3, slice(0, 15)))
    assert any(
        "is 0.14 s long, but the observer needs 0.25 s" in doubt.words
        for doubt in short.verdict.doubts
    )


def test_friction_is_not_learned_from_a_moment_or_from_one_direction(robot):
    """A wrong weight is not friction; a joint that moves one way cannot tell them apart."""
    ideal = robot.with_drive(DriveModel(robot.drive.rotor_inertia))
    observer = Observer.of(ideal)
    detector = Detector(observer, Thresholds.fixed(observer, 50.0))
    q, v, _ = motion(robot, 3)
    whole = recording(robot, 3)
    assert any(
        "friction that is missing in the model" in doubt.words
        for doubt in detector.detect(whole).verdict.doubts
    )
    one_way = np.arange(300) * 0.01
    q = np.outer(one_way, [0.3, 0.2, 0.25]) - 0.5
    v = np.tile([0.3, 0.2, 0.25], (300, 1))
    straight = Recording(one_way, q, robot.joint_names, v=v, tau=robot.torque(q, v, 0 * v))
    for run in (whole.rows(slice(0, 40)), straight):
        assert not any("friction" in doubt.words for doubt in detector.detect(run).verdict.doubts)


# --- motors that turn several joints


def test_friction_of_the_day_is_that_of_the_drives_also_where_they_are_coupled():
    robot = load_robot("tx60")
    C = np.diag([80.0, 80, 45, 48, 45, 32])
    C[5, 4] = 32.0
    drive = DriveModel(
        np.full(6, 0.3), np.full(6, 2.0), np.full(6, 1.0), sign_width=0.02, coupling=C
    )
    usual = robot.with_drive(drive)
    more = np.array([0.0, 0.4, 0, 0, -0.5, 1.0])
    today = robot.with_drive(replace(drive, coulomb=drive.coulomb + more))
    model = identify(usual, [samples(usual, 1), samples(usual, 2)])
    free = recording(today, 3)
    before = Observer.of(model)
    learned = Detector.learned(before, free)
    np.testing.assert_allclose(learned.thresholds.learned.friction_change[0], more, atol=0.06)
    left = [
        np.sqrt((Residuals.of_recording(x, free).residual[100:] ** 2).mean(axis=0))
        for x in (before, learned.observer)
    ]
    assert (left[1][[1, 4, 5]] < 0.15 * left[0][[1, 4, 5]]).all()


def test_missing_friction_of_coupled_drives_is_reported(tiny):
    robot = RobotModel.from_urdf_text(tiny["revolute"])
    C = np.array([[30.0, 0, 0], [0, 40, 0], [0, 25, -50]])
    real = robot.with_drive(
        DriveModel(np.full(3, 0.1), np.full(3, 4.0), coupling=C, sign_width=0.02)
    )
    known = robot.with_drive(replace(real.drive, coulomb=np.array([4.0, 4.0, 0.0])))
    observer = Observer.of(known)
    doubts = (
        Detector(observer, Thresholds.fixed(observer, 50.0))
        .detect(recording(real, 3))
        .verdict.doubts
    )
    assert len(doubts) == 1
    assert doubts[0].words.startswith(
        "wrist has about 3.8 Nm of friction that is missing in the model"
    )
