"""Findings about the motion: another arm, degrees, a velocity that contradicts the position, joints at rest.

Position q and velocity v are compared without differentiating: over windows of `WINDOW_S`, the change of q
stands against the integral of v (trapezoids), which averages the noise instead of amplifying it. With x the
integral and y the change,

    correlation = x'y / (|x| |y|),    ratio = sign(x'y) |x| / |y|,

and v follows q when the first is near 1 and the second too. A ratio of 180/pi means degrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from steelyard.arrays import Array
from steelyard.quality.clock import GAP_STEPS
from steelyard.quality.report import Finding, Place, many, names_of, place_of, where
from steelyard.recording import Recording

STILL = 0.01  # [rad] a joint that moves less shows neither inertia nor friction, only its brake and its noise
WINDOW_S = 0.1  # long against noise and lag, short against a swing
WINDOW_MOTION = 2e-3  # [rad] RMS over the windows; below it the comparison of q and v weighs noise
FOLLOWS = 0.8  # correlation of v with the change of q: 0.9999 on real logs, below 0.5 for a wrong column
SCALE = (
    0.1  # how far the ratio may be off 1: real logs are within 0.001, a filter on v may cost some per cent
)
DEGREE = 180.0 / np.pi
TURNS = 4.0 * np.pi  # arms turn to 2 pi; beyond twice that a joint has no stops, or the unit is degrees
REACH = 2.0  # times the limit of position: no arm is there
FAR_SHARE = 0.1  # of the rows: degrees are far consistently, a spike is not
FAST = 3.0  # times v_max: no drive does that
FAST_SHARE = 0.05  # of the windows, for the same reason
JUMP = np.pi  # [rad] in one step: an angle wrapped to one turn jumps by 2 pi
JUMP_SPEED = 30.0  # [rad/s] the fastest arms reach 11


class Limits(Protocol):
    """What is needed of `steelyard.robot.limits.JointLimits`; infinite where there is no limit."""

    @property
    def q_min(self) -> Array:
        """Lowest position, (n,) [rad or m]."""

    @property
    def q_max(self) -> Array:
        """Highest position, (n,) [rad or m]."""

    @property
    def v_max(self) -> Array:
        """Largest speed, (n,) [rad/s or m/s]."""

    @property
    def tau_max(self) -> Array:
        """Largest torque, (n,) [Nm or N]."""


def other_joints(recording: Recording, expected: int | None) -> Iterator[Finding]:
    """Whether the recording has another number of joints than the arm.

    Args:
        recording: as measured
        expected: number of joints of the arm; None when nobody knows
    """
    if expected is not None and expected != recording.n:
        text = (
            f"the recording has {many(recording.n, 'joint')}, the arm has {expected}:"
            " another arm's log, or columns missing?"
        )
        yield Finding("joint_count", "error", text, Place(joints=tuple(recording.joint_names)))


def degrees(recording: Recording, limits: Limits | None) -> Iterator[Finding]:
    """Whether positions are in degrees: consistently far beyond the limits, or too fast for the drives.

    Without limits two joints must agree, since one may turn without stops.

    Args:
        recording: as measured
        limits: limits of the joints; None when nobody knows
    """
    reach = np.full(recording.n, np.inf)
    fast = np.zeros(recording.n, bool)
    if limits is not None:
        reach = np.maximum(np.abs(limits.q_min), np.abs(limits.q_max))
        change, _, time_s = _windows(recording)
        fast = (np.abs(change) > FAST * limits.v_max * time_s[:, None]).sum(axis=0) > FAST_SHARE * len(change)
    bounded = np.isfinite(reach)
    q = np.abs(_finite(recording.q))
    far = (q > np.where(bounded, REACH * reach, TURNS)).mean(axis=0) > FAR_SHARE
    if not (far | fast).any():
        return
    sure = bool((far & bounded | fast).any() or far.sum() > 1)
    place = Place("q", names_of(recording, far | fast))
    cure = "write it anew with 'steelyard check FILE --degrees -o NEW.parquet' (in Python: degrees=True)"
    meaning = f"degrees (or motor angles), not joint angles in radians; if degrees, {cure}"
    if not sure:
        meaning = f"degrees, or a joint without stops? If degrees, {cure}"
    largest = np.fmax.reduce(q[:, far | fast], axis=None)
    text = f"q reaches {largest:.4g} ({', '.join(place.joints)}): {meaning}"
    yield Finding("degrees", "error" if sure else "warning", text, place)


def velocity(recording: Recording) -> Iterator[Finding]:
    """Whether v contradicts the change of q: another unit, sign, order or signal.

    Args:
        recording: as measured
    """
    change, integral, _ = _windows(recording)
    if recording.v is None or len(change) == 0:
        return
    yy, xx, xy = (
        (a * b).mean(axis=0) for a, b in ((change, change), (integral, integral), (integral, change))
    )
    moved = np.maximum(xx, yy) > WINDOW_MOTION**2
    tiny = np.finfo(float).tiny
    correlation = xy / np.sqrt(np.maximum(xx * yy, tiny))
    ratio = np.copysign(np.sqrt(xx / np.maximum(yy, tiny)), xy)
    verdicts = np.array([_verdict(float(c), float(r)) for c, r in zip(correlation, ratio, strict=True)])
    for verdict in sorted(set(verdicts[moved]) - {""}):
        guilty = moved & (verdicts == verdict)
        place = Place("v", names_of(recording, guilty))
        text = (
            f"v contradicts the change of q ({', '.join(place.joints)}; ratio {np.median(ratio[guilty]):.3g},"
            f" correlation {np.median(correlation[guilty]):.2f}): {verdict}"
        )
        yield Finding("velocity", "error", text, place)


def _verdict(correlation: float, ratio: float) -> str:
    if abs(correlation) < FOLLOWS:
        return "v is another signal, or its columns are in another order"
    sign = " and has the opposite sign" if ratio < 0 else ""
    for scale, words in ((DEGREE, "v is in degrees/s"), (1 / DEGREE, "v is in rad/s but q in degrees")):
        if abs(abs(ratio) / scale - 1) < SCALE:
            return words + sign
    if abs(abs(ratio) - 1) > SCALE:
        return "v is in another unit" + sign
    return "v has the opposite sign" if sign else ""


def still_joints(recording: Recording) -> Iterator[Finding]:
    """Which joints never move.

    Args:
        recording: as measured
    """
    q = _finite(recording.q)
    still = np.fmax.reduce(q) - np.fmin.reduce(q) < STILL
    if still.any():
        names = names_of(recording, still)
        who = (
            "no joint moves"
            if still.all()
            else f"{', '.join(names)} never move{'s' if len(names) == 1 else ''}"
        )
        text = f"{who} (less than {STILL:g} rad): what shows only in such motion stays unknown"
        yield Finding("still_joint", "warning", text, Place("q", names))


def jumps(recording: Recording) -> Iterator[Finding]:
    """Whether an angle jumps by more than half a turn from one row to the next.

    Args:
        recording: as measured
    """
    change = np.abs(np.diff(_finite(recording.q), axis=0))
    jumped = (change > JUMP) & (change > JUMP_SPEED * np.diff(recording.t)[:, None])
    if jumped.any():
        rows = np.flatnonzero(jumped.any(axis=1)) + 1
        place = place_of(recording, int(rows[0]), "q", joints=np.asarray(jumped.any(axis=0)))
        text = (
            f"q jumps by more than half a turn from one row to the next in {many(rows.size, 'row')},"
            f" first {where(place)}: unwrap the angles before differentiating"
        )
        yield Finding("jump", "error", text, place)


def outside_limits(recording: Recording, limits: Limits | None) -> Iterator[Finding]:
    """Which joints were outside their limits.

    Args:
        recording: as measured
        limits: limits of the joints; None when nobody knows
    """
    if limits is None:
        return
    outside = (recording.q < limits.q_min) | (recording.q > limits.q_max)
    for j in np.flatnonzero(outside.any(axis=0)):
        row = int(np.argmax(outside[:, j]))
        place = place_of(recording, row, "q", joints=np.arange(recording.n) == j)
        text = (
            f"q is outside [{limits.q_min[j]:.4g}, {limits.q_max[j]:.4g}]"
            f" in {many(int(outside[:, j].sum()), 'row')}, first {recording.q[row, j]:.4g}"
            f" {where(place)}: another zero, or another arm?"
        )
        yield Finding("position_limit", "warning", text, place)


def _windows(recording: Recording) -> tuple[Array, Array, Array]:
    """Change of q, integral of v (0 without v), both (M, n), and time (M,); no window has a gap or a NaN."""
    dt = np.diff(recording.t)
    rows = round(WINDOW_S * recording.rate_hz)
    starts = np.arange(0, len(dt) - rows + 1, max(rows, 1))
    if rows < 1 or starts.size == 0:
        return np.empty((0, recording.n)), np.empty((0, recording.n)), np.empty(0)
    q = _finite(recording.q)
    v = np.zeros_like(q) if recording.v is None else _finite(recording.v)
    end = starts[-1] + rows
    change = q[starts + rows] - q[starts]
    integral = np.add.reduceat((0.5 * (v[1:] + v[:-1]) * dt[:, None])[:end], starts)
    time_s = recording.t[starts + rows] - recording.t[starts]
    good = np.maximum.reduceat(dt[:end], starts) <= GAP_STEPS / recording.rate_hz
    good &= np.isfinite(change).all(axis=1) & np.isfinite(integral).all(axis=1)
    return change[good], integral[good], time_s[good]


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)
