"""Friction that is exact while a drive turns and that holds it when it stands.

For the speeds u of the drives, friction is an odd, set-valued law: f(u) = DriveModel.friction(u) - B for
u != 0, and any value in [-f(0+), f(0+)] at rest. Where a drive turns fast enough, so that friction takes less
than half of its speed in a step of h seconds, f(u) at the present speed is applied: the torque law then holds
exactly. Slower drives are stiff. For them the speed after the step is found together with the friction,

    u' + h A F = u_free,   F in f(u'),   A = U M^-1 U'                              (implicit Euler)

where u_free is the speed after a step without their friction. One drive alone is a monotone scalar equation,
u' + c f(u') = b: with f tabulated over the speed it is solved by interpolation, and b < c f(0+) gives u' = 0,
F = b / c: the drive sticks. Several slow drives are solved in turn (Gauss-Seidel) from the last friction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.arrays import Array
from steelyard.robot import DriveModel

_STIFF_SHARE = 0.5
_SWEEPS = 50
_TOLERANCE = 1e-10
_REST = 1e-12
_SPEEDS = np.concatenate([[_REST], np.geomspace(1e-6, 1e4, 401)])


class Friction:
    """The friction of an arm's drives over steps of constant length.

    Args:
        drive: of n joints
        step_s: length of a step, [s]
        mobility: largest 1/inertia that each drive sees, (n,) [1/(kg m^2)]
    """

    def __init__(self, drive: DriveModel, *, step_s: float, mobility: Array) -> None:
        n = len(drive)
        self._drive, self._h, self._mobility = drive, step_s, mobility
        speeds = np.tile(_SPEEDS[:, None], (1, n))
        plain = drive.friction(speeds) - drive.offset
        self._law = np.maximum(plain, 0.0).T
        self._law_for_load = (drive.friction(speeds, np.ones_like(speeds)) - drive.offset - plain).T
        self.absent = not self._law.any() and not self._law_for_load.any()
        self._speeds = _SPEEDS - _REST

    def while_turning(self, u: Array, load: Array) -> tuple[Array, Sequence[int]]:
        """Friction with offset at the present speed, (n,) [Nm], and the numbers of the stiff drives.

        The stiff drives have only their offset in it.

        Args:
            u: speeds of the drives, (n,) [rad/s]
            load: torque that each gear carries, (n,) [Nm]
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
        F = np.zeros(len(u_free))
        F[list(stiff)] = last[list(stiff)]
        c = self._h * np.diag(mobility)
        reach = {j: np.maximum.accumulate(self._speeds + c[j] * self._law_with(j, load[j])) for j in stiff}
        for _ in range(_SWEEPS):
            change = 0.0
            for j in stiff:
                b = u_free[j] - self._h * (mobility[j] @ F) + c[j] * F[j]
                value = (b - np.copysign(np.interp(abs(b), reach[j], self._speeds), b)) / c[j]
                change = max(change, abs(value - F[j]) * c[j])
                F[j] = value
            if change < _TOLERANCE:
                break
        return F

    def _law_with(self, j: int, load: float) -> Array:
        return np.asarray(self._law[j] + self._law_for_load[j] * abs(load))
