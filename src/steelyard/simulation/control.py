"""The controller of the simulated arm: what it wants, and the torques that it asks for.

The drives get a feed-forward torque from the model of the empty, frictionless arm along the commanded motion,
and feedback on the position error e, its derivative and its integral,

    tau = tau_model(q_c, v_c, a_c) + M (3 w e' + 3 w^2 e + w^3 integral e),   w = 2 pi bandwidth

with all three poles at -w. Payload, friction, offset and a tilted base are unknown to the feed-forward; the
feedback has to bear them, so the arm follows with small errors, as real ones do. Only M is that of the loaded
arm: gains are tuned to the inertia that a drive really moves. The integral starts where it holds the arm on
the trajectory, as if it had been there before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidTrajectory
from steelyard.robot import DriveModel, RobotModel

_INERTIA_EVERY_S = 0.01


class Trajectory(Protocol):
    """A motion that can be evaluated at any time."""

    @property
    def duration_s(self) -> float:
        """How long it lasts, [s]."""

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of the joints, each (N, n) [rad or m, per s, per s^2].

        Args:
            t: times, (N,) [s]
        """


@dataclass(frozen=True, eq=False)
class Motion:
    """A commanded motion at every step.

    Attributes:
        t: time, (K,) [s]
        q: position, (K, n) [rad or m]
        v: velocity, (K, n) [rad/s or m/s]
        a: acceleration, (K, n) [rad/s^2 or m/s^2]
    """

    t: Array
    q: Array
    v: Array
    a: Array

    @property
    def step_s(self) -> float:
        """Time between two steps, [s]."""
        return float(self.t[1] - self.t[0])


def commanded(trajectory: Trajectory, t: Array, n: int) -> Motion:
    """The trajectory at given times, checked.

    Args:
        trajectory: to follow
        t: times, (K,) [s]
        n: number of joints of the robot
    """
    signals = tuple(np.asarray(signal, dtype=float) for signal in trajectory.at(t))
    if [signal.shape for signal in signals] != [(len(t), n)] * 3:
        raise InvalidTrajectory(
            f"the robot has {n} joints: trajectory.at(t) must give q, v and a of shape {(len(t), n)},"
            f" got {', '.join(str(signal.shape) for signal in signals)}"
        )
    if not all(np.isfinite(signal).all() for signal in signals):
        raise InvalidTrajectory("trajectory.at(t) gave numbers that are not finite")
    return Motion(t, *signals)


def inertia_along(robot: RobotModel, motion: Motion) -> Array:
    """The mass matrix with rotors every 10 ms of a motion, (G, n, n) [kg m^2].

    Args:
        robot: with its payload
        motion: commanded, at every step
    """
    U = robot.drive.transmission.matrix
    rotors = U.T @ np.diag(robot.drive.rotor_inertia) @ U
    return np.array([robot.mass_matrix(q) + rotors for q in motion.q[:: _stride(motion)]])


def _stride(motion: Motion) -> int:
    return max(1, round(_INERTIA_EVERY_S / motion.step_s))


class Servo:
    """The controller over steps of constant length.

    Args:
        robot: the arm as the controller knows it: empty
        motion: commanded, at every step
        bandwidth_hz: of the feedback, [Hz]
        inertia: mass matrices of `inertia_along`, (G, n, n) [kg m^2]
        start: torque that the arm really needs at the first step, (n,) [Nm or N]
    """

    def __init__(
        self, robot: RobotModel, motion: Motion, *, bandwidth_hz: float, inertia: Array, start: Array
    ) -> None:
        drive = DriveModel(robot.drive.rotor_inertia, coupling=robot.drive.coupling)
        w = 2 * np.pi * bandwidth_hz
        self._motion, self._inertia = motion, inertia
        self._feedforward = robot.with_drive(drive).torque(motion.q, motion.v, motion.a)
        self._damping, self._stiffness, self._integration = 3 * w, 3 * w**2, w**3 * motion.step_s
        self._integral = np.linalg.solve(inertia[0], start - self._feedforward[0])
        self._stride = _stride(motion)

    def torque(self, k: int, q: Array, v: Array) -> Array:
        """The torque for step k, (n,) [Nm or N]; to be asked once for each step.

        Args:
            k: number of the step
            q: positions, (n,) [rad or m]
            v: velocities, (n,) [rad/s or m/s]
        """
        motion = self._motion
        error = motion.q[k] - q
        wanted = self._stiffness * error + self._damping * (motion.v[k] - v) + self._integral
        self._integral = self._integral + self._integration * error
        return np.asarray(self._feedforward[k] + self._inertia[k // self._stride] @ wanted)
