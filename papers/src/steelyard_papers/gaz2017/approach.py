"""Approaches to postures: the last part of the way and the rest, for many arms at once.

Each posture is reached twice in MuJoCo: along the way from the posture before it, and from the
other side. The last 0.05 rad of each joint take 0.3 s; then the arm rests for 0.3 s, and the mean
of its last tenth of a second counts. Controller and leapfrog are those of `steelyard.simulation`,
for which one arm after the other would take minutes:

    v_k = w_k + h/2 a_{k-1},   tau_k = tau_model + M (3 w0 e' + 3 w0^2 e + w0^3 integral e)
    w_{k+1} = w_k + h a_k,     M a_k = tau_k - bias(q_k, v_k) - F_k

MuJoCo gives bias at every step and M every fourth. Friction F = Fc sign(u) + Fv u of each drive is
found with the speed u after the step (implicit Euler), joint after joint until nothing changes: a
drive whose torque without friction is below Fc sticks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array
from steelyard.inertia import InertialParameters
from steelyard.robot import DriveModel, RobotModel
from steelyard.simulation._arm import ForwardDynamics
from steelyard_papers.visit import Visit

_APPROACH_DISTANCE = 0.05  # [rad], between start and posture
_STEP_S = 0.0025
_MOVE_S = _REST_S = 0.3
_AVERAGED_S = 0.1  # at the end of each rest
_STEPS_PER_INERTIA_UPDATE = 4
_BANDWIDTH = 2 * np.pi * 10.0  # as `SimulationOptions`, [rad/s]
_MAX_SWEEPS = 50
_TOLERANCE = 1e-10  # smaller changes end the iteration


@dataclass(frozen=True, eq=False)
class Held:
    """Postures, and the torques that hold an arm there.

    Attributes:
        q: (N, n) [rad]
        tau: behind the gears, (N, n) [Nm]
    """

    q: Array
    tau: Array


@dataclass(frozen=True, eq=False)
class Reached:
    """Torques of an arm in postures that it moved to.

    Attributes:
        q: where it came to rest, along the way and from the other side, (2, N, n) [rad]
        link: torque behind the gears, (2, N, n) [Nm]
        motor: torque of the drives, (2, N, n) [Nm]
        speed: largest remaining speed of a joint, [rad/s]
        swing: largest change of a link torque during averaging, [Nm]
    """

    q: Array
    link: Array
    motor: Array
    speed: float
    swing: float

    @property
    def both(self) -> Held:
        """The mean of both sides, behind the gears."""
        return Held(self.q.mean(axis=0), self.link.mean(axis=0))


def come_to_rest(robot: RobotModel, payload: InertialParameters | None, postures: Array) -> Reached:
    """The arm in postures that it moved to, from both sides.

    Args:
        robot: the empty arm, its drives without coupling, with Coulomb and viscous friction alone
        payload: in the flange frame; None for none
        postures: one after the other, (N, n) [rad]
    """
    way = np.sign(np.diff(postures, axis=0, prepend=0 * postures[:1]))
    ends = np.concatenate([postures, postures])
    starts = ends - _APPROACH_DISTANCE * np.concatenate([way, -way])
    arms = _Arms(robot, payload, starts)
    path = Visit(np.array([[0.0], [1.0]]), rest_s=_REST_S, move_s=_MOVE_S)
    t = _REST_S + np.arange(0.0, _MOVE_S + _REST_S + _STEP_S / 2, _STEP_S)
    rows = [
        arms.step(starts + s * (ends - starts), rate * (ends - starts), slope * (ends - starts))
        for s, rate, slope in zip(*path.at(t), strict=True)
    ]
    last = rows[-round(_AVERAGED_S / _STEP_S) :]
    q, v, link, motor = (np.array([row[i] for row in last]) for i in range(4))
    sides = (2, *postures.shape)
    q_mean, link_mean, motor_mean = (x.mean(axis=0).reshape(sides) for x in (q, link, motor))
    return Reached(
        q_mean, link_mean, motor_mean, float(np.abs(v).max()), float(np.ptp(link, axis=0).max())
    )


class _Arms:
    """Arms of one kind at rest in postures (K, n), whose controllers hold them."""

    def __init__(self, robot: RobotModel, payload: InertialParameters | None, q: Array) -> None:
        self._drive, self._mujoco = robot.drive, ForwardDynamics(robot, payload)
        self._known = robot.with_drive(DriveModel(robot.drive.rotor_inertia))
        self._q = q
        self._w = 0 * q
        self._a = 0 * q
        self._friction = 0 * q
        self._count = 0
        self._mobility = np.empty((*q.shape, q.shape[1]))
        held = self._bias(q, 0 * q, refresh=True) - self._known.torque(q, 0 * q, 0 * q)
        self._integral = _times(self._mobility, held)

    def _bias(self, q: Array, v: Array, *, refresh: bool) -> Array:
        """Gravity and Coriolis torque, (K, n) [Nm]; mass matrices too, where they are due."""
        bias = np.empty_like(q)
        for k in range(len(q)):
            self._mujoco.move_to(q[k], v[k])
            bias[k] = self._mujoco.data.qfrc_bias
            if refresh:
                self._mobility[k] = self._mujoco.mobility(np.eye(q.shape[1]))
        if refresh:
            self._inertia = np.linalg.inv(self._mobility)
        return bias

    def step(self, q_c: Array, v_c: Array, a_c: Array) -> tuple[Array, Array, Array, Array]:
        """Position, speed, torque behind the gears and of the motors, (K, n), for a command."""
        h = _STEP_S
        q = self._q
        v = self._w + _STEP_S / 2 * self._a
        bias = self._bias(q, v, refresh=self._count % _STEPS_PER_INERTIA_UPDATE == 0)
        self._count += 1
        w0 = _BANDWIDTH
        error = q_c - q
        pull = 3 * w0**2 * error + 3 * w0 * (v_c - v) + self._integral
        self._integral = self._integral + w0**3 * h * error
        tau = self._known.torque(q_c, v_c, a_c) + _times(self._inertia, pull)
        self._friction = self._found_friction(self._w + h * _times(self._mobility, tau - bias))
        self._a = _times(self._mobility, tau - bias - self._friction)
        self._w = self._w + h * self._a
        self._q = q + h * self._w
        return q, v, tau - self._drive.rotor_inertia * self._a - self._friction, tau

    def _found_friction(self, free: Array) -> Array:
        """Friction for the speed after a step, (K, n) [Nm]; `free`: the speed without it."""
        F = self._friction.copy()
        A = _STEP_S * self._mobility
        for _ in range(_MAX_SWEEPS):
            change = 0.0
            for j, (dry, wet) in enumerate(
                zip(self._drive.coulomb, self._drive.viscous, strict=True)
            ):
                c = A[:, j, j]
                alone = free[:, j] - np.einsum("kj,kj->k", A[:, j], F) + c * F[:, j]
                speed = np.sign(alone) * np.maximum(np.abs(alone) - c * dry, 0.0) / (1 + c * wet)
                value = (alone - speed) / c
                change = max(change, float(np.abs(c * (value - F[:, j])).max()))
                F[:, j] = value
            if change < _TOLERANCE:
                break
        return F


def _times(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.einsum("kij,kj->ki", matrices, vectors))
