"""The arm behind a simulated controller: in MuJoCo, or from a recording.

The arm in MuJoCo follows its target as in `simulation`: feed-forward by the model of the arm with
the payload set on the controller and by the friction at the commanded speed, and feedback with
three poles at the bandwidth, which has to bear the actual payload. `target_moment` does not contain
friction. `_motion` makes the targets.

The feed-forward of a wrong payload makes accelerations that were not commanded: the commanded ones
step where a motion ends, and the torque of the step is that of another arm. A payload that is set
enters the feed-forward linearly in time within `Backend.transition_s`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard.errors import InvalidRobot
from steelyard.inertia import InertialParameters
from steelyard.live._controller import ControllerPayload
from steelyard.recording import Recording
from steelyard.robot import DriveModel, RobotModel
from steelyard.simulation import SensorModel
from steelyard.simulation._plant import Plant
from steelyard.twin._motion import MotionTarget

NOMINAL_GAINS = (14.73, 14.33, 11.55, 11.25, 11.5, 11.5)
"""Drive gains of a simulated arm whose description has none, [Nm/A]: those of a UR10 (xu2024)."""

_BANDWIDTH = 2 * np.pi * 10.0  # [rad/s], of the feedback
_CHECKED_POSTURES = 30  # of the MuJoCo model

Outputs = Mapping[str, Sequence[float]]
"""Outputs of the arm, by RTDE's names."""


class Backend(ABC):
    """An arm behind a controller.

    Attributes:
        rate_hz: control steps per second, [Hz]
        robot: the arm; None where only a recording is known
        over: whether the recording has ended
        transition_s: time in which the controller changes over to another payload, [s]
    """

    rate_hz: float
    robot: RobotModel | None
    over: bool
    transition_s: float = 0.0

    @abstractmethod
    def step(
        self, target: MotionTarget | None, payload: ControllerPayload
    ) -> tuple[float, Outputs]:
        """The time of the next step since the start, [s], and the outputs of the arm.

        Args:
            target: commanded motion; None to stay
            payload: the payload set on the controller
        """

    @abstractmethod
    def place(self, q: Array) -> None:
        """Puts the arm at rest into a posture q, (6,) [rad], as a hand would."""


