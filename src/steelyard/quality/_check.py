"""The check of an arm's recording: table, joints, units, motion, torques.

Position q and velocity v are compared without differentiating: over windows of 0.1 s, the change of
q stands against the integral of v (trapezoids), which averages the noise instead of amplifying it.
With x the integral and y the change,

    correlation = x'y / (|x| |y|),    ratio = sign(x'y) |x| / |y|,

and v follows q when the first is near 1 and the second too. A ratio of 180/pi means degrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask
from steelyard.quality._jolts import find_jolts
from steelyard.quality._position_jumps import find_position_jumps
from steelyard.quality._table import (
    GAP_STEPS,
    MIN_ROWS,
    Finding,
    Place,
    QualityReport,
    check_jumps,
    check_signals,
    counted,
    repeated_rows,
)
from steelyard.recording import Recording
from steelyard.recording._layout import SINGLE_CHANNELS
from steelyard.recording._notes import NoteKind, has_kind

SATURATED_TORQUE = 0.999
"""Torque of a saturated drive, over tau_max; the published limit is rounded."""

_MAX_POSTURE_RATE_HZ = 1.0  # of recordings whose rows are postures
_MIN_SMOOTH_ROWS = 200  # to recognise a motion
_MAX_SMOOTH_RATIO = 0.5  # RMS of second differences over that of first ones, along a motion
_MIN_STROKE = 0.01  # [rad]; a joint that moves less shows neither inertia nor friction
_WINDOW_S = 0.1  # [s]; long compared with noise and lag, short compared with a swing
_MIN_WINDOW_MOTION = 2e-3  # [rad], RMS over the windows; below it q and v differ by noise
_MIN_CORRELATION = 0.8  # of v and the change of q: 0.9999 in real logs, 0.5 for a wrong column
_MAX_SCALE_ERROR = 0.1  # of v: 0.001 in real logs, some per cent where v is filtered
_DEGREES_PER_RADIAN = 180.0 / np.pi
_MAX_POSITION = 4.0 * np.pi  # [rad] of a joint with end stops, twice what arms reach
_MIN_TURN_COUNT = 8.0 * np.pi  # [rad]; a joint without end stops at such positions counts turns
_MAX_REACH_RATIO = 2.0  # of positions, over the limits of the joint
_FAR_ROWS_SHARE = 0.1  # of the rows; single spikes are not degrees
_MAX_SPEED_RATIO = 3.0  # of speeds, over v_max
_FAST_WINDOWS_SHARE = 0.05  # of the windows; single spikes are not degrees
_SATURATED_ROWS = 5  # equal measured torques in a row while the arm moves
_SATURATED_FACTOR = 3.0  # over the number of equal rows elsewhere in the channel (held samples)
_SATURATED_MOTION = 1e-3  # [rad] of any joint meanwhile; a simulated arm at rest repeats torques
_MAX_TORQUE_RATIO = 2.0  # of torques, over tau_max
_MAX_VALUE = {
    "q": 1e5,
    "v": 1e5,
    "a": 1e6,
    "tau": 1e6,
    "current": 1e6,
    "wrench": 1e6,
    "temperature": 1e4,
}
"""Bounds of measured signals in any unit, by the first word of their name."""

_POSITIONS = ("q", "q_commanded")
_MAX_SPIKES_SHARE = 0.01  # of the rows
_MEASURED = ("tau", "current", "wrench")
_TARGETS = ("tau_target", "current_target")


class _LimitsLike(Protocol):
    """The required part of `steelyard.robot.JointLimits`; infinite where there is no limit."""

    @property
    def q_min(self) -> Array: ...

    @property
    def q_max(self) -> Array: ...

    @property
    def v_max(self) -> Array: ...

    @property
    def tau_max(self) -> Array: ...


def check(
    recording: Recording,
    *,
    limits: _LimitsLike | None = None,
    gain: ArrayLike | None = None,
) -> QualityReport:
    """The findings about a recording, the worst first.

    Args:
        limits: of the arm's joints (`robot.limits`): their number, reach, speed and torque
        gain: of the drives, (n,) [Nm/A], to compare motor currents with the limits of torque; None
            for no comparison
    """
    if limits is None:
        joints = recording.n
    else:
        joints = int(np.size(limits.q_min))
    findings = [
        *_other_joints(recording, joints),
        *_damaged_end(recording),
        *_impossible(recording),
        *_position_jumps(recording),
    ]
    if joints != recording.n:
        limits = None
    unmeasured = [*_unmeasured(recording)]
    findings += unmeasured
    recording = with_zeros_for_unmeasured(recording)
    signals = {
        channel: getattr(recording, channel)
        for channel in recording.channels
        if channel not in SINGLE_CHANNELS
    }
    names = {channel: recording.joint_names for channel in signals if channel != "wrench"}
    findings += check_signals(recording.t, signals, names)
    recording = without_impossible(recording)
    if milliseconds := [*_milliseconds(recording)]:
        findings = [finding for finding in findings if finding.kind != "clock_unit"]
        findings += milliseconds
    findings += [*_degrees(recording, limits), *_velocity(recording)]
    findings += [
        *check_jumps(recording.t, recording.q, "q", recording.joint_names),
        *_still(recording),
    ]
    if any(finding.kind == "jump" for finding in findings):  # that finding says more
        findings = [finding for finding in findings if finding.kind != "position_jump"]
    findings += [*_flat_effort(recording), *_saturation(recording, repeated_rows(signals))]
    findings += _jolts(recording)
    if limits is not None:
        findings += [
            *_at_torque_limit(recording, limits),
            *_beyond_torque_limit(recording, limits, gain),
        ]
        if not any(finding.kind == "degrees" for finding in findings):
            findings += _outside_limits(recording, limits)
    findings.sort(key=lambda finding: ("error", "warning", "info").index(finding.severity))
    return QualityReport(
        source=recording.source,
        rows=len(recording),
        joints=recording.n,
        duration_s=recording.duration_s,
        rate_hz=recording.rate_hz,
        findings=tuple(findings),
    )


def _place(recording: Recording, channel: str, joints: Mask) -> Place:
    return Place.of(channel, recording.joint_names, joints)


def _row_of_joint(recording: Recording, channel: str, j: int, row: int) -> Place:
    only = np.arange(recording.n) == j
    return Place.of(channel, recording.joint_names, only, t=recording.t, row=row)


def _damaged_end(recording: Recording) -> Iterator[Finding]:
    """Whether the file was read only up to its last whole row."""
    for note in recording.notes:
        if has_kind(note, NoteKind.DAMAGED_END):
            place = Place(row=len(recording), t_s=recording.duration_s)
            yield Finding("damaged_end", "warning", note, place)


def _other_joints(recording: Recording, expected: int) -> Iterator[Finding]:
    """Whether the recording has another number of joints than the arm."""
    if expected != recording.n:
        text = (
            f"the recording has {counted(recording.n, 'joint')}, the arm has {expected}:"
            " another arm's log, or columns missing?"
        )
        yield Finding("joint_count", "error", text, Place(joints=tuple(recording.joint_names)))


def _milliseconds(recording: Recording) -> Iterator[Finding]:
    """Whether the clock counts milliseconds: slow rows whose positions follow a smooth motion.

    From one posture to another the change of position is as large as the positions differ, and its
    differences are larger still; along a sampled motion they are small.
    """
    if not 0 < recording.rate_hz < _MAX_POSTURE_RATE_HZ or len(recording) < _MIN_SMOOTH_ROWS:
        return
    first = np.diff(_finite(recording.q), axis=0)
    second = np.diff(first, axis=0)
    change = np.sqrt(np.nanmean(first**2))
    if not np.sqrt(np.nanmean(second**2)) < _MAX_SMOOTH_RATIO * change:
        return
    text = (
        f"the median step is {1 / recording.rate_hz:.4g} s, but the positions follow a smooth"
        f" motion as at {1e3 * recording.rate_hz:.4g} Hz: the clock counts milliseconds; name its"
        " column with `columns={'t_ms': 'NAME'}`"
    )
    yield Finding("clock_unit", "error", text)


def _degrees(recording: Recording, limits: _LimitsLike | None) -> Iterator[Finding]:
    """Whether positions are in degrees: far beyond the limits in many rows, or too fast.

    Without limits this needs two joints, or one that is many turns away, since a single joint may
    have no end stops.
    """
    reach = np.full(recording.n, np.inf)
    fast = np.zeros(recording.n, bool)
    if limits is not None:
        reach = np.maximum(np.abs(limits.q_min), np.abs(limits.q_max))
        change, _, time_s = _windows(recording)
        often = _FAST_WINDOWS_SHARE * len(change)
        fast = (np.abs(change) > _MAX_SPEED_RATIO * limits.v_max * time_s[:, None]).sum(
            axis=0
        ) > often
    bounded = np.isfinite(reach)
    q = np.abs(_finite(recording.q))
    far = (q > np.where(bounded, _MAX_REACH_RATIO * reach, _MAX_POSITION)).mean(
        axis=0
    ) > _FAR_ROWS_SHARE
    if not (far | fast).any():
        return
    beyond = (q > _MIN_TURN_COUNT).mean(axis=0) > _FAR_ROWS_SHARE
    sure = bool((far & bounded | fast).any() or far.sum() > 1 or beyond.any())
    place = _place(recording, "q", far | fast)
    advice = "if degrees, read the file with `degrees=True`"
    meaning = f"degrees (or motor angles), not joint angles in radians; {advice}"
    if beyond.sum() == 1:
        meaning += "; if the joint counts its turns, subtract whole turns"
    elif not beyond.any():
        meaning += "; or the recording is of another arm"
    if not sure:
        meaning = f"degrees, or a joint without end stops? {advice.capitalize()}"
    largest = np.fmax.reduce(q[:, far | fast], axis=None)
    text = f"q reaches {largest:.4g} ({', '.join(place.joints)}): {meaning}"
    yield Finding("degrees", "error" if sure else "warning", text, place)


def without_impossible(recording: Recording) -> Recording:
    """The recording with NaN in place of values that are impossible in any unit.

    Positions that jump away and back are no values of the arm, either (`_position_jumps`).
    """
    changed: dict[str, Any] = {}
    for name in recording.channels:
        if name in SINGLE_CHANNELS:
            continue
        values = getattr(recording, name)
        if (beyond := np.abs(values) > _MAX_VALUE[name.split("_")[0]]).any():
            changed[name] = np.where(beyond, np.nan, values)
    for name, values in _possible_positions(recording):
        if (broken := find_position_jumps(recording.t, values).broken).any():
            changed[name] = np.where(broken, np.nan, values)
    if changed:
        return replace(recording, **changed)
    return recording


def _possible_positions(recording: Recording) -> Iterator[tuple[str, Array]]:
    """The names of the positions of a recording, and their possible values."""
    for name in _POSITIONS:
        values = getattr(recording, name)
        if values is not None:
            yield name, np.where(np.abs(values) > _MAX_VALUE["q"], np.nan, values)


def _position_jumps(recording: Recording) -> Iterator[Finding]:
    """Which positions jump away and back, and which jump and stay."""
    for name, values in _possible_positions(recording):
        jumps = find_position_jumps(recording.t, values)
        if jumps.broken.any():
            rows, place = _rows_and_place(recording, name, jumps.broken)
            text = (
                f"{name} jumps away and back, as broken readings do: {rows} left out, first {place}"
            )
            yield Finding("broken_position", "warning", text, place)
        if jumps.lasting.any():
            rows, place = _rows_and_place(recording, name, jumps.lasting)
            text = (
                f"{name} jumps to another place in {rows}, first {place}: were rows lost, did the"
                " driver stand still, or did an encoder slip?"
            )
            yield Finding("position_jump", "warning", text, place)


def _rows_and_place(recording: Recording, channel: str, found: Mask) -> tuple[str, Place]:
    """How many rows a mask, (N, n), has, and the place of the first one."""
    rows = found.any(axis=1)
    joints = np.asarray(found.any(axis=0))
    first = int(rows.argmax())
    place = Place.of(channel, recording.joint_names, joints, t=recording.t, row=first)
    return counted(int(rows.sum()), "row"), place


def _impossible(recording: Recording) -> Iterator[Finding]:
    """Which signals have impossible values: a few are left out, many are an error."""
    for name in recording.channels:
        if name in SINGLE_CHANNELS:
            continue
        values = np.abs(_finite(getattr(recording, name)))
        beyond = values > _MAX_VALUE[name.split("_")[0]]
        if not beyond.any():
            continue
        rows = beyond.any(axis=1)
        names = () if name == "wrench" else recording.joint_names
        place = Place.of(
            name, names, np.asarray(beyond.any(axis=0)), t=recording.t, row=int(rows.argmax())
        )
        text = f"{name} reaches {np.fmax.reduce(values, axis=None):.3g}: impossible for an arm;"
        if rows.mean() > _MAX_SPIKES_SHARE:
            yield Finding("impossible", "error", f"{text} the file is damaged", place)
        else:
            words = f"{text} {counted(int(rows.sum()), 'row')} left out, first {place}"
            yield Finding("impossible", "warning", words, place)


def _velocity(recording: Recording) -> Iterator[Finding]:
    """Whether v contradicts the change of q: another unit, sign, order or signal."""
    change, integral, _ = _windows(recording)
    if recording.v is None or len(change) == 0:
        return
    yy, xx, xy = (
        (a * b).mean(axis=0)
        for a, b in ((change, change), (integral, integral), (integral, change))
    )
    moved = np.maximum(xx, yy) > _MIN_WINDOW_MOTION**2
    tiny = np.finfo(float).tiny
    correlation = xy / np.sqrt(np.maximum(xx * yy, tiny))
    ratio = np.copysign(np.sqrt(xx / np.maximum(yy, tiny)), xy)
    faults = np.array(
        [_fault_of(float(c), float(r)) for c, r in zip(correlation, ratio, strict=True)]
    )
    for fault in sorted(set(faults[moved]) - {""}):
        faulty = moved & (faults == fault)
        place = _place(recording, "v", faulty)
        text = (
            f"v contradicts the change of q ({', '.join(place.joints)};"
            f" ratio {np.median(ratio[faulty]):.3g},"
            f" correlation {np.median(correlation[faulty]):.2f}): {fault}"
        )
        yield Finding("velocity", "error", text, place)


def _fault_of(correlation: float, ratio: float) -> str:
    if abs(correlation) < _MIN_CORRELATION:
        return "v is another signal, or its columns are in another order"
    if ratio < 0:
        sign = " and has the opposite sign"
    else:
        sign = ""
    for scale, words in (
        (_DEGREES_PER_RADIAN, "v is in degrees/s"),
        (1 / _DEGREES_PER_RADIAN, "v is in rad/s but q in degrees"),
    ):
        if abs(abs(ratio) / scale - 1) < _MAX_SCALE_ERROR:
            return words + sign
    if abs(abs(ratio) - 1) > _MAX_SCALE_ERROR:
        return "v is in another unit" + sign
    if sign:
        return "v has the opposite sign"
    return ""


def _windows(recording: Recording) -> tuple[Array, Array, Array]:
    """Change of q and integral of v in windows, (M, n) each, and their durations, (M,) [s].

    The integral is 0 without v. Windows with a gap or NaN are left out.
    """
    dt = np.diff(recording.t)
    rows = round(_WINDOW_S * recording.rate_hz)
    starts = np.arange(0, len(dt) - rows + 1, max(rows, 1))
    if rows < 1 or starts.size == 0:
        return np.empty((0, recording.n)), np.empty((0, recording.n)), np.empty(0)
    q = _finite(recording.q)
    if recording.v is None:
        v = np.zeros_like(q)
    else:
        v = _finite(recording.v)
    end = starts[-1] + rows
    change = q[starts + rows] - q[starts]
    integral = np.add.reduceat((0.5 * (v[1:] + v[:-1]) * dt[:, None])[:end], starts)
    time_s = recording.t[starts + rows] - recording.t[starts]
    good = np.maximum.reduceat(dt[:end], starts) <= GAP_STEPS / recording.rate_hz
    good &= np.isfinite(change).all(axis=1) & np.isfinite(integral).all(axis=1)
    return change[good], integral[good], time_s[good]


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)


def moving_joints(recording: Recording) -> Mask:
    """Which joints of a recording move, (n,)."""
    q = _finite(recording.q)
    return np.asarray(np.fmax.reduce(q) - np.fmin.reduce(q) >= _MIN_STROKE)


def _still(recording: Recording) -> Iterator[Finding]:
    """Which joints never move."""
    still = ~moving_joints(recording)
    if still.any():
        place = _place(recording, "q", still)
        subject = f"{', '.join(place.joints)} never move{'s' if len(place.joints) == 1 else ''}"
        if still.all():
            subject = "no joint moves"
        text = (
            f"{subject} (less than {_MIN_STROKE:g} rad): parameters that only this motion would"
            " show stay unknown"
        )
        yield Finding("still_joint", "warning", text, place)


def _outside_limits(recording: Recording, limits: _LimitsLike) -> Iterator[Finding]:
    """Which joints were outside their limits."""
    outside = (recording.q < limits.q_min) | (recording.q > limits.q_max)
    for j, rows, place in _joints_in(recording, "q", recording.q, outside):
        words = f"q is outside [{limits.q_min[j]:.4g}, {limits.q_max[j]:.4g}]"
        yield Finding(
            "position_limit", "warning", f"{words} {rows}: another zero, or another arm?", place
        )


def _joints_in(
    recording: Recording, channel: str, values: Array, which: Mask
) -> Iterator[tuple[int, str, Place]]:
    """Each joint with rows in a mask, (N, n): its index, a description, and the first place."""
    for j in np.flatnonzero(which.any(axis=0)).tolist():
        row = int(np.argmax(which[:, j]))
        place = _row_of_joint(recording, channel, j, row)
        rows = counted(int(which[:, j].sum()), "row")
        yield j, f"in {rows}, first {values[row, j]:.4g} {place}", place


def _jolts(recording: Recording) -> Iterator[Finding]:
    """Where torques of several moving joints jump together."""
    for jolt in find_jolts(recording):
        names = tuple(recording.joint_names[j] for j in jolt.joints)
        text = (
            f"a jolt at {jolt.peak_s:.2f} s: the torques of {', '.join(names)} jump together;"
            f" rows from {jolt.start_s:.2f} to {jolt.end_s:.2f} s do not count in fits"
        )
        yield Finding("jolt", "warning", text, Place(joints=names, t_s=jolt.peak_s))


def unmeasured_efforts(recording: Recording, channel: str) -> Mask:
    """Which joints move but have a torque or current that is constant or never a number, (n,).

    Args:
        channel: tau or current
    """
    values = getattr(recording, channel)
    if values is None or len(recording) < MIN_ROWS:
        return np.zeros(recording.n, bool)
    finite = np.isfinite(values)
    first = np.where(finite.any(axis=0), values[finite.argmax(axis=0), range(recording.n)], 0.0)
    constant = ((values == first) | ~finite).all(axis=0)
    return np.asarray(constant & moving_joints(recording))


def with_zeros_for_unmeasured(recording: Recording) -> Recording:
    """The recording with 0 for torques and currents of moving joints that were not measured."""
    changed: dict[str, Any] = {}
    for channel in ("tau", "current"):
        unmeasured = unmeasured_efforts(recording, channel)
        if unmeasured.any() and not unmeasured.all():
            changed[channel] = np.where(unmeasured, 0.0, getattr(recording, channel))
    if changed:
        return replace(recording, **changed)
    return recording


def _unmeasured(recording: Recording) -> Iterator[Finding]:
    """Which joints move without a torque or current that was measured."""
    for channel in ("tau", "current"):
        unmeasured = unmeasured_efforts(recording, channel)
        if unmeasured.any() and not unmeasured.all():
            place = _place(recording, channel, unmeasured)
            joints = ", ".join(place.joints)
            text = (
                f"{channel} of {joints} was not measured or not logged (one value, or no number at"
                " all, while the joint moves): its rows are left out, and what only they show stays"
                " unknown"
            )
            yield Finding("unmeasured", "warning", text, place)


def _flat_effort(recording: Recording) -> Iterator[Finding]:
    """Which torques, currents and forces are missing or constant."""
    if not set(_MEASURED) & set(recording.channels):
        text = "no torque, current or wrench is recorded: the motion alone does not show masses"
        yield Finding("no_effort", "warning", text)
    for channel in recording.channels:
        values = getattr(recording, channel)
        if channel not in (*_MEASURED, *_TARGETS) or len(recording) < MIN_ROWS:
            continue
        flat = (values == values[0]).all(axis=0)
        if channel != "wrench":
            unmeasured = unmeasured_efforts(recording, channel)
            flat &= ~unmeasured | unmeasured.all()
        if flat.any():
            if channel == "wrench":
                place = Place(channel)
            else:
                place = _place(recording, channel, flat)
            if flat.all():
                columns = "every column"
            else:
                columns = ", ".join(place.joints) or counted(int(flat.sum()), "column")
            if channel in _TARGETS:
                yield Finding("flat", "info", f"{channel} is constant ({columns})", place)
            else:
                text = f"{channel} is constant ({columns}): it was not measured, or not logged"
                useless = flat.all() and channel != "wrench"  # joint torques may still be good
                yield Finding("flat", "error" if useless else "warning", text, place)


def saturated(values: Array, q: Array) -> Mask:
    """Where torques or currents stay at their own extreme while the arm moves, (N, n).

    Args:
        values: torques or currents, (N, n)
        q: positions, (N, n) [rad or m]
    """
    out = np.zeros(values.shape, bool)
    for j, column in enumerate(values.T):
        for first, rows in _constant_at_extremes(column):
            if _moves(q[first : first + rows]):
                out[:, j] |= column == column[first]
    return out


def _saturation(recording: Recording, repeated: Mask) -> Iterator[Finding]:
    """Which torques and currents stay at their own extreme while the arm moves."""
    fresh = np.flatnonzero(~repeated)
    for channel in ("tau", "current"):
        values = getattr(recording, channel)
        for j in range(0 if values is None else recording.n):
            stretches = _constant_at_extremes(values[fresh, j])
            stretches = [
                (first, rows)
                for first, rows in stretches
                if _moves(recording.q[fresh[first : first + rows]])
            ]
            if stretches:
                first, rows = max(stretches, key=itemgetter(1))
                place = _row_of_joint(recording, channel, j, int(fresh[first]))
                text = (
                    f"{channel} stays at its extreme {values[fresh[first], j]:.5g} for {rows} rows,"
                    f" {place}: saturated, such rows are left out"
                )
                yield Finding("saturation", "warning", text, place)


def _moves(q: Array) -> bool:
    return bool((q.max(axis=0) > q.min(axis=0) + _SATURATED_MOTION).any())


def _constant_at_extremes(values: Array) -> list[tuple[int, int]]:
    """First row and length of suspiciously long stretches at the largest or smallest value."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    lengths = np.diff(np.append(starts, len(values)))
    ends = [
        values[starts] == extreme for extreme in (np.fmax.reduce(values), np.fmin.reduce(values))
    ]
    others = lengths[~(ends[0] | ends[1])]
    if not others.size:
        return []
    need = max(float(_SATURATED_ROWS), _SATURATED_FACTOR * float(np.percentile(others, 99)))
    longest = [int(np.argmax(np.where(end, lengths, 0))) for end in ends]
    return [(int(starts[k]), int(lengths[k])) for k in longest if lengths[k] >= need]


