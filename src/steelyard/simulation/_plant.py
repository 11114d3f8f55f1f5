"""Arm and drives from step to step.

The state of a step k of h seconds is the position q_k and the velocity w_k half a step earlier
(leapfrog):

    v_k = w_k + h/2 a_{k-1}        a_k = arm(q_k, v_k, tau_k)
    w_{k+1} = w_k + h a_k          q_{k+1} = q_k + h w_{k+1}

so that q, v, a and tau belong to one instant, to second order in h, and

    tau_k = M a_k + bias(q_k, v_k) + friction_k - external_k

holds to rounding. In MuJoCo's own Euler step v_k = w_k: every velocity would be half a step late,
which looks like a rotor inertia of -Fv h/2. Load-dependent friction takes the load extrapolated
from the last two steps.

Friction is exact while a drive turns, and holds it when it stands. For the speeds u of the drives
it is an odd, set-valued law: f(u) = DriveModel.friction(u) - B for u != 0, and any value in
[-f(0+), f(0+)] at rest. Where a drive turns fast enough, so that friction takes less than half of
its speed in a step of h seconds, f(u) at the present speed is applied: the torque law then holds
exactly. Slower drives are stiff. For them the speed after the step is found together with the
friction,

    u' + h A F = u_free,   F in f(u'),   A = U M^-1 U'                              (implicit Euler)

where u_free is the speed after a step without their friction. One drive alone is a monotone scalar
equation, u' + c f(u') = b: with f tabulated over the speed it is solved by interpolation, and b < c
f(0+) gives u' = 0, F = b / c: the drive sticks. Several slow drives are solved in turn
(Gauss-Seidel) from the last friction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import copysign
from operator import mul
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.inertia import InertialParameters
from steelyard.robot import DriveModel, RobotModel
from steelyard.simulation._arm import Arm, BodyPush

_STIFF_SHARE = 0.5
_SWEEPS = 50
_TOLERANCE = 1e-10
_REST = 1e-12
_SPEEDS = np.concatenate([[_REST], np.geomspace(1e-6, 1e4, 401)])
_TABLE: list[float] = (_SPEEDS - _REST).tolist()


class Instant(NamedTuple):
    """One instant, (n,) each, or N of them, (N, n) each; see `Truth`."""

    q: Array
    v: Array
    a: Array
    tau: Array
    tau_link: Array
    friction: Array
    external: Array
    wrench: Array


class Plant:
    """An arm with its drives: where it is now, and what a torque makes of it.

    Args:
        robot: the empty arm with its true drives and gravity
        payload: at the flange, in the flange frame; None for none
        step_s: length of a step, [s]
        postures: that the arm will come near to, (G, n) [rad or m]; they say how light its drives
            may feel
        start: position, velocity and acceleration to start with, (3, n)
    """

    def __init__(
        self,
        robot: RobotModel,
        payload: InertialParameters | None,
        *,
        step_s: float,
        postures: Array,
        start: Array,
    ) -> None:
        self.robot = robot
        self._h = step_s
        self.arm = Arm(robot, payload)
        self.loaded = robot.with_payload(self.arm.payload)
        U = robot.drive.transmission.matrix
        self.rotors = U.T @ np.diag(robot.drive.rotor_inertia) @ U
        self.inertia = np.array([self.loaded.mass_matrix(q) + self.rotors for q in postures])
        mobility = np.einsum("ij,gjk,ik->gi", U, np.linalg.inv(self.inertia), U).max(axis=0)
        self._friction = _Friction(robot.drive, step_s=self._h, mobility=mobility)
        self.q, v, self._a = start
        self.w = v - self._h / 2 * self._a
        link = self.loaded.inverse_dynamics(*start)
        self._load = self._load_before = robot.drive.transmission.load(link)
        self._f = np.zeros(robot.n)

    @property
    def v(self) -> Array:
        """Velocity at the present instant, (n,) [rad/s or m/s]."""
        return np.asarray(self.w + self._h / 2 * self._a)

    def runaway(self, limit: float) -> str:
        """Which joint is faster than a limit [rad/s or m/s], in words; empty while none is."""
        if np.abs(self.w).max() < limit:
            return ""
        j = int(np.argmax(np.nan_to_num(np.abs(self.w), nan=np.inf)))
        return f"joint '{self.robot.joint_names[j]}' has the speed {self.w[j]:.3g}"

    def step(self, tau: Array, pushes: Sequence[BodyPush]) -> Instant:
        """Goes one step on with torques tau of the drives, (n,) [Nm or N]; the instant at its beginning."""
        q = self.q
        v = self.v
        drives = self.robot.drive.transmission
        external = self.arm.move_to(q, v, pushes)
        load = 2 * self._load - self._load_before
        f, stiff = self._friction.while_turning(drives.to_drives(v), load)
        a = self.arm.acceleration(tau - drives.to_joints(f))
        if stiff:
            u_free = drives.to_drives(self.w + self._h * a)
            last = self._f - self.robot.drive.offset
            f = f + self._friction.of_stiff(
                stiff, u_free, mobility=self.arm.mobility(drives.matrix), load=load, last=last
            )
            a = self.arm.acceleration(tau - drives.to_joints(f))
        taken = drives.to_joints(f)
        tau_link = tau - self.rotors @ a - taken
        self._a = a
        self._f = f
        self._load, self._load_before = drives.load(tau_link), self._load
        self.w = self.w + self._h * a
        self.q = q + self._h * self.w
        return Instant(q, v, a, tau, tau_link, taken, external, self.arm.wrench)


class _Friction:
    """The friction of an arm's drives over steps of constant length.

    Each drive sees at most the `mobility`, 1 / inertia, (n,) [1/(kg m^2)].
    """

    def __init__(self, drive: DriveModel, *, step_s: float, mobility: Array) -> None:
        n = len(drive)
        self._drive = drive
        self._h = step_s
        self._mobility = mobility
        speeds = np.tile(_SPEEDS[:, None], (1, n))
        plain = drive.friction(speeds) - drive.offset
        self._law = np.maximum(plain, 0.0).T
        self._law_for_load = (drive.friction(speeds, np.ones_like(speeds)) - drive.offset - plain).T
        self.absent = not self._law.any() and not self._law_for_load.any()

    def while_turning(self, u: Array, load: Array) -> tuple[Array, Sequence[int]]:
        """Friction with offset at the present speed, (n,) [Nm], and the numbers of the stiff drives.

        The stiff drives have only their offset in it. Speeds u [rad/s] and load [Nm] are those of
        the drives.
        """
        offset = self._drive.offset
        if self.absent:
            return offset, ()
        f = self._drive.friction(u, load)
        stiff = self._h * self._mobility * np.abs(f - offset) >= _STIFF_SHARE * np.abs(u)
        if not stiff.any():
            return f, ()
        return np.where(stiff, offset, f), tuple(map(int, np.flatnonzero(stiff)))

    def of_stiff(
        self, stiff: Sequence[int], u_free: Array, *, mobility: Array, load: Array, last: Array
    ) -> Array:
        """Friction of the stiff drives without offset, (n,) [Nm]; zero for the others.

        Args:
            stiff: numbers of these drives
            u_free: speed of each drive after a step without their friction, (n,) [rad/s]
            mobility: A, (n, n) [1/(kg m^2)]
            load: torque that each gear carries, (n,) [Nm]
            last: friction without offset to start from, (n,) [Nm]
        """
        at = list(stiff)
        law = self._law[at] + self._law_for_load[at] * np.abs(load[at])[:, None]
        A = (self._h * mobility[np.ix_(at, at)]).tolist()
        F = np.zeros(len(u_free))
        F[at] = _found_in_turn(A, u_free[at].tolist(), last[at].tolist(), law)
        return F


def _found_in_turn(
    A: list[list[float]], free: list[float], F: list[float], law: Array
) -> list[float]:
    """Friction of slow drives, found in turn from F; plain numbers, for which Python is faster than arrays.

    `law` is f of each drive at the speeds of the table; u + c f(u) is tabulated for those that do
    not stick.
    """
    hold: list[float] = law[:, 0].tolist()
    tables: list[list[float]] = [[]] * len(A)
    for _ in range(_SWEEPS):
        change = 0.0
        for i, row in enumerate(A):
            c = row[i]
            b = free[i] - sum(map(mul, row, F)) + c * F[i]
            value = b / c
            if abs(value) > hold[i]:
                tables[i] = (
                    tables[i] or np.maximum.accumulate(_SPEEDS - _REST + c * law[i]).tolist()
                )
                value = (b - copysign(_speed_at(abs(b), tables[i]), b)) / c
            change = max(change, abs(value - F[i]) * c)
            F[i] = value
        if change < _TOLERANCE:
            break
    return F


def _speed_at(x: float, reach: list[float]) -> float:
    """The speed at which a drive reaches x, by linear interpolation."""
    k = max(bisect_right(reach, x), 1)
    if k == len(reach):
        return _TABLE[-1]
    low = reach[k - 1]
    left = _TABLE[k - 1]
    return left + (_TABLE[k] - left) / (reach[k] - low) * (x - low)
