"""Simulation: refusals with their text, shapes, copies, progress, and recorded signals."""

import dataclasses
import sys

import numpy as np
import pytest

from steelyard.errors import (
    InvalidInertia,
    InvalidRecording,
    InvalidRobot,
    InvalidTrajectory,
    MissingExtra,
    SimulationFailed,
    UnknownName,
)
from steelyard.inertia import InertialParameters
from steelyard.robot import DHTable, DriveModel, RobotModel, load_robot
from steelyard.simulation import Push, SensorModel, SimulationOptions, simulate

FORCE = np.array([1.0, 2.0, 3.0])


class Swing:
    """Every joint swings about home with its own phase."""

    def __init__(self, robot, duration_s=0.4, n=None):
        self.duration_s, self.home, self.n = duration_s, robot.home, n or robot.n

    def at(self, t):
        angle = 5 * t[:, None] + np.arange(self.n)
        home = np.resize(self.home, self.n)
        return home + 0.1 * np.sin(angle), 0.5 * np.cos(angle), -2.5 * np.sin(angle)


@pytest.fixture(scope="module")
def ur10():
    return load_robot("ur10")


@pytest.fixture(scope="module")
def planar():
    return load_robot("planar2r")


# --- what comes back


def test_recording_holds_what_the_sensors_say(ur10):
    made = simulate(ur10, Swing(ur10))
    recording = made.recording
    assert recording.channels == (
        *("q", "v", "tau", "current", "q_commanded", "v_commanded", "a_commanded", "wrench"),
    )
    assert recording.joint_names == ur10.joint_names
    assert recording.rate_hz == pytest.approx(125)
    assert len(recording) == len(made.truth) == 51
    assert recording.duration_s == pytest.approx(0.4)
    assert recording.source == "MuJoCo simulation of ur10"
    assert recording.notes == ("payload of 0 kg; torque at the motor; seed 0",)
    q, v, a = Swing(ur10).at(recording.t)
    for channel, wanted in (("q_commanded", q), ("v_commanded", v), ("a_commanded", a)):
        np.testing.assert_allclose(getattr(recording, channel), wanted, atol=1e-12)


def test_arm_starts_on_the_trajectory_and_follows_it_with_small_errors(ur10):
    payload = InertialParameters.from_com(6.0, [0.02, -0.03, 0.1], np.eye(3) * 0.03)
    made = simulate(ur10, Swing(ur10, 2.0), payload=payload, sensors=SensorModel.ideal())
    error = np.abs(made.truth.q - made.recording.q_commanded)
    assert error[0].max() == 0
    assert 1e-5 < error.max() < 0.01
    np.testing.assert_allclose(made.truth.v[0], made.recording.v_commanded[0], atol=1e-12)
    np.testing.assert_allclose(made.truth.a[0], made.recording.a_commanded[0], atol=1e-9)
    assert made.truth.payload is payload


def test_higher_bandwidth_follows_closer(ur10):
    errors = []
    for bandwidth_hz in (5.0, 20.0):
        options = SimulationOptions(bandwidth_hz=bandwidth_hz)
        made = simulate(ur10, Swing(ur10, 1.0), sensors=SensorModel.ideal(), options=options)
        errors.append(np.abs(made.truth.q - made.recording.q_commanded).max())
    assert errors[1] < errors[0] / 4


def test_ideal_sensors_say_the_truth(ur10):
    made = simulate(ur10, Swing(ur10), sensors=SensorModel.ideal())
    for channel in ("t", "q", "v", "tau", "wrench"):
        np.testing.assert_array_equal(
            getattr(made.recording, channel), getattr(made.truth, channel)
        )


def test_channels_follow_the_sensors(ur10, planar):
    no_wrist = SensorModel(wrist_sensor=False, torque_side="link")
    recording = simulate(ur10, Swing(ur10), sensors=no_wrist).recording
    assert {"current", "wrench"}.isdisjoint(recording.channels)
    assert recording.wrench_frame is recording.wrench_convention is None
    assert "current" not in simulate(planar, Swing(planar)).recording.channels


def test_truth_options_sensors_and_pushes_are_read_only(planar):
    truth = simulate(planar, Swing(planar)).truth
    for item in dataclasses.fields(truth):
        if item.name != "payload":
            assert not getattr(truth, item.name).flags.writeable
    force, gravity, std = FORCE.copy(), FORCE.copy(), np.ones(2)
    made = (
        Push(0, 1, "link1", force).force_world,
        SimulationOptions(gravity_base=gravity).gravity_base,
        SensorModel(torque_std=std).torque_std,
    )
    force[0] = gravity[0] = std[0] = 99
    assert [array[0] for array in made] == [1, 1, 1]
    assert not any(array.flags.writeable for array in made)


