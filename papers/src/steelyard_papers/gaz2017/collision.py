"""gaz2017 Fig. 6: three contacts of an LWR 4+ with 3 kg, with and without the payload known.

The empty arm is identified from the joint torque sensors along one motion, the load is weighed
along another, and along a third, slower one a person pushes at 1, 8 and 17 s. The residual of eq.
(48) is computed with the arm alone and with the arm and its estimated load; a contact is a residual
beyond 6 Nm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard._arrays import Array
from steelyard.control.collision import Detections, Detector, Guard, Observer, Thresholds
from steelyard.identification import DynamicModel, identify
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.robot import RobotModel, load_robot
from steelyard.signals import Preparation, prepare
from steelyard.simulation import Push, SensorModel, Simulation, SimulationOptions, simulate
from steelyard.torque import weigh
from steelyard.trajectory import FourierTrajectory

CONTACTS_S = (1.0, 8.0, 17.0)
"""When the contacts of Fig. 6 begin, [s]."""
LIMIT_NM = 6.0
"""The threshold of the paper, [Nm]."""
_PUSH_DURATION_S = 0.4
_RATE_HZ = 200.0
_OPTIONS = SimulationOptions(step_s=0.0025)
_SENSORS = SensorModel(torque_std=0.1, torque_side="link", wrist_sensor=False)
_LOAD = InertialParameters.from_com(3.0, [0.02, -0.01, 0.09], np.diag([0.012, 0.011, 0.006]))
_CENTRE = np.array([0.0, 0.6, 0.0, 0.8, 0.0, 0.6, 0.0])
_FORCES = ([0.0, 45.0, -20.0], [-40.0, 0.0, -30.0], [25.0, 35.0, -25.0])  # [N], in the base frame


@dataclass(frozen=True, eq=False)
class FigureSix:
    """Contacts that the observer finds, without and with the payload.

    Attributes:
        recording: of the motion with its three contacts
        model: of the empty arm
        payload: as weighed, in the flange frame
        truth: the payload, in the flange frame
        touched: which rows lie in a contact or just after it, (N,)
        ignored: contacts of an observer that does not know the payload
        known: contacts of one that knows the estimate
    """

    recording: Recording
    model: DynamicModel
    payload: Payload
    truth: InertialParameters
    touched: NDArray[np.bool_]
    ignored: Detections
    known: Detections

    def largest_free(self, detections: Detections) -> float:
        """The largest residual of the free motion, [Nm].

        Args:
            detections: one of the two
        """
        return float(np.abs(detections.residuals.residual[~self.touched]).max())

    def delays_s(self, detections: Detections) -> Array:
        """From the start of each contact to its detection, (3,) [s]; infinite if undetected.

        Args:
            detections: one of the two
        """
        found = np.array([contact.detected_s for contact in detections.contacts])
        delays = [found[(found >= t) & (found <= t + _PUSH_DURATION_S)] - t for t in CONTACTS_S]
        return np.array([delay.min(initial=np.inf) for delay in delays])


def figure_six(seed: int = 0) -> FigureSix:
    """The experiment of gaz2017 Fig. 6, simulated.

    Args:
        seed: of motions and noise
    """
    robot = load_robot("lwr4")
    runs = [_excited(robot, load, seed + k) for k, load in enumerate((None, _LOAD))]
    empty, loaded = (prepare(run.recording, Preparation(lowest_speed=0.0)) for run in runs)
    model = identify(robot, empty)
    payload = weigh(model, loaded)
    watched = watched_run(robot, seed)
    answers = []
    for load in (None, payload):
        observer = Observer.of(model, load)
        answers.append(
            Detector(observer, Thresholds.fixed(observer, LIMIT_NM)).detect(watched.recording)
        )
    t = watched.truth.t
    touched = np.zeros(len(t), dtype=bool)
    for start in CONTACTS_S:
        touched |= (t >= start) & (t <= start + _PUSH_DURATION_S + 0.3)
    return FigureSix(watched.recording, model, payload, _LOAD, touched, *answers)


def _excited(robot: RobotModel, load: InertialParameters | None, seed: int) -> Simulation:
    motion = FourierTrajectory.random(
        _CENTRE, reach=[1.2] * 7, speed=[1.5] * 7, period_s=10.0, harmonics=5, seed=seed + 3
    )
    return simulate(
        robot, motion, payload=load, sensors=_SENSORS, rate_hz=_RATE_HZ, seed=seed, options=_OPTIONS
    )


def watched_run(robot: RobotModel, seed: int = 0, guard: Guard | None = None) -> Simulation:
    """The motion with its three pushes.

    Args:
        robot: the arm
        seed: of motion and noise
        guard: that stops the arm where it is touched; by default it goes on
    """
    motion = FourierTrajectory.random(
        _CENTRE, reach=[0.6] * 7, speed=[0.6] * 7, period_s=20.0, harmonics=3, seed=seed + 7
    )
    links = ("link4", robot.flange, "link4")
    pushes = [
        Push(start, _PUSH_DURATION_S, link, np.array(force))
        for start, link, force in zip(CONTACTS_S, links, _FORCES, strict=True)
    ]
    return simulate(
        robot,
        motion,
        payload=_LOAD,
        sensors=_SENSORS,
        rate_hz=_RATE_HZ,
        seed=seed + 20,
        pushes=pushes,
        options=replace(_OPTIONS, guard=guard),
    )
