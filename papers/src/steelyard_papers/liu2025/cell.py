"""Faults of real cells beside noise: sensor crosstalk, scale, stiction, joints, soft base.

Each seed draws its own cell. With the true wrench w of load on sensor the sensor shows

    w_m = (1 + S + X) w + h + drift + noise

S errors of its scales, X its cross-talk between axes, each entry in units of full scales; h its
hysteresis, a backlash of a share of the full scale. The controller's joint angles are off by
constant errors, which turns the sensor frame, and the base leans by a small rotation in proportion
to the moment that the load exerts on it, weight and inertia alike, which turns gravity. All sizes
are assumed: a data sheet's 1 % of scale, half of it for cross-talk, 0.1 % of hysteresis, joints to
0.02 degrees (the paper's arm was calibrated), and a base on an automatic vehicle that leans by 0.1
degrees for 100 Nm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard._arrays import Array
from steelyard.robot import RobotModel
from steelyard.simulation import Truth

FULL_SCALE = np.array([2500.0, 2500.0, 6250.0, 400.0, 400.0, 400.0])
"""Of the ATI Omega160, [N, Nm]."""


@dataclass(frozen=True)
class Faults:
    """Sizes of the faults of a cell, as standard deviations over cells.

    Attributes:
        name: in words
        scale: of each axis
        cross_talk: between two axes, in full scales
        hysteresis: of each axis, over its full scale
        joint_error: constant, of each joint, [rad]
        compliance: lean of the base for a moment on it, [rad/Nm]
    """

    name: str = "noise and drift only"
    scale: float = 0.0
    cross_talk: float = 0.0
    hysteresis: float = 0.0
    joint_error: float = 0.0
    compliance: float = 0.0

    def scaled(self, size: float, name: str) -> Faults:
        """The same faults, larger or smaller.

        Args:
            size: factor of all of them
            name: in words
        """
        return Faults(
            name,
            size * self.scale,
            size * self.cross_talk,
            size * self.hysteresis,
            size * self.joint_error,
            size * self.compliance,
        )

    def cell(self, rng: np.random.Generator) -> Cell:
        """One cell.

        Args:
            rng: random numbers
        """
        mix = rng.normal(size=(6, 6)) * self.cross_talk
        np.fill_diagonal(mix, rng.normal(size=6) * self.scale)
        mix = mix * FULL_SCALE[:, None] / FULL_SCALE
        joints = rng.normal(size=6) * self.joint_error
        return Cell(np.eye(6) + mix, self.hysteresis * FULL_SCALE, joints, self.compliance)


PERFECT = Faults()
SENSOR_ONLY = Faults("sensor: scales, cross-talk, hysteresis", 0.01, 0.005, 0.001)
JOINTS_ONLY = Faults("joint errors of 0.02°", joint_error=np.radians(0.02))
BASE_ONLY = Faults("a base that leans", compliance=np.radians(0.1) / 100)
REAL = Faults("all of them", 0.01, 0.005, 0.001, np.radians(0.02), np.radians(0.1) / 100)
SLIGHT = REAL.scaled(0.03, "3 % of all of them")


@dataclass(frozen=True, eq=False)
class Cell:
    """One sensor, one arm, one base.

    Attributes:
        mix: matrix from the true wrench to the reading, (6, 6)
        backlash: width of its hysteresis, (6,) [N, Nm]
        joint_error: of the joint angles that the controller knows, (6,) [rad]
        compliance: lean of the base for a moment on it, [rad/Nm]
    """

    mix: Array
    backlash: Array
    joint_error: Array
    compliance: float

    def wrench(self, robot: RobotModel, truth: Truth) -> Array:
        """Readings of the sensor before drift and noise, (N, 6) [N, Nm].

        Args:
            robot: the arm
            truth: of the run on a stiff base
        """
        return np.asarray(_played(self._leaning(robot, truth) @ self.mix.T, self.backlash))

    def _leaning(self, robot: RobotModel, truth: Truth) -> Array:
        """The wrench where gravity turns against the base as the load pulls it over."""
        if not self.compliance:
            return truth.wrench
        T = robot.forward_kinematics(truth.q)
        R = T[:, :3, :3]
        p = T[:, :3, 3]
        force, moment = (
            np.einsum("nij,nj->ni", R, part) for part in np.split(truth.wrench, 2, axis=1)
        )
        lean = self.compliance * (moment + np.cross(p, force))
        lean = lean - lean.mean(axis=0)  # the mean is a tilt like any other
        g = np.einsum(
            "nji,nj->ni", R, np.cross(truth.gravity_base, lean)
        )  # as the leaning base sees it
        load = truth.payload
        change = np.hstack([load.mass * g, np.cross(load.mass * load.com, g)])
        return np.asarray(truth.wrench + change)


def _played(x: Array, width: Array) -> Array:
    """A backlash: the output follows once the input has moved by half the width, (N, 6)."""
    if not width.any():
        return x
    out = np.empty_like(x)
    now = x[0].copy()
    half = width / 2
    for k, value in enumerate(x):
        now = np.clip(now, value - half, value + half)
        out[k] = now
    return out