class SimulatedArm(Backend):
    """An arm in MuJoCo that follows commands.

    Args:
        robot: the empty arm; without gains it gets `NOMINAL_GAINS`
        payloads: payload from each time [s] on, in the flange frame; None for an empty flange
        sensors: errors of the sensors
        start: first posture, (6,) [rad]; home by default
        rate_hz: control steps per second, [Hz]
        seed: of the noise
    """

    def __init__(
        self,
        robot: RobotModel,
        payloads: Mapping[float, InertialParameters | None] | None = None,
        *,
        sensors: SensorModel | None = None,
        start: Array | None = None,
        rate_hz: float = 500.0,
        seed: int = 0,
    ) -> None:
        if robot.n != 6:
            raise InvalidRobot(f"a UR arm has 6 joints, {robot.name} has {robot.n}")
        gain = np.array(NOMINAL_GAINS)
        if robot.drive.gain is not None:
            gain = robot.drive.gain
        self.robot = self._arm = robot.with_drive(replace(robot.drive, gain=gain))
        self.rate_hz = rate_hz
        self.over = False
        self._gain = gain
        self._sensors = sensors or SensorModel()
        self._generator = np.random.default_rng(seed)
        self._h = 1 / rate_hz
        self._k = -1
        q = np.array(robot.home if start is None else start, dtype=float)
        self._target = np.array(MotionTarget.at_rest(q))
        self._plants = {
            round(at_s * rate_hz): self._plant(body, q)
            for at_s, body in sorted((payloads or {}).items())
        }
        if 0 in self._plants:
            self._plant_now = self._plants.pop(0)
        else:
            self._plant_now = self._plant(None, q)
        self._payload: ControllerPayload | None = None
        self._model = self._model_before = self._arm
        self._share = 1.0  # of the present model in the feed-forward
        self._inertia = self._plant_now.inertia[0]
        self._rotors = self._inertia - self._plant_now.loaded.mass_matrix(q)
        self._integral = self._steady_integral(ControllerPayload())

    def place(self, q: Array) -> None:
        """See `Backend`."""
        plant = self._plant_now
        plant.rest_at(q)
        self._target = np.array(MotionTarget.at_rest(plant.q))
        self._inertia = plant.loaded.mass_matrix(plant.q) + self._rotors
        self._integral = self._steady_integral(self._payload or ControllerPayload())

    @property
    def acceleration(self) -> Array:
        """Joint accelerations in the last step, without errors of sensors, (6,) [rad/s^2]."""
        return self._plant_now.acceleration

    def _steady_integral(self, payload: ControllerPayload) -> Array:
        """The state of the integrator with which the arm stands still, (6,) [rad/s^2]."""
        rest = np.zeros(6)
        needed = self._plant_now.loaded.torque(self._target[0], rest, rest)
        missing = needed - self._feed_forward(payload) - self._friction_compensation()
        return np.asarray(np.linalg.solve(self._inertia, missing))

    def step(
        self, target: MotionTarget | None, payload: ControllerPayload
    ) -> tuple[float, Outputs]:
        """One control step of the engine; see `Backend`."""
        self._k += 1
        self._change_payload(self._plants.pop(self._k, None))
        if target is not None:
            self._target = np.array(target)
        plant = self._plant_now
        q = plant.q
        v = plant.v
        self._inertia = plant.loaded.mass_matrix(q) + self._rotors
        error = self._target[0] - q
        w = _BANDWIDTH
        acceleration = 3 * w**2 * error + 3 * w * (self._target[1] - v) + self._integral
        self._integral = self._integral + w**3 * self._h * error
        target_tau = self._feed_forward(payload)
        tau = target_tau + self._friction_compensation() + self._inertia @ acceleration
        row = plant.step(tau, ())
        measured = self._sensors.noisy_torque(row.tau[None], self._h, self._generator)[0]
        outputs = {
            "actual_q": self._sensors.encoder(row.q),
            "actual_qd": row.v,
            "actual_current": measured / self._gain,
            "target_q": self._target[0],
            "target_qd": self._target[1],
            "target_qdd": self._target[2],
            "target_moment": target_tau,
            "target_current": target_tau / self._gain,
        }
        return self._k * self._h, {name: signal.tolist() for name, signal in outputs.items()}

    def _change_payload(self, plant: Plant | None) -> None:
        """Goes on with another payload, in the present motion."""
        if plant is not None:
            plant.q = self._plant_now.q
            plant.w = self._plant_now.w
            self._plant_now = plant

    def _feed_forward(self, payload: ControllerPayload) -> Array:
        """Torque of the commanded motion by the controller's model, without friction, (6,) [Nm]."""
        if payload != self._payload:
            self._model_before = self._model
            self._share = 0.0
            self._payload = payload
            self._model = self._model_with(payload)
        self._share = min(self._share + self._h / max(self.transition_s, self._h), 1.0)
        tau = np.asarray(self._model.torque(*self._target))
        if self._share == 1.0:
            return tau
        before = self._model_before.torque(*self._target)
        return np.asarray(self._share * tau + (1 - self._share) * before)

    def _model_with(self, payload: ControllerPayload) -> RobotModel:
        drive = self._arm.drive
        empty = self._arm.with_drive(DriveModel(drive.rotor_inertia, coupling=drive.coupling))
        if not payload.mass:
            return empty
        return empty.with_payload(_body(payload, empty.flange))

    def _friction_compensation(self) -> Array:
        """Friction and offset of the drives at the commanded speed, (6,) [Nm].

        Without it, a joint sticks where its motion reverses until the integrator has built up twice
        its friction, and then catches up with an acceleration that was never commanded.
        """
        drive = self._arm.drive
        friction = drive.friction(drive.transmission.to_drives(self._target[1]))
        return np.asarray(drive.transmission.to_joints(friction))

    def _plant(self, body: InertialParameters | None, q: Array) -> Plant:
        others = q + np.random.default_rng(0).uniform(-1.5, 1.5, (_CHECKED_POSTURES, 6))
        start = np.array([q, np.zeros(6), np.zeros(6)])
        return Plant(self._arm, body, step_s=self._h, postures=np.vstack([q, others]), start=start)


class RecordedArm(Backend):
    """A recorded arm; it follows no command.

    Args:
        recording: with motor currents
        robot: the recorded arm; None where it does not matter
    """

    def __init__(self, recording: Recording, robot: RobotModel | None = None) -> None:
        if recording.n != 6 or recording.current is None:
            raise InvalidRobot(
                "a UR controller sends motor currents of 6 joints;"
                f" {recording.source or 'the recording'} has"
                f" {recording.n} joints and {', '.join(recording.channels)}"
            )
        self.robot = robot
        self.rate_hz = float(round(recording.rate_hz))
        self.over = False
        self._next = 0
        self._t = recording.t
        signals = {
            "actual_q": recording.q,
            "actual_qd": recording.v,
            "actual_current": recording.current,
            "target_q": recording.q_commanded,
            "target_qd": recording.v_commanded,
            "target_qdd": recording.a_commanded,
            "target_current": recording.current_target,
            "target_moment": recording.tau_target,
        }
        self._rows = {
            name: signal.tolist() for name, signal in signals.items() if signal is not None
        }

    def place(self, q: Array) -> None:
        """Does nothing: a recorded arm cannot be moved."""

    def step(
        self, target: MotionTarget | None, payload: ControllerPayload
    ) -> tuple[float, Outputs]:
        """The next row; at the end, the last row again. See `Backend`."""
        k = min(self._next, len(self._t) - 1)
        late_s = (self._next - k) / self.rate_hz
        self._next += 1
        self.over = self._next > len(self._t)
        return float(self._t[k]) + late_s, {name: rows[k] for name, rows in self._rows.items()}


def _body(payload: ControllerPayload, frame: str) -> InertialParameters:
    com = np.array(payload.cog)
    return InertialParameters.from_com(payload.mass, com, payload.inertia_matrix, frame)
