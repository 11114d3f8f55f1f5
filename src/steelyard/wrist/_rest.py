"""Postures at rest: detection in a recording, selection, and checks of sign and frame.

**Detection.** A row is at rest if the sensor turns more slowly than `RestRule.speed` (and its
origin, if known, moves more slowly than `RestRule.linear_speed`) over a short window around it.
Runs of such rows that last long enough become postures. The ends of a run, where the arm still
vibrates, are left out. A posture has the mean wrench and the variance of that mean, which allows
for correlation in time. A run in which the sensor creeps, or in which the wrench scatters far more
than in the other runs (a person leans on the load), is left out, and a note says so.

**Selection.** The forces at rest are m g g_s + f0, with the direction g_s of gravity in the sensor
frame. Weight and drift can be separated if the rows D = [g_s 1], (N, 4), span four dimensions. The
smallest singular value of D / sqrt(N) measures how well: it is 0.5 for directions all over the
sphere and 0 for directions in a plane. The best direction d to add has the largest d' (D'D)^-1 d.

**Checks.** With kappa = m g_base (liu2025 eq. (13)) the forces f = R' kappa + f0 have six unknowns.
A wrong sign turns kappa against gravity, so the mass is negative. A wrong frame or an inverted
rotation leaves residuals of the size of the weight; if another interpretation of the data fits
several times better, the message names it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from steelyard._arrays import Array, Mask
from steelyard._kinds import NOT_NEGATIVE, Shape
from steelyard.errors import InvalidRecording
from steelyard.wrist._recording import OTHER_CONVENTION, WristRecording
from steelyard.wrist._regression import long_run_sum

_MAX_SCATTER_RATIO = 6.0  # of a run to the median of all runs
_MIN_DIRECTION_CHANGE = np.radians(1.0)  # [rad] between distinct directions of gravity
_MIN_SPREAD = 0.1  # smallest singular value of D / sqrt(N)
_MAX_RESIDUAL_SHARE = 0.05  # of the weight, for a sensor at rest
_MIN_GRAVITY_COSINE = 0.9  # between the weight by another interpretation and gravity
_MIN_IMPROVEMENT = 5.0  # factor of the residuals, for another interpretation
_INTERPRETATIONS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "were already rotated into the base frame: use `frame='base'`": (
        lambda f, R: (np.einsum("nji,nj->ni", R, f), R)
    ),
    "were measured in the sensor frame and not rotated: use `frame='sensor'`": (
        lambda f, R: (np.einsum("nij,nj->ni", R, f), R)
    ),
    "fit an orientation that is the inverse of the stated one: invert the rotation": (
        lambda f, R: (f, R.transpose(0, 2, 1))
    ),
}


@dataclass(frozen=True)
class RestRule:
    """Conditions for a sensor to be at rest.

    Attributes:
        speed: largest angular speed, [rad/s]
        linear_speed: largest speed of its origin, [m/s]
        window_s: time over which both speeds are computed, [s]
        settle_s: left out at both ends of a rest, [s]
        shortest_s: shortest duration of the remainder, [s]
        largest_turn: largest rotation within a rest, [rad]
    """

    speed: float = 0.01
    linear_speed: float = 0.01
    window_s: float = 0.2
    settle_s: float = 0.2
    shortest_s: float = 0.5
    largest_turn: float = 0.005


@dataclass(frozen=True, eq=False)
class Postures:
    """Mean wrenches at rest.

    Attributes:
        t: middle of each rest, (N,) [s]
        wrench: of the load on the sensor, (N, 6) [N, Nm], in the sensor frame
        variance: of these means, from the scatter within a rest, (N, 6); zero for rests of one row
        R_base_sensor: orientation of the sensor, (N, 3, 3)
        rows: number of rows of each rest, (N,)
        timed: whether `t` is time, and not a number in a table
        notes: on rests that were left out, in sentences
    """

    t: Annotated[Array, Shape("N")]
    wrench: Annotated[Array, Shape("N", 6)]
    variance: Annotated[Array, Shape("N", 6)]
    R_base_sensor: Annotated[Array, Shape("N", 3, 3)]
    rows: Annotated[NDArray[np.int64], Shape("N"), NOT_NEGATIVE]
    timed: bool = True
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, recording: WristRecording, rule: RestRule | None = None) -> Postures:
        """The postures at rest in a recording; every row of a table of postures is one.

        Args:
            recording: of the sensor
            rule: conditions for rest; the defaults if None
        """
        rule = rule or RestRule()
        if not recording.timed:
            N = len(recording)
            return cls(
                recording.t,
                recording.wrench,
                np.zeros((N, 6)),
                recording.R_base_sensor,
                np.ones(N, dtype=np.int64),
                timed=False,
            )
        runs = _rest_runs(recording, rule)
        creeping = np.array(
            [_turn(recording.R_base_sensor[run]) > rule.largest_turn for run in runs]
        )
        scatter = np.array([_scatter(recording.wrench[run]) for run in runs])
        unsteady = (scatter > _MAX_SCATTER_RATIO * np.median(scatter, axis=0)).any(axis=1)
        keep = ~creeping & ~unsteady
        notes = []
        if not keep.all():
            notes.append(
                f"left out {np.sum(~keep)} of {len(runs)} rests: the sensor creeps in"
                f" {np.sum(creeping)},"
                f" the wrench is not steady in {np.sum(unsteady & ~creeping)}"
            )
        if not keep.any():
            raise InvalidRecording(
                f"the sensor creeps, or its wrench is not steady, in all {len(runs)} rests: stop"
                " the arm completely at each posture"
            )
        return _postures(
            recording, [run for run, kept in zip(runs, keep, strict=True) if kept], notes
        )

    def __len__(self) -> int:
        return len(self.t)

    def take(self, which: Mask, note: str = "") -> Postures:
        """Some of the postures.

        Args:
            which: those to keep, (N,)
            note: reason, a sentence; none by default
        """
        return replace(
            self,
            t=self.t[which],
            wrench=self.wrench[which],
            variance=self.variance[which],
            R_base_sensor=self.R_base_sensor[which],
            rows=self.rows[which],
            notes=(*self.notes, note) if note else self.notes,
        )

    def distinct(self, gravity_base: Array) -> Postures:
        """The postures with distinct directions of gravity; of two equal ones the longer.

        Args:
            gravity_base: (3,) [m/s^2], in the base frame
        """
        directions = self._directions(gravity_base)
        keep = np.zeros(len(self), dtype=bool)
        for k in np.argsort(-self.rows, kind="stable"):
            keep[k] = not (directions[keep] @ directions[k] > np.cos(_MIN_DIRECTION_CHANGE)).any()
        if keep.all():
            return self
        return self.take(
            keep, f"left out {np.sum(~keep)} postures with the same gravity direction as another"
        )

    def spread(self, gravity_base: Array) -> float:
        """How well weight and drift can be separated: the smallest singular value of D / sqrt(N).

        Args:
            gravity_base: (3,) [m/s^2], in the base frame
        """
        D = _with_ones(self._directions(gravity_base))
        if len(D) >= 4:
            return float(np.linalg.svd(D / np.sqrt(len(D)), compute_uv=False)[-1])
        return 0.0

    def advice(self, gravity_base: Array) -> str:
        """Which posture to add if the postures are too similar, a sentence; empty if they are not.

        Args:
            gravity_base: (3,) [m/s^2], in the base frame
        """
        spread = self.spread(gravity_base)
        if spread >= _MIN_SPREAD:
            return ""
        D = _with_ones(self._directions(gravity_base))
        information = D.T @ D + 1e-9 * np.eye(4)
        best = np.zeros(3)
        gain = -np.inf
        for corner in itertools.product((-1, 0, 1), repeat=3):
            if any(corner):
                d = np.array(corner) / np.linalg.norm(corner)
                row = np.append(d, 1.0)
                value = float(row @ np.linalg.solve(information, row))
                if value > gain * (1 + 1e-9):
                    best = d
                    gain = value
        return (
            f"the postures are too similar (spread {spread:.2f}, 0.3 is good): add one in which"
            f" gravity points along ({best[0]:.1f}, {best[1]:.1f}, {best[2]:.1f}) of the sensor"
            " frame"
        )

    def require_plausible(self, gravity_base: Array) -> None:
        """Raises an error for forces that contradict the stated sign or frame.

        Args:
            gravity_base: gravity without a tilt, (3,) [m/s^2], in the base frame
        """
        if len(self) < 3:
            return
        force = self.wrench[:, :3]
        R = self.R_base_sensor
        size = float(np.linalg.norm(gravity_base))
        kappa, residual = _force_fit(force, R)
        weight = float(np.linalg.norm(kappa))
        if residual > _MAX_RESIDUAL_SHARE * weight and len(self) > 3:
            for words, interpretation in _INTERPRETATIONS.items():
                other, other_residual = _force_fit(*interpretation(force, R))
                upright = (
                    abs(other @ gravity_base) > _MIN_GRAVITY_COSINE * np.linalg.norm(other) * size
                )
                if _MIN_IMPROVEMENT * other_residual < residual and upright:
                    raise InvalidRecording(
                        f"the forces do not fit the stated frame (residual {residual:.3g} N); they"
                        f" {words} (residual {other_residual:.3g} N)"
                    )
        along = float(kappa @ gravity_base / size)
        if along < -0.5 * weight and weight > 3 * residual:
            raise InvalidRecording(
                f"the load weighs {along / size:.3f} kg: the sign of the wrench is not as"
                f" stated; {OTHER_CONVENTION}; for an arm that hangs from the ceiling, state"
                " `gravity_base`"
            )

    def extra_variance(self, residual: Array, freedom: int) -> Array:
        """Variance of force and torque between postures beyond `variance`, (2,) [N^2, Nm^2].

        Args:
            residual: of each posture in a fit, (N, 6) [N, Nm]
            freedom: number of equations less number of unknowns of the fit
        """
        from scipy.optimize import brentq

        extra = np.zeros(2)
        for k, axes in enumerate((slice(0, 3), slice(3, 6))):
            squares = residual[:, axes] ** 2
            within = self.variance[:, axes]
            expected = max(freedom / residual.size * squares.size, 1.0)
            high = float(squares.sum() / expected)
            if high > 0.0 and _excess(0.0, squares, within, expected) > 0:
                extra[k] = brentq(
                    _excess, 0.0, 2 * high, args=(squares, within, expected), rtol=1e-6
                )
        return extra

    def _directions(self, gravity_base: Array) -> Array:
        unit = gravity_base / np.linalg.norm(gravity_base)
        return np.asarray(np.einsum("nji,j->ni", self.R_base_sensor, unit))


def _rest_runs(recording: WristRecording, rule: RestRule) -> list[slice]:
    """The rows of each rest, in the order of time."""
    turning, moving = _speeds(recording, rule.window_s)
    at_rest = (turning < rule.speed) & (moving < rule.linear_speed)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], at_rest.astype(int), [0]])))
    runs = []
    longest = 0.0
    t = recording.t
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        first_s = t[start]
        if start > 0:
            first_s += rule.settle_s
        last_s = t[stop - 1]
        if stop < len(t):
            last_s -= rule.settle_s
        low = int(np.searchsorted(t, first_s))
        high = int(np.searchsorted(t, last_s, side="right"))
        if high > low:
            duration_s = t[high - 1] - t[low]
        else:
            duration_s = 0.0
        longest = max(longest, float(duration_s))
        if high - low >= 2 and duration_s >= rule.shortest_s:
            runs.append(slice(low, high))
    if not runs:
        raise InvalidRecording(
            f"the sensor is never at rest: its angular speed is at least {np.min(turning):.3g}"
            f" rad/s, and below {rule.speed:g} rad/s for at most {longest:.2f} s after settling,"
            f" but {rule.shortest_s:g} s are needed. Stop for longer at each posture"
        )
    return runs


def _speeds(recording: WristRecording, window_s: float) -> tuple[Array, Array]:
    """Angular speed [rad/s] and speed [m/s] over a window around each row, (N,) each."""
    t = recording.t
    low = np.searchsorted(t, t - window_s / 2 - 1e-9)
    high = np.searchsorted(t, t + window_s / 2 + 1e-9, side="right") - 1
    low = np.where(high > low, low, np.maximum(np.arange(len(t)) - 1, 0))
    high = np.where(high > low, high, np.minimum(np.arange(len(t)) + 1, len(t) - 1))
    span = np.maximum(t[high] - t[low], 1e-9)
    R = Rotation.from_matrix(recording.R_base_sensor)
    turning = (R[low].inv() * R[high]).magnitude() / span
    if recording.position is None:
        return turning, np.zeros(len(t))
    return turning, np.linalg.norm(
        recording.position[high] - recording.position[low], axis=1
    ) / span


def _turn(R: Array) -> float:
    """Twice the largest rotation from the mean orientation, [rad]."""
    mean = Rotation.from_matrix(R).mean()
    return float(2 * (mean.inv() * Rotation.from_matrix(R)).magnitude().max())


def _scatter(wrench: Array) -> Array:
    """The scatter of force and torque in a run, (2,)."""
    variance = wrench.var(axis=0)
    return np.sqrt([variance[:3].mean() + 1e-300, variance[3:].mean() + 1e-300])


def _postures(recording: WristRecording, runs: list[slice], notes: list[str]) -> Postures:
    parts = [recording.wrench[run] for run in runs]
    count = np.array([len(part) for part in parts])
    R = [Rotation.from_matrix(recording.R_base_sensor[run]).mean().as_matrix() for run in runs]
    return Postures(
        np.array([recording.t[run].mean() for run in runs]),
        np.array([part.mean(axis=0) for part in parts]),
        _variances_of_means(parts),
        np.array(R),
        count,
        notes=tuple(notes),
    )


def _variances_of_means(parts: list[Array]) -> Array:
    """The variance of the mean of each run, (runs, 6), with correlation in time from all runs."""
    correlated = sum(np.diag(long_run_sum(part)) for part in parts)
    uncorrelated = sum(len(part) * part.var(axis=0) for part in parts)
    inflation = np.maximum(correlated / np.maximum(uncorrelated, 1e-300), 1.0)
    return np.array([part.var(axis=0, ddof=1) * inflation / len(part) for part in parts])


def _excess(extra: float, squares: Array, within: Array, expected: float) -> float:
    """Normalised sum of squared residuals less its expected value, for an extra variance."""
    return float((squares / (within + extra + 1e-300)).sum() - expected)


def _with_ones(directions: Array) -> Array:
    return np.column_stack([directions, np.ones(len(directions))])


def _force_fit(force: Array, R_base_sensor: Array) -> tuple[Array, float]:
    """The weight kappa of the forces at rest, (3,) [N], and the RMS residual, [N]."""
    N = len(force)
    B = np.concatenate([R_base_sensor.transpose(0, 2, 1), np.tile(np.eye(3), (N, 1, 1))], axis=2)
    rows = B.reshape(-1, 6)
    value = np.linalg.lstsq(rows, force.ravel(), rcond=1e-9)[0]
    freedom = max(3 * N - 6, 1)
    return value[:3], float(np.sqrt(((force.ravel() - rows @ value) ** 2).sum() / freedom))