@pytest.mark.parametrize("duration_s", [0.04, 2.0])
def test_progress_rises_to_one_in_about_fifty_calls(planar, duration_s):
    done = []
    simulate(planar, Swing(planar, duration_s), options=SimulationOptions(progress=done.append))
    assert done[-1] == 1.0
    assert (np.diff(done) > 0).all()
    assert 40 <= len(done) <= 52


@pytest.mark.parametrize(
    ("duration_s", "rows"), [(0.4, 51), (0.401, 51), (0.4079, 51), (0.408, 52)]
)
def test_rows_end_within_the_trajectory(planar, duration_s, rows):
    truth = simulate(planar, Swing(planar, duration_s)).truth
    assert len(truth) == rows
    np.testing.assert_allclose(truth.t, np.arange(rows) / 125, rtol=0, atol=1e-15)


def test_payload_may_be_a_point_or_a_plate(ur10):
    plate = InertialParameters.from_points([1, 1, 1, 1], np.eye(4)[:, :3] * 0.2)
    point = InertialParameters.from_com(2.0, [0.03, 0.02, 0.1], np.zeros((3, 3)))
    for payload in (plate, point):
        truth = simulate(ur10, Swing(ur10), payload=payload, sensors=SensorModel.ideal()).truth
        rigid = ur10.with_payload(payload).inverse_dynamics(truth.q, truth.v, truth.a)
        np.testing.assert_allclose(truth.tau_link, rigid, atol=1e-9)


# --- refusals


def test_missing_mujoco_names_the_extra(planar, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtra, match=r"needs mujoco: pip install 'steelyard\[simulation\]'"):
        simulate(planar, Swing(planar))


def test_link_without_inertia_is_refused():
    robot = RobotModel.from_dh(DHTable.from_rows([[0, 0, 0, 0], [0, 1, 0, 0]]))
    with pytest.raises(
        InvalidRobot,
        match=r"link1' of arm is not physical, .*the mass is 0 kg.*replace them with with_links",
    ):
        simulate(robot, Swing(robot))


def test_negative_rotor_inertia_is_refused(planar):
    robot = planar.with_drive(DriveModel(np.array([0.1, -0.2])))
    with pytest.raises(InvalidRobot, match="has negative rotor inertia, which MuJoCo refuses"):
        simulate(robot, Swing(robot))


def test_payload_in_another_frame_is_refused(planar):
    with pytest.raises(
        InvalidRobot, match=r"frame 'hand', the flange of planar2r is 'flange'.*in_frame"
    ):
        simulate(planar, Swing(planar), payload=InertialParameters.nothing("hand"))


@pytest.mark.parametrize(
    ("mass", "moments", "why"),
    [
        (-1.0, [1, 1, 1], "mass is -1 kg"),
        (1.0, [1, 1, 3], "triangle inequality"),
        (0.0, [1, 1, 1], "mass is 0"),
    ],
)
def test_payload_that_no_body_has_is_refused(planar, mass, moments, why):
    payload = InertialParameters(mass, np.zeros(3), np.diag(moments))
    with pytest.raises(InvalidInertia, match=f"no body can be this payload: .*{why}"):
        simulate(planar, Swing(planar), payload=payload)


@pytest.mark.parametrize("rate_hz", [130, 3000, 1001])
def test_rate_that_misses_the_steps_is_refused_with_one_that_fits(planar, rate_hz):
    with pytest.raises(
        InvalidRecording, match=r"do not fall on steps of 0\.001 s; take rate_hz ="
    ) as caught:
        simulate(planar, Swing(planar), rate_hz=rate_hz)
    words = str(caught.value).replace(";", "").split()
    numbers = [float(words[i + 1]) for i, word in enumerate(words) if word == "="]
    simulate(planar, Swing(planar), rate_hz=numbers[0])
    made = simulate(
        planar, Swing(planar), rate_hz=rate_hz, options=SimulationOptions(step_s=numbers[1])
    )
    assert made.recording.rate_hz == pytest.approx(rate_hz, rel=1e-12)


