"""Time stepping of an arm with its drives.

The state of a step k of h seconds is the position q_k and the velocity w_k half a step earlier
(leapfrog):

    v_k = w_k + h/2 a_{k-1}        a_k = arm(q_k, v_k, tau_k)
    w_{k+1} = w_k + h a_k          q_{k+1} = q_k + h w_{k+1}

so that q, v, a and tau belong to one instant, to second order in h, and

    tau_k = M a_k + bias(q_k, v_k) + friction_k - external_k

holds to rounding. In MuJoCo's own Euler step v_k = w_k, so that every velocity would be half a
step late; an identification would see this as a rotor inertia of -Fv h/2. Load-dependent friction
uses the load extrapolated from the last two steps.

Friction is exact while a drive turns, and it holds a drive at rest. For the speeds u of the drives
it is a set-valued law: f(u) = DriveModel.friction(u) - B for u != 0, and any value in
[-f(0+), f(0+)] at rest. A drive is fast when friction takes less than half of its speed in one
step of h seconds; then f(u) at the present speed is applied, and the torque law holds exactly.
Slower drives are stiff. For them, the speed after the step and the friction are solved together,

    u' + h A F = u_free,   F in f(u'),   A = U M^-1 U'                              (implicit Euler)

where u_free is the speed after a step without their friction. A single drive gives a monotone
scalar equation, u' + c f(u') = b. With f tabulated over the speed, in the direction of b,
interpolation solves it; b < c f(0+) gives u' = 0 and F = b / c: the drive sticks. Several slow
drives are solved one after the other (Gauss-Seidel), starting from the friction of the last step.
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
from steelyard.simulation._arm import BodyPush, ForwardDynamics

_STIFF_SHARE = 0.5  # share of its speed that friction takes from a stiff drive in one step
_MAX_SWEEPS = 50
_SPEED_TOLERANCE = 1e-10  # [rad/s or m/s]
_REST_SPEED = 1e-12  # [rad/s or m/s]
_SPEEDS = np.concatenate([[_REST_SPEED], np.geomspace(1e-6, 1e4, 401)])
_SPEED_TABLE: list[float] = (_SPEEDS - _REST_SPEED).tolist()


class Instant(NamedTuple):
    """The signals of one instant, each (n,); the attributes are those of `Truth`."""

    q: Array
    v: Array
    a: Array
    tau: Array
    tau_link: Array
    friction: Array
    external: Array
    wrench: Array


class Plant:
    """An arm with its drives: its present state, and the step that a torque causes.

    Args:
        robot: the empty arm with its true drives and gravity
        payload: body at the flange, in the flange frame; None for none
        step_s: length of a step, [s]
        postures: postures near the motion, (G, n) [rad or m]; they bound the inertia that each
            drive moves
        start: initial position, velocity and acceleration, (3, n)
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
        self.arm = ForwardDynamics(robot, payload)
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

    @property
    def acceleration(self) -> Array:
        """Acceleration in the last step, (n,) [rad/s^2 or m/s^2]."""
        return np.array(self._a)

    def rest_at(self, q: Array) -> None:
        """Puts the arm at rest into a posture q, (n,) [rad or m]."""
        self.q = np.array(q, dtype=float)
        self.w = np.zeros_like(self.q)
        self._a = np.zeros_like(self.q)

    def runaway(self, limit: float) -> str:
        """A sentence about the joint that is faster than the limit [rad/s or m/s]; or ''."""
        if np.abs(self.w).max() < limit:
            return ""
        j = int(np.argmax(np.nan_to_num(np.abs(self.w), nan=np.inf)))
        return f"joint '{self.robot.joint_names[j]}' has the speed {self.w[j]:.3g}"

    def step(self, tau: Array, pushes: Sequence[BodyPush]) -> Instant:
        """Advances by one step and returns the signals at its beginning.

        Args:
            tau: torques of the drives, (n,) [Nm or N]
            pushes: external forces during the step
        """
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
        friction = drives.to_joints(f)
        tau_link = tau - self.rotors @ a - friction
        self._a = a
        self._f = f
        self._load_before = self._load
        self._load = drives.load(tau_link)
        self.w = self.w + self._h * a
        self.q = q + self._h * self.w
        return Instant(q, v, a, tau, tau_link, friction, external, self.arm.wrench)


