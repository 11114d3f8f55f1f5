"""The reaction to a contact: on the path, with continuous acceleration, until rest."""

import numpy as np
import pytest

from steelyard.control.collision import Contact, Detector, Guard, Observer, Reaction, Thresholds
from steelyard.errors import InvalidSamples
from steelyard.robot import load_robot
from steelyard.simulation import Push, SensorModel, SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory

TOUCH = Contact(1.0, 1.0, 1.1, "j1", 1, 9.0, 1.5, ("j1",), "link1")
H = 1e-3


def paces(reaction, touched, until_s=8.0, **rest):
    """The pace at every millisecond; `touched` are spans in which there is a contact."""
    pace, found = reaction.init(), []
    for t in np.arange(1, round(until_s / H)) * H:
        contact = TOUCH if any(a <= t < b for a, b in touched) else None
        pace = reaction.step(pace, t, contact, **rest)
        found.append(pace)
    return found


@pytest.mark.parametrize(
    "touched", [[(1.0, 1.3)], [(1.0, 1.1), (4.0, 4.1)], [(1.0, 1.05), (1.1, 1.4), (3.9, 4.0)]]
)
def test_the_pace_is_smooth_and_its_integral_is_the_path(touched):
    s, rate, slope = (
        np.array(x) for x in zip(*(p[1:4] for p in paces(Reaction(), touched)), strict=True)
    )
    np.testing.assert_allclose(np.diff(s) / H, (rate[1:] + rate[:-1]) / 2, atol=1e-4)
    np.testing.assert_allclose(np.diff(rate) / H, (slope[1:] + slope[:-1]) / 2, atol=0.05)
    assert (
        np.abs(np.diff(slope)).max() < 6 * 1.5 / 0.2**2 * H
    )  # continuous: no jump beyond its own slope
    assert (rate >= -1e-9).all()
    assert rate[-1] == 1.0


def test_it_rests_as_long_as_the_contact_and_two_seconds_more():
    found = paces(Reaction(), [(1.0, 1.7)])
    resting = [p.t for p in found if p.rate == 0.0]
    assert resting[0] == pytest.approx(1.2, abs=2 * H)
    assert resting[-1] == pytest.approx(3.7, abs=2 * H)
    assert found[-1].s == pytest.approx(8.0 - H - 2.5 - 0.1 - 0.5, abs=0.01)


def test_who_is_asked_may_keep_it_standing():
    assert paces(Reaction(), [(1.0, 1.1)], rest_s=np.inf)[-1].phase == "resting"


@pytest.mark.parametrize("wrong", [{"stop_s": 0.0}, {"resume_s": np.inf}, {"rest_s": -1.0}])
def test_reactions_that_are_none_are_refused(wrong):
    with pytest.raises(InvalidSamples, match="stop_s"):
        Reaction(**wrong)


class Seen(Guard):
    """A guard that keeps what sensors showed it."""

    def __init__(self, *args):
        super().__init__(*args)
        self.rows = []

    def look(self, t, q, v, tau):
        self.rows.append((t, q, v, tau))
        super().look(t, q, v, tau)


@pytest.fixture(scope="module")
def touched():
    robot = load_robot("planar2r")
    motion = FourierTrajectory.random(
        np.zeros(2), reach=[0.8] * 2, speed=[1.0] * 2, period_s=4.0, harmonics=2, seed=1
    )
    observer = Observer.of(robot)
    asked = []
    reaction = Reaction(rest_s=0.5, on_contact=lambda contact: asked.append(contact) or 1.0)
    guard = Seen(Detector(observer, Thresholds.fixed(observer, 4.0)), reaction)
    push = Push(1.0, 0.2, robot.flange, np.array([0.0, 25.0, 0.0]))
    options = SimulationOptions(step_s=0.002, guard=guard)
    sensors = SensorModel(torque_std=0.02, wrist_sensor=False)
    run = simulate(
        robot, motion, sensors=sensors, rate_hz=125.0, seed=3, pushes=[push], options=options
    )
    return motion, guard, run, asked


def test_a_simulated_arm_stops_where_it_is_touched_and_goes_on_to_the_end(touched):
    motion, guard, run, asked = touched
    assert asked == guard.contacts
    assert len(asked) == 1
    assert 1.0 < asked[0].detected_s < 1.15
    recording = run.recording
    rests = recording.t[np.abs(recording.v_commanded).max(axis=1) == 0.0]
    assert np.ptp(rests[rests > 1.0]) == pytest.approx(1.0, abs=0.3)
    np.testing.assert_allclose(
        recording.q_commanded[-1], motion.at(np.array([4.0]))[0][0], atol=0.02
    )
    assert 5.0 < recording.duration_s < 7.0


def test_the_command_of_a_guarded_run_has_a_continuous_acceleration(touched):
    _, _, run, _ = touched
    recording = run.recording
    step = recording.t[1]
    v, a = recording.v_commanded, recording.a_commanded
    np.testing.assert_allclose(np.diff(v, axis=0) / step, (a[1:] + a[:-1]) / 2, atol=0.1)
    assert np.abs(np.diff(a, axis=0)).max() < 1.5


def test_a_guard_sees_what_the_recording_holds(touched):
    _, guard, run, _ = touched
    t, q, v, tau = (np.array(x) for x in zip(*guard.rows, strict=True))
    np.testing.assert_array_equal(t, run.recording.t)
    np.testing.assert_array_equal(q, run.recording.q)
    np.testing.assert_allclose(v, run.recording.v, atol=1e-12)
    np.testing.assert_allclose(tau, run.recording.tau, atol=1e-12)
