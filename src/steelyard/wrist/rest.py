"""Postures at rest, found in a recording that moves in between.

A row is at rest when the sensor turns more slowly than `RestRule.speed` (and its origin, where it is known,
moves more slowly than `RestRule.linear_speed`) over a short window around it. Runs of such rows that last
long enough, less a little at both ends where the arm still rings, become postures: the mean wrench with the
variance of that mean, the residuals' correlation in time counted. A run in which the sensor creeps, or in
which the wrench scatters far more than in the other runs (somebody leans on the load), is left out, and
noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from steelyard.arrays import Array, Mask
from steelyard.errors import InvalidRecording
from steelyard.wrist.covariance import long_run_sum
from steelyard.wrist.recording import WrenchRecording

_RESTLESS = 6.0  # times the median scatter of all runs


@dataclass(frozen=True)
class RestRule:
    """When a sensor is at rest.

    Attributes:
        speed: it turns more slowly than this, [rad/s]
        linear_speed: its origin moves more slowly than this, [m/s]
        window_s: time over which both are judged, [s]
        settle_s: left out at both ends of a rest, [s]
        shortest_s: what is left must last so long, [s]
        largest_turn: within one rest it turns less than this in all, [rad]
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
        wrench: what the load does to the sensor, (N, 6) [N, Nm], in the sensor frame
        variance: of these means, from the scatter within a rest, (N, 6); zero where a rest is one row
        R_base_sensor: orientation of the sensor, (N, 3, 3)
        rows: how many rows each rest has, (N,)
        timed: whether `t` is time, and not a number in a table
        notes: what was left out, a sentence each
    """

    t: Array
    wrench: Array
    variance: Array
    R_base_sensor: Array
    rows: NDArray[np.int64]
    timed: bool = True
    notes: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.t)

    def take(self, which: Mask, note: str = "") -> Postures:
        """Some of them.

        Args:
            which: a mask, (N,)
            note: a sentence to add to the notes
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


def find_postures(recording: WrenchRecording, rule: RestRule | None = None) -> Postures:
    """The postures at rest in a recording; every row of a table of postures is one.

    Args:
        recording: continuous, or a table of postures
        rule: when the sensor is at rest; `RestRule()` by default
    """
    rule = rule or RestRule()
    if not recording.timed:
        N = len(recording)
        return Postures(
            recording.t,
            recording.wrench,
            np.zeros((N, 6)),
            recording.R_base_sensor,
            np.ones(N, dtype=np.int64),
            timed=False,
        )
    runs = rest_runs(recording, rule)
    creeping = np.array([_turn(recording.R_base_sensor[run]) > rule.largest_turn for run in runs])
    scatter = np.array([_scatter(recording.wrench[run]) for run in runs])
    restless = (scatter > _RESTLESS * np.median(scatter, axis=0)).any(axis=1)
    keep = ~creeping & ~restless
    notes = []
    if not keep.all():
        notes.append(
            f"left out {np.sum(~keep)} of {len(runs)} rests: the sensor creeps in {np.sum(creeping)},"
            f" the wrench is not steady in {np.sum(restless & ~creeping)}"
        )
    if not keep.any():
        raise InvalidRecording(f"none of the {len(runs)} rests is one: the sensor creeps in all of them")
    return _postures(recording, [run for run, kept in zip(runs, keep, strict=True) if kept], notes)


def rest_runs(recording: WrenchRecording, rule: RestRule) -> list[slice]:
    """The rows of each rest, in the order of time.

    Args:
        recording: continuous
        rule: when the sensor is at rest
    """
    turning, moving = _speeds(recording, rule.window_s)
    still = (turning < rule.speed) & (moving < rule.linear_speed)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]])))
    runs, longest = [], 0.0
    t = recording.t
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        low = int(np.searchsorted(t, t[start] + (rule.settle_s if start > 0 else 0.0)))
        high = int(np.searchsorted(t, t[stop - 1] - (rule.settle_s if stop < len(t) else 0.0), side="right"))
        lasts = t[high - 1] - t[low] if high > low else 0.0
        longest = max(longest, float(lasts))
        if high - low >= 2 and lasts >= rule.shortest_s:
            runs.append(slice(low, high))
    if not runs:
        raise InvalidRecording(
            f"the sensor is nowhere at rest: it turns at {np.min(turning):.3g} rad/s at least, and is below"
            f" {rule.speed:g} rad/s for {longest:.2f} s at most, after settling; {rule.shortest_s:g} s are"
            " needed. Stop at each posture, or give a RestRule of your own"
        )
    return runs


def _speeds(recording: WrenchRecording, window_s: float) -> tuple[Array, Array]:
    """How fast the sensor turns [rad/s] and moves [m/s] over a window around each row, (N,) each."""
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
    return turning, np.linalg.norm(recording.position[high] - recording.position[low], axis=1) / span


def _turn(R: Array) -> float:
    mean = Rotation.from_matrix(R).mean()
    return float(2 * (mean.inv() * Rotation.from_matrix(R)).magnitude().max())


def _scatter(wrench: Array) -> Array:
    """The scatter of force and torque in a run, (2,)."""
    spread = wrench.var(axis=0)
    return np.sqrt([spread[:3].mean() + 1e-300, spread[3:].mean() + 1e-300])


def _postures(recording: WrenchRecording, runs: list[slice], notes: list[str]) -> Postures:
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
    """The variance of the mean of each run, (runs, 6); correlation in time is judged from all together."""
    together = sum(np.diag(long_run_sum(part)) for part in parts)
    alone = sum(len(part) * part.var(axis=0) for part in parts)
    inflation = np.maximum(together / np.maximum(alone, 1e-300), 1.0)
    return np.array([part.var(axis=0, ddof=1) * inflation / len(part) for part in parts])
