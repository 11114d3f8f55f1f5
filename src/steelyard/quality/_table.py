"""Findings, and checks of any table of signals: clock, repeated rows, NaN, jumping angles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask
from steelyard._units import in_seconds
from steelyard.errors import InvalidRecording
from steelyard.recording import checked_clock, default_gap_s, median_rate_hz
from steelyard.verdict import Doubt, DoubtKind, Verdict

Severity = Literal["error", "warning", "info"]

GAP_STEPS = 3.0
"""A longer step, in median steps, is a gap."""

MIN_ROWS = 10
"""Rows that smoothed second derivatives need at least."""

_MIN_JITTER = 0.2  # deviation of a step from the median, relative; derivatives are off by as much
_MAX_REPEATED_SHARE = 0.01  # of the rows; fewer repeated rows do no harm
_MIN_RATE_HZ = 1.0  # slower tables have a row for each posture, or a clock in milliseconds
_MIN_DURATION_S = 2.0  # one swing of a joint, which does not yet give the mass to 1 %
_STEP_TOLERANCE = 1e-6  # of steps, relative: they are differences of large times
_JUMP = np.pi  # [rad] in one step; an angle that is wrapped to one turn jumps by 2 pi
_JUMP_SPEED = 30.0  # [rad/s]; the fastest arms reach 11


@dataclass(frozen=True)
class Place:
    """Where something was found; None and empty where it holds for the whole recording.

    Attributes:
        channel: name of the signal
        joints: names of the joints
        row: row of the recording, counted from 1
        t_s: time since the first row, [s]
    """

    channel: str | None = None
    joints: tuple[str, ...] = ()
    row: int | None = None
    t_s: float | None = None

    @classmethod
    def of(
        cls,
        channel: str | None,
        names: Sequence[str],
        which: Mask,
        *,
        t: Array | None = None,
        row: int = 0,
    ) -> Place:
        """The place of some columns of a signal, with a row where times are given.

        Args:
            channel: name of the signal
            names: of its columns
            which: mask of the columns, (k,)
            t: times of the rows, (N,) [s]; None for all rows
            row: index of the row, from 0
        """
        joints = tuple(name for name, chosen in zip(names, which, strict=False) if chosen)
        if t is None:
            return cls(channel, joints)
        return cls(channel, joints, row + 1, float(t[row] - t[0]))

    def __str__(self) -> str:
        """The place of a row, in words."""
        if self.joints:
            joints = f" ({', '.join(self.joints)})"
        else:
            joints = ""
        return f"at {self.t_s:.6g} s in row {self.row}{joints}"


@dataclass(frozen=True)
class Finding:
    """One thing to know about a recording.

    Attributes:
        kind: a fixed word: rate, jitter, gap, repeated_rows, saturation, nan, degrees, velocity,
            ...
        severity: 'error', 'warning' or 'info'
        sentence: what it is, where, and what to do
        place: where it is, for programs
    """

    kind: str
    severity: Severity
    sentence: str
    place: Place = Place()


@dataclass(frozen=True)
class QualityReport:
    """The findings about a recording, the worst first.

    Attributes:
        source: description of the origin of the recording
        rows: number of rows
        joints: number of joints
        duration_s: from the first to the last row, [s]
        rate_hz: rows per second, from the median step, [Hz]
        findings: the worst first
    """

    source: str
    rows: int
    joints: int
    duration_s: float
    rate_hz: float
    findings: tuple[Finding, ...]

    @property
    def counts(self) -> dict[Severity, int]:
        """The number of findings of each severity."""
        found = [finding.severity for finding in self.findings]
        return {
            "error": found.count("error"),
            "warning": found.count("warning"),
            "info": found.count("info"),
        }

    @property
    def worst(self) -> Severity | None:
        """The worst severity, None when nothing was found."""
        return next((severity for severity, count in self.counts.items() if count), None)

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings do not count."""
        return self.counts["error"] == 0

    @property
    def verdict(self) -> Verdict:
        """Whether the recording may be used: errors forbid it, warnings do not."""
        doubts = [
            Doubt(DoubtKind.RECORDING, f.sentence, blocks=f.severity == "error")
            for f in self.findings
            if f.severity != "info"
        ]
        return Verdict(
            f"{self.rows} rows of {counted(self.joints, 'joint')}, {in_seconds(self.duration_s)}",
            tuple(doubts),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        return tuple(finding.sentence for finding in self.findings if finding.severity == "warning")

    def __str__(self) -> str:
        return "\n".join([str(self.verdict), *(f"- {each.sentence}" for each in self.findings)])

    def __repr__(self) -> str:
        counts = ", ".join(counted(count, severity) for severity, count in self.counts.items())
        return f"<QualityReport: {self.verdict.summary}; {counts}>"

    def require_ok(self) -> None:
        """Raises an error if the recording has an error."""
        if not self.ok:
            raise InvalidRecording(f"the recording is not fit for use: {self.findings[0].sentence}")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, words and lists, for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        for finding in findings:
            finding["place"]["joints"] = list(finding["place"]["joints"])
        summary = {"ok": self.ok, "worst": self.worst, "counts": dict(self.counts)}
        return {**asdict(self), **summary, "findings": findings}


def check_signals(
    t: ArrayLike, signals: Mapping[str, Array], names: Mapping[str, Sequence[str]] | None = None
) -> tuple[Finding, ...]:
    """The findings about the rows of a table, of joints or a wrist sensor: NaN, clock, repeats.

    Args:
        t: times, (N,) [s]
        signals: by name, each (N, k)
        names: of the columns of a signal, where they have some
    """
    clock = checked_clock(t)
    columns = names or {}
    bad = [
        f for name, x in signals.items() for f in _not_finite(clock, name, x, columns.get(name, ()))
    ]
    return (*bad, *_steps(clock), *_standing(clock), *_repeats(clock, repeated_rows(signals)))


def check_jumps(
    t: ArrayLike, angles: ArrayLike, channel: str = "q", names: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """A finding if angles jump by more than half a turn from one row to the next.

    Args:
        t: times, (N,) [s]
        angles: (N, k) [rad]
        channel: name of the signal
        names: of its columns
    """
    clock = checked_clock(t)
    values = np.asarray(angles, dtype=float)
    change = np.abs(np.diff(np.where(np.isfinite(values), values, np.nan), axis=0))
    jumped = (change > _JUMP) & (change > _JUMP_SPEED * np.diff(clock)[:, None])
    if not jumped.any():
        return ()
    rows = np.flatnonzero(jumped.any(axis=1)) + 1
    place = Place.of(channel, names, np.asarray(jumped.any(axis=0)), t=clock, row=int(rows[0]))
    text = (
        f"{channel} jumps by more than half a turn from one row to the next in"
        f" {counted(rows.size, 'row')},"
        f" first {place}: unwrap the angles before differentiating"
    )
    return (Finding("jump", "error", text, place),)


def repeated_rows(signals: Mapping[str, Array]) -> Mask:
    """Which rows repeat all signals, (N, k) each, of the row before, (N,)."""
    same = np.ones(len(next(iter(signals.values()))), bool)
    same[0] = False
    for x in signals.values():
        same[1:] &= ((x[1:] == x[:-1]) | (np.isnan(x[1:]) & np.isnan(x[:-1]))).all(axis=1)
    return same


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the singular or plural."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun}s"


def _not_finite(t: Array, channel: str, values: Array, names: Sequence[str]) -> Iterator[Finding]:
    bad = ~np.isfinite(values)
    if bad.any():
        rows = bad.any(axis=1)
        place = Place.of(channel, names, np.asarray(bad.any(axis=0)), t=t, row=int(np.argmax(rows)))
        text = (
            f"{channel} is not a number {counted(int(bad.sum()), 'time')} in"
            f" {counted(int(rows.sum()), 'row')},"
            f" first {place}: these rows cannot be fitted"
        )
        yield Finding("nan", "warning", text, place)


def _steps(t: Array) -> Iterator[Finding]:
    """Rate, length, jitter and gaps."""
    dt = np.diff(t)
    duration_s = float(t[-1] - t[0])
    moving = dt[dt > 0]
    if len(t) < MIN_ROWS or moving.size == 0:
        text = f"{counted(len(t), 'row')} in {duration_s:g} s: nothing can be differentiated"
        yield Finding("short", "error", text)
        return
    step = float(np.median(moving))
    rate_hz = median_rate_hz(t)
    length = f"{len(t)} rows in {in_seconds(duration_s)}"
    yield Finding("rate", "info", f"{rate_hz:.4g} Hz (median step {1e3 * step:.4g} ms), {length}")
    if duration_s < _MIN_DURATION_S:
        text = f"{length} are too short for a good estimate: record more than {_MIN_DURATION_S:g} s"
        yield Finding("short", "warning", text)
    if rate_hz < _MIN_RATE_HZ:
        text = f"the median step is {step:.4g} s: single postures, or a clock in milliseconds?"
        yield Finding("clock_unit", "warning", text)
    yield from _jitter(moving, step)
    yield from _gaps(t, step)


def _jitter(moving: Array, step: float) -> Iterator[Finding]:
    off = np.abs(moving - step) >= _MIN_JITTER * step * (1 - _STEP_TOLERANCE)
    if off.any():
        share = float(off.mean())
        text = (
            f"{100 * share:.2g} % of the steps are off the median {1e3 * step:.4g} ms by"
            f" {100 * _MIN_JITTER:.0f} % or more ({1e3 * moving.min():.4g} to"
            f" {1e3 * moving.max():.4g} ms): resampled before differentiating"
        )
        yield Finding("jitter", "info", text)


def _gaps(t: Array, step: float) -> Iterator[Finding]:
    dt = np.diff(t)
    gaps = dt > GAP_STEPS * step * (1 + _STEP_TOLERANCE)
    if gaps.any():
        longest = int(np.argmax(dt))
        place = _row(t, longest)
        bridged = bool(dt[longest] <= default_gap_s(step))
        treatment = "nothing is fitted across it, each piece is used by itself"
        if bridged:
            treatment = "bridged by interpolation"
        text = (
            f"{counted(int(gaps.sum()), 'gap')} of more than {GAP_STEPS:.0f} steps, the longest"
            f" {in_seconds(dt[longest])} ({dt[longest] / step:.0f} steps) {place}: {treatment}"
        )
        yield Finding("gap", "info" if bridged else "warning", text, place)


def _standing(t: Array) -> Iterator[Finding]:
    """Rows with the time of the row before."""
    standing = np.diff(t) == 0
    if standing.any():
        place = _row(t, int(np.argmax(standing)) + 1)
        text = (
            f"{counted(int(standing.sum()), 'row')} with the time of the row before, first {place}:"
            " a coarse clock, or rows written twice"
        )
        yield Finding("repeated_times", "warning", text, place)


def _repeats(t: Array, repeated: Mask) -> Iterator[Finding]:
    """Rows with every signal of the row before at a later time."""
    same = repeated[1:] & (np.diff(t) != 0)
    if same.any():
        place = _row(t, int(np.argmax(same)) + 1)
        share = float(same.mean())
        text = (
            f"{counted(int(same.sum()), 'row')} ({100 * share:.2g} %) repeat every signal of the"
            f" row before at a later time, first {place}: the source measures more slowly than it"
            " was read, or the arm rests without noise"
        )
        yield Finding(
            "repeated_rows", "warning" if share > _MAX_REPEATED_SHARE else "info", text, place
        )


def _row(t: Array, row: int) -> Place:
    return Place(row=row + 1, t_s=float(t[row] - t[0]))
