"""Accelerations at every control step of the simulated arm, on its path and while it brakes.

The controller runs without sockets and without a clock, so that every run is the same. It has the
payload that the arm carries: with another one the arm makes accelerations of its own.
"""

from dataclasses import replace

import numpy as np
import pytest

from live_helpers import START, swing
from steelyard.inertia import InertialParameters
from steelyard.live._controller import ControllerPayload, PathCommand
from steelyard.live._motion import _DEFAULT_ACCELERATION, _approached, _sampled, braking_time_s
from steelyard.live._ur_programs import STOP_PROGRAM, motion_program, payload_program, register_beat
from steelyard.robot import load_robot
from steelyard.twin._backend import NOMINAL_GAINS, SimulatedArm
from steelyard.twin._controller import SimulatedController

RATE_HZ = 500.0
REGISTER = 47
REST = 0.01  # [rad/s]


@pytest.fixture(scope="module")
def arm():
    robot = load_robot("ur10e")
    return robot.with_drive(
        replace(robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6))
    )


@pytest.fixture(scope="module")
def controller(arm):
    return SimulatedController(SimulatedArm(arm, start=START))


@pytest.fixture(scope="module")
def loaded(arm):
    """A controller that knows the payload of its arm."""
    body = InertialParameters.from_com(9.0, np.array([0, 0, 0.1]), 0.05 * np.eye(3), arm.flange)
    return SimulatedController(SimulatedArm(arm, {0.0: body}, start=START))


KNOWN = ControllerPayload(9.0, (0, 0, 0.1), (0.05, 0.05, 0.05, 0, 0, 0))


class Steps:
    """Commanded and simulated motion at every control step of a run."""

    def __init__(self, controller, program):
        controller.stop_program()
        controller.place(START)
        controller.run(program)
        self._controller = controller
        self._rows = []

    def beat(self, number):
        self._controller.receive_inputs({f"input_int_register_{REGISTER}": number})

    def step(self):
        self._controller.step()
        out = self._controller.outputs
        self._rows.append(
            (
                out["target_qd"],
                out["actual_qd"],
                out["target_qdd"],
                self._controller.backend.acceleration,
            )
        )

    def __getattr__(self, name):
        places = {"target_v": 0, "v": 1, "commanded": 2, "a": 3}
        return np.array([row[places[name]] for row in self._rows])


def path_of(arm, seed):
    whole = _approached(swing(seed), START, periods=1)
    braking_s = braking_time_s(arm, whole, rate_hz=RATE_HZ)
    return PathCommand(_sampled(whole, RATE_HZ / 5), RATE_HZ, 5, braking_s)


def moved(controller, path, *, steps, last_beat=None):
    """A run that is stopped after `steps`: by the number `last_beat`, or by silence without one."""
    run = Steps(controller, motion_program(path, register_beat(REGISTER), number=1))
    for k in range(steps):
        run.beat(1 + k // 4)
        run.step()
    for _ in range(int(RATE_HZ)):
        if last_beat is not None:
            run.beat(last_beat)
        run.step()
    return run


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [294, 361])
def test_the_simulated_arm_follows_its_target_through_reversals(arm, controller, seed):
    path = path_of(arm, seed)
    run = moved(controller, path, steps=round((len(path.q) + 20) * path.steps_per_point))
    assert np.abs(run.commanded).max() > 4.0
    assert np.abs(run.target_v - run.v).max() < 0.02
    assert np.abs(run.a).max() < np.abs(run.commanded).max() + 1.5


@pytest.mark.thorough
@pytest.mark.parametrize("last_beat", [-1, None])
@pytest.mark.parametrize(("seed", "share"), [(571, 0.5), (268, 0.25)])
def test_an_arm_that_brakes_keeps_its_acceleration(arm, controller, seed, share, last_beat):
    path = path_of(arm, seed)
    steps = round(share * len(path.q) * path.steps_per_point)
    run = moved(controller, path, steps=steps, last_beat=last_beat)
    assert np.abs(run.v[steps]).max() > 0.3
    moving = np.flatnonzero(np.abs(run.v).max(axis=1) > REST)
    rest_s = (moving[-1] - steps) / RATE_HZ
    if last_beat is None:
        assert rest_s < 0.5
    else:  # the program does not wait until the silence is long enough
        assert rest_s < path.braking_s + 0.15
    assert np.abs(run.commanded[steps:]).max() <= _DEFAULT_ACCELERATION
    assert np.abs(run.a[steps:]).max() <= 1.2 * _DEFAULT_ACCELERATION


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["stop", "reboot", "protective-stop", "busy"])
@pytest.mark.parametrize(("seed", "share"), [(571, 0.5), (268, 0.25)])
def test_an_arm_that_its_controller_stops_keeps_its_acceleration(arm, loaded, seed, share, how):
    loaded.fault("normal")
    loaded.set_payload(KNOWN)
    loaded.step()
    path = path_of(arm, seed)
    steps = round(share * len(path.q) * path.steps_per_point)
    run = Steps(loaded, motion_program(path, register_beat(REGISTER), number=1))
    for k in range(steps):
        run.beat(1 + k // 4)
        run.step()
    if how == "stop":
        loaded.run(STOP_PROGRAM)
    else:
        loaded.fault(how)
    for _ in range(int(RATE_HZ / 2)):
        run.step()
    assert np.abs(run.v[steps]).max() > 0.3
    assert np.abs(run.v[-1]).max() < REST
    assert np.abs(run.a[steps:]).max() <= 1.2 * _DEFAULT_ACCELERATION


def test_a_payload_that_is_set_gradually_does_not_jerk_the_arm(controller):
    largest = []
    for transition_s in (0.0, 0.5):
        controller.set_payload(ControllerPayload())
        controller.step()
        run = Steps(controller, payload_program(KNOWN, transition_s=transition_s))
        for _ in range(int(RATE_HZ / 2)):
            run.step()
        assert controller.payload == KNOWN
        largest.append(np.abs(run.a).max())
    controller.set_payload(ControllerPayload())
    assert largest[0] > 5.0
    assert largest[1] < 0.1 * largest[0]