class _Friction:
    """The friction of an arm's drives over steps of constant length.

    `mobility` is the largest inverse inertia of each drive, (n,) [1/(kg m^2)].
    """

    def __init__(self, drive: DriveModel, *, step_s: float, mobility: Array) -> None:
        n = len(drive)
        self._drive = drive
        self._h = step_s
        self._mobility = mobility
        speeds = np.tile(_SPEEDS[:, None], (1, n))
        plain = drive.friction(speeds) - drive.offset
        back = drive.offset - drive.friction(-speeds)
        self._laws = np.maximum([plain, back], 0.0).transpose(0, 2, 1)
        self._law_for_load = (drive.friction(speeds, np.ones_like(speeds)) - drive.offset - plain).T
        self.absent = not self._laws.any() and not self._law_for_load.any()

    def with_drive(self, drive: DriveModel) -> _Friction:
        """The friction of other drives over the same steps."""
        return _Friction(drive, step_s=self._h, mobility=self._mobility)

    def while_turning(self, u: Array, load: Array) -> tuple[Array, Sequence[int]]:
        """Friction with offset at the present speed, (n,) [Nm], and the indices of stiff drives.

        Entries of stiff drives hold only the offset. Speeds u [rad/s] and load [Nm] refer to the
        drives.
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
            stiff: indices of these drives
            u_free: speed of each drive after a step without their friction, (n,) [rad/s]
            mobility: A, (n, n) [1/(kg m^2)]
            load: torque that each gear carries, (n,) [Nm]
            last: friction without offset to start from, (n,) [Nm]
        """
        drives = list(stiff)
        by_load = self._law_for_load[drives] * np.abs(load[drives])[:, None]
        laws = self._laws[:, drives] + by_load
        A = (self._h * mobility[np.ix_(drives, drives)]).tolist()
        F = np.zeros(len(u_free))
        F[drives] = _gauss_seidel(A, u_free[drives].tolist(), last[drives].tolist(), laws)
        return F


def _gauss_seidel(
    A: list[list[float]], free: list[float], F: list[float], laws: Array
) -> list[float]:
    """Friction of slow drives, iterated from F.

    `laws` is the size of f of each drive at the tabulated speeds, forwards and backwards;
    u + c f(u) is tabulated for drives that do not stick. The lists are short, and plain numbers are
    faster than arrays here.
    """
    hold: list[float] = laws[0, :, 0].tolist()
    tables: dict[tuple[int, int], list[float]] = {}
    for _ in range(_MAX_SWEEPS):
        change = 0.0
        for i, row in enumerate(A):
            c = row[i]
            b = free[i] - sum(map(mul, row, F)) + c * F[i]
            value = b / c
            if abs(value) > hold[i]:
                side = (int(b < 0), i)
                if side not in tables:
                    rising = _SPEEDS - _REST_SPEED + c * laws[side]
                    tables[side] = np.maximum.accumulate(rising).tolist()
                value = (b - copysign(_speed_at(abs(b), tables[side]), b)) / c
            change = max(change, abs(value - F[i]) * c)
            F[i] = value
        if change < _SPEED_TOLERANCE:
            break
    return F


def _speed_at(x: float, table: list[float]) -> float:
    """The speed u at which u + c f(u), given by its table, equals x; linear interpolation."""
    k = max(bisect_right(table, x), 1)
    if k == len(table):
        return _SPEED_TABLE[-1]
    low = table[k - 1]
    left = _SPEED_TABLE[k - 1]
    return left + (_SPEED_TABLE[k] - left) / (table[k] - low) * (x - low)