def _at_torque_limit(recording: Recording, limits: _LimitsLike) -> Iterator[Finding]:
    """Which torques reach the limit of the drive."""
    if recording.tau is None:
        return
    bound = limits.tau_max
    beyond = np.abs(recording.tau) >= SATURATED_TORQUE * bound
    for j, rows, place in _joints_in(recording, "tau", recording.tau, beyond):
        words = f"tau is at or beyond the limit of {bound[j]:.4g} {rows}"
        yield Finding("saturation", "warning", f"{words}: saturated, or another unit", place)


def _beyond_torque_limit(
    recording: Recording, limits: _LimitsLike, gain: ArrayLike | None
) -> Iterator[Finding]:
    """Which torques exceed the limit of the drive by far: another unit, or another drive."""
    bound = limits.tau_max
    torques = []
    if recording.tau is not None:
        torques.append(
            ("tau", recording.tau, "another unit, torques before the gears, or another arm?")
        )
    if recording.current is not None and gain is not None:
        question = (
            "is it a torque in Nm already (then read it as tau), or the gain of another drive?"
        )
        torques.append(("current x gain", recording.current * np.asarray(gain), question))
    for what, values, question in torques:
        torque = np.abs(_finite(values))
        beyond = (torque > _MAX_TORQUE_RATIO * bound).mean(axis=0) > _MAX_SPIKES_SHARE
        if beyond.any():
            largest = np.fmax.reduce(torque)
            j = int(np.argmax(np.where(beyond, largest / bound, 0.0)))
            place = _place(recording, what.split()[0], np.arange(recording.n) == j)
            words = (
                f"{what} reaches {largest[j]:,.0f} Nm ({place.joints[0]}), the limit is"
                f" {bound[j]:,.4g}"
            )
            yield Finding("torque_limit", "error", f"{words}: {question}", place)
