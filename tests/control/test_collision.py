"""Observers, thresholds and detection on a small simulated arm: contacts and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.control.collision import (
    ArmDynamics,
    Detector,
    FrameForce,
    Observer,
    Residuals,
    Thresholds,
)
from steelyard.errors import InvalidRecording, InvalidRobot, InvalidSamples, UnknownName
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.recording import Recording, Sample
from steelyard.robot import DriveModel, RobotModel
from steelyard.signals import Preparation, prepare
from steelyard.simulation import Push, SensorModel, SimulationOptions, simulate
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory

SENSORS = SensorModel(torque_std=0.2, wrist_sensor=False)
HOW = Preparation(cutoff_hz=20.0)
PUSHES = (
    Push(3.0, 0.4, "hand", np.array([60.0, -40.0, 30.0])),
    Push(6.0, 0.4, "lower", np.array([-30.0, 90.0, 40.0]), np.array([0.1, 0.2, 0.1])),
    Push(9.0, 0.4, "hand", np.array([40.0, 50.0, -40.0]), np.array([0.15, 0.1, -0.15])),
)
LINKS = (
    "lower",
    "lower",
    "hand",
)  # the first acts on the axis of the hand's joint, which does not feel it


def run(robot, seed, *, seconds=12.0, load=None, pushes=(), speed=1.0):
    motion = FourierTrajectory.random(
        np.zeros(3), reach=[1.0] * 3, speed=[speed] * 3, period_s=seconds, harmonics=4, seed=seed
    )
    return simulate(
        robot,
        motion,
        payload=load,
        sensors=SENSORS,
        rate_hz=125.0,
        seed=seed,
        pushes=pushes,
        options=SimulationOptions(step_s=0.004),
    )


@pytest.fixture(scope="module")
def robot(tiny):
    drive = DriveModel(
        np.array([0.3, 0.2, 0.1]),
        np.array([5.0, 4.0, 2.0]),
        np.array([3.0, 2.0, 1.0]),
        gain=np.array([10.0, 8.0, 5.0]),
    )
    return RobotModel.from_urdf_text(tiny["revolute"]).with_drive(drive)


@pytest.fixture(scope="module")
def load(robot):
    return InertialParameters.from_com(
        2.0, [0.05, 0.03, 0.1], np.diag([0.01] * 3), frame=robot.flange
    )


@pytest.fixture(scope="module")
def model(robot):
    return identify(robot, prepare(run(robot, 1, seconds=8.0, speed=2.0).recording, HOW))


@pytest.fixture(scope="module")
def payload(robot, model, load):
    return weigh(model, prepare(run(robot, 2, seconds=8.0, load=load, speed=2.0).recording, HOW))


@pytest.fixture(scope="module")
def free(robot, load):
    return run(robot, 3, load=load, seconds=16.0).recording


@pytest.fixture(scope="module")
def pushed(robot, load):
    return run(robot, 4, load=load, pushes=PUSHES)


@pytest.fixture(scope="module")
def learned(model, payload, free):
    return Detector.learned(Observer.of(model, payload), free)


@pytest.fixture(scope="module")
def found(learned, pushed):
    return learned.detect(pushed.recording)


@pytest.mark.thorough
def test_every_push_is_found_soon_with_its_joint_direction_and_link(found, pushed):
    assert len(found.contacts) == 3
    for contact, push, link in zip(found.contacts, PUSHES, LINKS, strict=True):
        assert 0 < contact.detected_s - push.start_s < 0.1
        assert (
            push.start_s + push.duration_s
            < contact.end_s + 0.05
            < push.start_s + push.duration_s + 0.3
        )
        middle = np.searchsorted(pushed.truth.t, push.start_s + 0.2)
        external = pushed.truth.external[middle]
        j = found.residuals.observer.names.index(contact.joint)
        assert contact.direction == np.sign(external[j]) == np.sign(contact.peak)
        assert contact.peak == pytest.approx(external[j], rel=0.25)
        assert contact.link == link
        assert contact.ratio > 1
    assert found.verdict.summary.startswith(
        "3 contacts in 12.0 s; thresholds learned from 16 s of motion without contact"
    )


def test_the_residual_is_the_true_external_torque(found, pushed):
    during = (pushed.truth.t > 3.2) & (pushed.truth.t < 3.4)
    np.testing.assert_allclose(
        found.residuals.residual[during], pushed.truth.external[during], atol=2.5
    )
    beyond_link = (pushed.truth.t > 6.1) & (pushed.truth.t < 6.4)
    assert np.abs(pushed.truth.external[beyond_link, 2]).max() < 1e-9
    assert np.abs(found.residuals.residual[beyond_link, 2]).max() < 1.0


def test_step_by_step_is_the_same_as_at_once(learned, found, pushed):
    detector = learned
    samples = found.residuals.samples
    state = detector.init(samples[0])
    ended = []
    for i, sample in enumerate(samples[1:], start=1):
        state = detector.step(state, sample)
        ended += [] if state.ended is None else [state.ended]
        np.testing.assert_allclose(state.threshold, found.threshold[i], rtol=1e-9)
        np.testing.assert_array_equal(state.observer.residual, found.residuals.residual[i])
    assert tuple(ended) == found.contacts


def test_the_learning_motion_itself_has_no_contact(learned, free):
    assert learned.detect(free).contacts == ()
    assert not learned.thresholds.level.flags.writeable


def test_rarer_false_alarms_need_higher_thresholds(learned, model, payload, free):
    observer = Observer.of(model, payload)
    seldom = Detector.learned(observer, free, false_alarms_per_hour=0.001).thresholds.level
    assert (seldom > 1.05 * learned.thresholds.level).all()


def test_friction_of_another_day_is_learned_from_the_free_motion(robot, model, load, payload):
    drive = robot.drive
    warm = robot.with_drive(
        replace(drive, coulomb=0.8 * drive.coulomb, viscous=1.3 * drive.viscous)
    )
    free = run(warm, 5, load=load, seconds=16.0).recording
    observer = Observer.of(model, payload)
    adapted = Detector.learned(observer, free)
    change = adapted.thresholds.learned.friction_change
    np.testing.assert_allclose(change[0], -0.2 * drive.coulomb, atol=0.12 * drive.coulomb.max())
    np.testing.assert_allclose(change[1], 0.3 * drive.viscous, atol=0.2 * drive.viscous.max())
    as_it_is = Detector.learned(observer, free, adapt_friction=False)
    assert not as_it_is.thresholds.learned.friction_change.any()
    assert (as_it_is.thresholds.level[0, :2] > 1.1 * adapted.thresholds.level[0, :2]).all()


def test_an_ignored_payload_looks_like_a_contact(model, payload, free):
    knowing, ignorant = (Observer.of(model, x) for x in (payload, None))
    limit = 1.2 * np.abs(Residuals.of_recording(knowing, free).beyond_friction).max(axis=0)
    assert not Detector(knowing, Thresholds.fixed(knowing, limit)).detect(free).contacts
    assert Detector(ignorant, Thresholds.fixed(ignorant, limit)).detect(free).contacts


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["inverse-dynamics", "energy"])
def test_the_other_observers_find_the_pushes_too(model, payload, free, pushed, kind):
    observer = Observer.of(model, payload, kind=kind)
    made = Detector.learned(observer, free)
    found = made.detect(pushed.recording)
    for push in PUSHES:
        assert any(
            push.start_s <= c.detected_s <= push.start_s + push.duration_s for c in found.contacts
        )
    if kind == "energy":
        assert all(c.link is None and c.joint == "power" for c in found.contacts)
        assert found.residuals.observer.unit == "W"


def test_the_former_name_of_the_inverse_dynamics_observer_is_understood(model):
    assert type(Observer.of(model, kind="direct")) is type(
        Observer.of(model, kind="inverse-dynamics")
    )


def test_a_rate_that_changes_makes_no_contact(learned, free):
    keep = np.ones(len(free), dtype=bool)
    keep[len(free) // 2 :: 2] = False  # half the rate from there on
    keep[::37] = False
    thinned = learned.detect(free.rows(keep))
    assert thinned.contacts == ()


def test_a_quicker_motion_than_the_learned_one_is_reported(robot, load, learned):
    quick = run(robot, 6, load=load, speed=2.0).recording
    doubts = learned.detect(quick).verdict.doubts
    assert any("thresholds are extrapolated" in doubt.words for doubt in doubts)


def test_a_contact_gives_its_force(found, pushed, robot):
    i = int(np.searchsorted(found.residuals.t, 3.3))
    answer = FrameForce.of(robot, found.residuals.q[i], found.residuals.residual[i], frame="hand")
    np.testing.assert_allclose(answer.force_base, PUSHES[0].force_world, atol=12)


# --- what is refused


def test_a_learning_motion_with_a_contact_is_refused(model, payload, pushed):
    observer = Observer.of(model, payload)
    with pytest.raises(
        InvalidRecording,
        match=r"not free of contact: near t = (3|6|9)\.\d+ s the residual of \w+ is",
    ):
        Detector.learned(observer, pushed.recording)


def test_a_model_without_friction_is_refused_where_the_recording_has_it(robot, free, load):
    ideal = robot.with_drive(DriveModel(robot.drive.rotor_inertia))
    observer = Observer.of(ideal, load)
    with pytest.raises(InvalidRecording, match="friction that is missing in the model"):
        Detector.learned(observer, free)
    doubts = Detector(observer, Thresholds.fixed(observer, 50.0)).detect(free).verdict.doubts
    assert any("friction that is missing in the model" in doubt.words for doubt in doubts)


def test_a_payload_for_another_flange_is_refused(model):
    other = InertialParameters.from_com(1.0, [0, 0, 0.1], np.eye(3) * 0.01, frame="gripper")
    with pytest.raises(
        InvalidRobot, match="the payload is in frame 'gripper', the flange of tiny is"
    ):
        ArmDynamics.of(model, other)


def test_a_model_with_unknown_parameters_is_refused(model):
    covariance = np.array(model.estimate.covariance)
    covariance[0, 0] = np.inf
    holed = replace(model, estimate=replace(model.estimate, covariance=covariance))
    with pytest.raises(
        InvalidSamples, match=f"{model.estimate.names[0]}.* are unknown in the model"
    ):
        ArmDynamics.of(holed)


def test_holes_and_time_that_goes_back_are_refused_and_repeats_ignored(learned, free):
    observer = learned.observer
    keep = (free.t < 4) | (free.t > 5)
    with pytest.raises(InvalidSamples, match=r"the time step after t = 3\.9\d+ s is 1\.0\d+ s"):
        Residuals.of_recording(observer, free.rows(keep))
    sample = Residuals.of_recording(observer, free).samples[0]
    state = observer.init(sample)
    assert observer.step(state, sample) is state
    with pytest.raises(InvalidSamples, match="initialise the observer again after a pause"):
        observer.step(state, sample._replace(t=-0.01))


def test_samples_that_are_none_are_refused(learned):
    with pytest.raises(InvalidSamples, match="has 3 joints, the sample"):
        learned.observer.init(Sample(0.0, np.zeros((2, 2)), np.zeros(2)))
    with pytest.raises(InvalidSamples, match="is not finite"):
        learned.observer.init(Sample(0.0, np.array([[0, np.nan, 0], np.zeros(3)]), np.zeros(3)))


@pytest.mark.thorough
def test_currents_need_gains_and_bad_rows_are_left_out(learned, free, robot):
    current = Recording(free.t, free.q, free.joint_names, v=free.v, current=free.current)
    with pytest.raises(InvalidRecording, match="motor currents only: give drives with gains"):
        Residuals.of_recording(learned.observer, current)
    with pytest.raises(InvalidSamples, match="the drives need 3 gains other than 0"):
        Residuals.of_recording(learned.observer, current, drive=DriveModel(np.zeros(2), gain=1.0))
    with pytest.raises(InvalidRecording, match="neither torques nor motor currents"):
        Residuals.of_recording(learned.observer, Recording(free.t, free.q))
    with pytest.raises(InvalidRecording, match="the arm has 3 joints, the recording 2"):
        Residuals.of_recording(
            learned.observer, Recording(free.t, free.q[:, :2], tau=free.q[:, :2])
        )
    same = Residuals.of_recording(learned.observer, current, drive=robot.drive)
    np.testing.assert_allclose(
        same.residual, Residuals.of_recording(learned.observer, free).residual, atol=1e-9
    )
    v = np.array(free.v)
    v[5] = np.nan
    assert len(Residuals.of_recording(learned.observer, replace(free, v=v))) == len(free) - 1
    bare = Residuals.of_recording(learned.observer, replace(free, v=None))
    assert np.abs(bare.residual[200:] - same.residual[200:]).max() < 6


def test_wishes_that_make_no_sense_are_refused(learned, free, robot):
    observer = learned.observer
    with pytest.raises(InvalidSamples, match="gain_hz and longest_gap_s must be positive"):
        Observer.of(robot, gain_hz=0.0)
    with pytest.raises(UnknownName, match="no observer 'kalman'; there are momentum, inverse-dy"):
        Observer.of(robot, kind="kalman")
    with pytest.raises(InvalidSamples, match="false_alarms_per_hour must be positive"):
        Detector.learned(observer, free, false_alarms_per_hour=0.0)
    with pytest.raises(InvalidRecording, match="too short to learn from"):
        Detector.learned(observer, free.between(0, 2))
    with pytest.raises(InvalidSamples, match="a threshold must be positive"):
        Thresholds.fixed(observer, [1.0, -2.0, 3.0])
    with pytest.raises(InvalidSamples, match="debounce_s and release_s must not be negative"):
        Detector(observer, learned.thresholds, release=0.0)
    with pytest.raises(InvalidSamples, match="3 thresholds for 1 residuals"):
        Detector(Observer.of(robot, kind="energy"), learned.thresholds)
    with pytest.raises(InvalidSamples, match="external must be 3 finite numbers"):
        FrameForce.of(robot, np.zeros(3), np.zeros(2))
    with pytest.raises(InvalidSamples, match="kind must be 'force' or 'wrench'"):
        FrameForce.of(robot, np.zeros(3), np.ones(3), kind="push")