@pytest.mark.parametrize("rate_hz", [0, -5, np.nan, np.inf])
def test_rate_must_be_positive(planar, rate_hz):
    with pytest.raises(InvalidRecording, match="rate_hz must be positive"):
        simulate(planar, Swing(planar), rate_hz=rate_hz)


@pytest.mark.parametrize("duration_s", [0.0, -1.0, 0.007, np.nan, np.inf])
def test_trajectory_must_last_a_period(planar, duration_s):
    with pytest.raises(
        InvalidTrajectory, match=f"at least one period of 125 Hz and end, got {duration_s} s"
    ):
        simulate(planar, Swing(planar, duration_s))


def test_trajectory_of_another_robot_is_refused(planar, ur10):
    with pytest.raises(InvalidTrajectory, match=r"q, v and a of shape \(401, 2\), got \(401, 6\)"):
        simulate(planar, Swing(ur10))


def test_trajectory_must_be_finite(planar):
    class Broken(Swing):
        def at(self, t):
            return tuple(np.where(t[:, None] > 0.2, np.nan, signal) for signal in super().at(t))

    with pytest.raises(
        InvalidTrajectory, match=r"trajectory.at\(t\) returned values that are not finite"
    ):
        simulate(planar, Broken(planar))


@pytest.mark.parametrize("name", ["step_s", "bandwidth_hz"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_options_must_be_positive(name, value):
    with pytest.raises(InvalidRobot, match=f"{name} must be positive, got {value}"):
        SimulationOptions(**{name: value})


def test_gravity_must_be_three_numbers():
    with pytest.raises(InvalidRobot, match="gravity_base must be three finite numbers"):
        SimulationOptions(gravity_base=np.zeros(2))


def test_runaway_says_when_and_which_joint(ur10):
    with pytest.raises(
        SimulationFailed, match=r"ur10 ran away at t = 0\.\d+ s: joint '\w+' has the speed"
    ):
        simulate(ur10, Swing(ur10), options=SimulationOptions(bandwidth_hz=2000))


def test_push_on_an_unknown_frame_is_refused(planar):
    with pytest.raises(
        UnknownName, match="cannot act on 'elbow'; planar2r has link1, link2, flange"
    ):
        simulate(planar, Swing(planar), pushes=[Push(0, 1, "elbow", FORCE)])


@pytest.mark.parametrize(("start_s", "duration_s"), [(-0.1, 1), (0, 0), (0, np.nan), (np.inf, 1)])
def test_push_needs_a_time(start_s, duration_s):
    with pytest.raises(InvalidRobot, match="starts at 0 s or later and lasts a positive time"):
        Push(start_s, duration_s, "link1", FORCE)


def test_push_needs_vectors():
    with pytest.raises(InvalidRobot, match="force_world of a push must be three finite numbers"):
        Push(0, 1, "link1", np.zeros(2))
    with pytest.raises(InvalidRobot, match="point of a push must be three finite numbers"):
        Push(0, 1, "link1", FORCE, np.array([0, np.nan, 0]))


@pytest.mark.parametrize("name", ["encoder_step", "torque_std", "wrench_std"])
def test_sensor_errors_are_not_negative(name):
    with pytest.raises(InvalidRobot, match=f"{name} must be finite and not negative"):
        SensorModel(**{name: np.full(6, -0.1)})


def test_wrench_errors_are_six_numbers():
    with pytest.raises(
        InvalidRobot, match=r"wrench_drift has the wrong shape \(3,\): six numbers for a wrench"
    ):
        SensorModel(wrench_drift=np.zeros(3))


@pytest.mark.parametrize("name", ["velocity_window_s", "torque_correlation_s"])
def test_sensor_times_are_not_negative(name):
    with pytest.raises(InvalidRobot, match=f"{name} must not be negative, got -0.1"):
        SensorModel(**{name: -0.1})


def test_torque_side_is_motor_or_link():
    with pytest.raises(InvalidRobot, match="torque_side must be 'motor' or 'link', got 'gear'"):
        SensorModel(torque_side="gear")


@pytest.mark.parametrize("name", ["encoder_step", "torque_std"])
def test_sensors_of_another_robot_are_refused(planar, name):
    with pytest.raises(
        InvalidRobot, match=f"{name} has 3 numbers, the robot 2 joints; give 2 or one for all"
    ):
        simulate(planar, Swing(planar), sensors=SensorModel(**{name: np.full(3, 0.1)}))
