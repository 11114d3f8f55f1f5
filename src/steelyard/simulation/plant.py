"""Arm and drives from step to step.

The state of a step k of h seconds is the position q_k and the velocity w_k half a step earlier (leapfrog):

    v_k = w_k + h/2 a_{k-1}        a_k = arm(q_k, v_k, tau_k)
    w_{k+1} = w_k + h a_k          q_{k+1} = q_k + h w_{k+1}

so that q, v, a and tau belong to one instant, to second order in h, and

    tau_k = M a_k + bias(q_k, v_k) + friction_k - external_k

holds to rounding. In MuJoCo's own Euler step v_k = w_k: every velocity would be half a step late, which looks
like a rotor inertia of -Fv h/2. Load-dependent friction takes the load extrapolated from the last two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.arrays import Array
from steelyard.inertia import InertialParameters
from steelyard.robot import RobotModel
from steelyard.simulation.arm import Arm, BodyPush, mixing
from steelyard.simulation.control import Motion, Servo, inertia_along
from steelyard.simulation.friction import Friction


class Instant(NamedTuple):
    """One instant, (n,) each, or N of them, (N, n) each; `Truth` tells what they mean."""

    q: Array
    v: Array
    a: Array
    tau: Array
    tau_link: Array
    friction: Array
    external: Array
    wrench: Array


class Plant:
    """An arm with its drives that starts on a commanded motion.

    Args:
        robot: the empty arm
        payload: at the flange, in the flange frame
        gravity_base: where things fall, (3,) [m/s^2], in the base frame
        motion: commanded, at every step
    """

    def __init__(
        self, robot: RobotModel, payload: InertialParameters, *, gravity_base: Array, motion: Motion
    ) -> None:
        self.robot, self.motion = robot, motion
        self.arm = Arm(robot, payload, gravity_base)
        self._h = motion.step_s
        self._loaded = robot.with_payload(payload).with_gravity(gravity_base)
        self._inertia = inertia_along(self._loaded, motion)
        self._U = U = mixing(robot.drive)
        self._rotors = U.T @ np.diag(robot.drive.rotor_inertia) @ U
        mobility = np.einsum("ij,gjk,ik->gi", U, np.linalg.inv(self._inertia), U).max(axis=0)
        self._friction = Friction(robot.drive, step_s=self._h, mobility=mobility)
        self.q, self._a = motion.q[0], motion.a[0]
        self.w = motion.v[0] - self._h / 2 * self._a
        link = self._loaded.inverse_dynamics(motion.q[0], motion.v[0], motion.a[0])
        self._drive_of_joint = np.linalg.inv(U.T)
        self._load = self._load_before = self._drive_of_joint @ link
        self._f = np.zeros(robot.n)

    @property
    def v(self) -> Array:
        """Velocity at the present instant, (n,) [rad/s or m/s]."""
        return np.asarray(self.w + self._h / 2 * self._a)

    def servo(self, bandwidth_hz: float) -> Servo:
        """The controller that starts where it holds this plant on its motion.

        Args:
            bandwidth_hz: of its feedback, [Hz]
        """
        first = (signal[0] for signal in (self.motion.q, self.motion.v, self.motion.a))
        start = self._loaded.torque(*first)
        return Servo(self.robot, self.motion, bandwidth_hz=bandwidth_hz, inertia=self._inertia, start=start)

    def step(self, tau: Array, pushes: Sequence[BodyPush]) -> Instant:
        """Goes one step on and tells the instant at its beginning.

        Args:
            tau: torque that the drives apply, (n,) [Nm or N]
            pushes: those that act now
        """
        q, v, U = self.q, self.v, self._U
        external = self.arm.move_to(q, v, pushes)
        load = 2 * self._load - self._load_before
        f, stiff = self._friction.while_turning(U @ v, load)
        a = self.arm.acceleration(tau - f @ U)
        if stiff:
            u_free = U @ (self.w + self._h * a)
            last = self._f - self.robot.drive.offset
            f = f + self._friction.of_stiff(
                stiff, u_free, mobility=self.arm.mobility(U), load=load, last=last
            )
            a = self.arm.acceleration(tau - f @ U)
        tau_link = tau - self._rotors @ a - f @ U
        self._a, self._f = a, f
        self._load, self._load_before = self._drive_of_joint @ tau_link, self._load
        self.w = self.w + self._h * a
        self.q = q + self._h * self.w
        return Instant(q, v, a, tau, tau_link, f @ U, external, self.arm.wrench)
