"""Thresholds from a motion without contact, and the friction of the day from the same motion.

Friction changes from day to day and with temperature. Changes (d_Fc, d_Fv, d_B) of the drives show in the
residuals of the joints as

    r = -U' F[s d_Fc + |w|^alpha sign(w) d_Fv + d_B],     w = U v,     F the observer's own filter

(U = 1 where each motor turns one joint), so they are found by least squares from what moves, all joints at
once because U mixes them, with the prior that friction changes by a half (one standard deviation). The rest
of r, in standard deviations of the model's torque, has a tail (`steelyard.control.collision.tail`) that
says which level is crossed as rarely as the user wants. So that the level does not profit from its own
correction, each half of the motion is judged with the friction that the other half showed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steelyard.arrays import Array
from steelyard.control.collision.observer import MomentumObserver, Observer
from steelyard.control.collision.residuals import Residuals, observe_samples, observer_samples
from steelyard.control.collision.tail import Tail, cluster_peaks, fit_tail
from steelyard.control.collision.thresholds import LearnedFrom, Thresholds, residual_std
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.recording import Recording
from steelyard.robot import DriveModel

_DAY_TO_DAY = 0.5  # of friction, one standard deviation
_INDEPENDENT = 4.0  # filter times between samples that tell something new
_KNOWN_FRICTION = 0.1  # slack for each Nm of friction below which friction tells about itself
_IMPOSSIBLE = 1e-4  # probability of the largest peak of a free motion below which it is none
_CAREFUL = 2.0  # deviations that count as one where there are no other peaks to compare with
_SHORTEST_S = 5.0
_MOVING = 0.01  # [rad/s]
_DIRECTION_EXPLAINS = 0.5
_TELLING_TIMES = 5.0  # independent samples of either direction that tell friction from other errors


@dataclass(frozen=True, eq=False)
class Learned:
    """An observer with the friction of the day, and its thresholds.

    Attributes:
        observer: the same kind and filter, friction adapted
        thresholds: of its residuals
    """

    observer: Observer
    thresholds: Thresholds


def learn(
    observer: Observer,
    recording: Recording,
    *,
    drive: DriveModel | None = None,
    false_alarms_per_hour: float = 1.0,
    adapt_friction: bool = True,
) -> Learned:
    """Thresholds, and the friction of the day, from a motion without contact.

    A motion that holds a contact is refused: its largest residual does not belong to the tail of the others.

    Args:
        observer: of the arm with what it carries in that motion
        recording: of a motion like the ones to watch
        drive: that makes torques of motor currents; needed where only currents were recorded
        false_alarms_per_hour: of all residuals together, [1/h]
        adapt_friction: whether friction and offset are corrected, too
    """
    if not 0 < false_alarms_per_hour < np.inf:
        raise InvalidSamples(f"false_alarms_per_hour must be positive, got {false_alarms_per_hour}")
    if recording.duration_s < _SHORTEST_S:
        raise InvalidRecording(
            f"{recording.duration_s:.1f} s are too short to learn from; record at least {_SHORTEST_S:g} s"
        )
    samples = observer_samples(recording, observer.arm.robot, drive=drive)
    free = observe_samples(observer, samples)
    plain = MomentumObserver(observer.arm, observer.gain_hz, observer.longest_gap_s)
    seen = free if type(observer) is MomentumObserver else observe_samples(plain, samples)
    if words := missing_friction(plain, seen):
        raise InvalidRecording(words)
    change, parts = np.zeros((3, observer.arm.n)), [free]
    if adapt_friction:
        change, halves = _changes(plain, seen)
        parts = [observe_samples(_adapted(observer, half), samples) for half in halves]
    watching = _adapted(observer, change)
    tails = _tails(watching, free, parts)
    m = len(observer.names)
    level = np.array([tail.level(false_alarms_per_hour / m) for tail in tails]).reshape(2, m)
    level.setflags(write=False)
    told = LearnedFrom(
        float(free.t[-1]),
        false_alarms_per_hour,
        tails,
        np.abs(free.v).max(axis=0),
        np.abs(free.a).max(axis=0),
        change,
    )
    return Learned(watching, Thresholds(level, _status(watching, told), told))


def missing_friction(observer: Observer, residuals: Residuals) -> str | None:
    """What a recording shows of friction that the model does not know, in words; None when it knows it.

    Friction is told from other errors by its sign: the drive must move both ways, and for long enough.

    Args:
        observer: of the arm
        residuals: of its joints along the recording
    """
    arm = observer.arm
    if len(residuals.names) != arm.n:
        return None
    drives, (Fc, Fv) = arm.friction.transmission, np.abs(arm.friction.coefficients[:2])
    settled = _settled(observer, residuals)
    speed, torque = drives.to_drives(residuals.v[settled]), drives.load(residuals.residual[settled])
    enough = _TELLING_TIMES * _together(observer, residuals)
    for j in range(arm.n):
        forwards, backwards = speed[:, j] > _MOVING, speed[:, j] < -_MOVING
        moving = forwards | backwards
        if min(forwards.sum(), backwards.sum()) < enough or moving.mean() < _KNOWN_FRICTION:
            continue
        r, v = torque[moving, j], speed[moving, j]
        columns = np.column_stack([np.sign(v), v, np.ones(len(v))])
        found = np.linalg.lstsq(columns, r, rcond=None)[0]
        turning = columns[:, :2] @ found[:2]
        left = np.std(r - columns @ found)
        size = float(np.sqrt(np.mean(turning**2)))
        known = float(Fc[j] + Fv[j] * np.abs(v).max())
        if size > known and size**2 > _DIRECTION_EXPLAINS * (size**2 + left**2) and found[0] < 0:
            return (
                f"{residuals.names[j]} has about {size:.2g} {residuals.unit} of friction that the model does"
                " not know: identify the arm with a friction law, or give the drives their friction"
            )
    return None


def _changes(observer: Observer, free: Residuals) -> tuple[Array, tuple[Array, Array]]:
    """Changes of Fc, Fv and B, (3, n), from the whole motion, and for each half from the other one."""
    columns = _filtered_columns(observer, free)
    friction = observer.arm.friction
    at_drives = (np.abs(friction.coefficients) * friction.law.breakaway(0.0)).sum(axis=0)
    at_rest = friction.transmission.most_at_joints(at_drives)
    usable = _settled(observer, free)[:, None] & (
        free.slack.sum(axis=1) <= 2 * _KNOWN_FRICTION * np.maximum(at_rest, 1e-9)
    )
    first = (free.t < free.t[-1] / 2)[:, None]
    whole, second_half, first_half = (
        _least_squares(observer, free, columns, usable & half) for half in (True, ~first, first)
    )
    return whole, (second_half, first_half)


def _least_squares(observer: Observer, free: Residuals, columns: Array, usable: NDArray[np.bool_]) -> Array:
    """Changes of Fc, Fv and B, (3, n): normal equations of all joints and the prior, in its deviations."""
    friction, n = observer.arm.friction, observer.arm.n
    size, U = _DAY_TO_DAY * np.abs(friction.coefficients[[0, 1, 0]]), friction.transmission.matrix
    together = _together(observer, free)
    A, b = np.eye(3 * n), np.zeros(3 * n)
    for j in range(n):
        rows = usable[:, j]
        if rows.sum() < 3 * together:
            continue
        r = free.residual[rows, j]
        noise = max(float(np.std(r) * np.sqrt(together)), 1e-12)
        drives = np.flatnonzero(U[:, j])
        seen = -columns[np.ix_(rows, drives)] * U[drives, j][:, None] * size.T[drives] / noise
        seen = seen.reshape(len(r), -1)
        at = (3 * drives[:, None] + np.arange(3)).ravel()
        A[np.ix_(at, at)] += seen.T @ seen
        b[at] += seen.T @ (r / noise)
    return np.asarray(size * np.linalg.solve(A, b).reshape(n, 3).T)


def _together(observer: Observer, residuals: Residuals) -> float:
    """How many samples tell no more than one, because the filter makes them alike."""
    step_s = float(np.median(np.diff(residuals.t)))
    return max(_INDEPENDENT / (2 * np.pi * observer.gain_hz) / step_s, 1.0)


def _filtered_columns(observer: Observer, free: Residuals) -> Array:
    """What a unit change of Fc, Fv and B of each drive adds to its own torque, filtered, (N, n, 3)."""
    friction = observer.arm.friction
    Fc, Fv = friction.law.at(friction.transmission.to_drives(free.v), s=free.direction)[:2]
    plain = np.stack([Fc, Fv, np.ones_like(Fc)], axis=2)
    out = np.zeros_like(plain)
    kept = np.exp(-2 * np.pi * observer.gain_hz * np.diff(free.t))
    for i, share in enumerate(kept):
        out[i + 1] = share * out[i] + (1 - share) * 0.5 * (plain[i] + plain[i + 1])
    return out


def _adapted(observer: Observer, change: Array) -> Observer:
    friction = observer.arm.friction
    coefficients = friction.coefficients.copy()
    coefficients[:2] += change[:2]
    adapted = replace(friction, coefficients=coefficients, offset=friction.offset + change[2])
    spread = observer.arm.spread
    spread = None if spread is None else spread.with_friction_doubt(change)
    return replace(observer, arm=replace(observer.arm, friction=adapted, spread=spread))


def _settled(observer: Observer, free: Residuals) -> NDArray[np.bool_]:
    return np.asarray(free.t >= free.t[0] + observer.settling_s)


def _tails(observer: Observer, free: Residuals, parts: list[Residuals]) -> tuple[Tail, ...]:
    motion = np.stack([free.q, free.v, free.a], axis=1)
    std = residual_std(observer, motion, observer.arm.friction.init(free.q[0], free.v[0]))
    first = (free.t < free.t[-1] / 2)[:, None]
    beyond = np.where(first, parts[0].beyond_friction, parts[-1].beyond_friction)
    settled = _settled(observer, free)
    z, t = np.abs(beyond[:, None] / std)[settled].reshape(settled.sum(), -1), free.t[settled]
    gap_s = observer.settling_s / 2
    tails = tuple(fit_tail(z[:, j], t, gap_s) for j in range(z.shape[1]))
    for j, tail in enumerate(tails):
        _require_free(z[:, j], t, tail, gap_s, free.names[j % len(free.names)])
    return tails


def _require_free(z: Array, t: Array, tail: Tail, gap_s: float, name: str) -> None:
    """Refuses a motion whose largest peak belongs neither to the others nor to the model's own deviation."""
    peaks, times = cluster_peaks(z, t, tail.start, gap_s)
    if not peaks.size:
        return
    largest = float(peaks.max())
    times_of_noise = (t[-1] - t[0]) / gap_s
    if tail.peaks:
        scale = max(float(np.median(peaks - tail.start)) / np.log(2), 1e-12)
        chance = len(peaks) * np.exp(-(largest - tail.start) / scale)
        chance = max(chance, times_of_noise * np.exp(-0.5 * largest**2))
    else:
        chance = times_of_noise * np.exp(-0.5 * (largest / _CAREFUL) ** 2)
    if chance < _IMPOSSIBLE:
        raise InvalidRecording(
            f"the learning motion is not free: near t = {times[peaks.argmax()]:.2f} s the residual of {name}"
            f" is {largest:.1f} times its standard deviation, which does not belong to the others"
            " (a contact, a jolt, a hard stop); cut that part off or record a free motion"
        )


def _status(observer: Observer, told: LearnedFrom) -> str:
    reach = 3600.0 / told.false_alarms_per_hour / max(told.duration_s, 1e-9)
    words = (
        f"learned from {told.duration_s:.0f} s of free motion for a rate of {told.false_alarms_per_hour:g}"
        f" false alarms an hour (a tail continued {reach:.0f} times beyond what was seen)"
    )
    still = [name for name, tail in zip(observer.names, told.tails, strict=False) if tail.peaks == 0]
    if still:
        words += f"; {', '.join(still)} hardly showed a residual: threshold from the model alone"
    return words
