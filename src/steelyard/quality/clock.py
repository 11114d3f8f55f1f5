"""Findings about the clock and the rows: rate, jitter, gaps, repeats, NaN, a damaged end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.arrays import Array, Mask
from steelyard.quality.report import Finding, Place, many, place_of, where
from steelyard.recording import Recording

DAMAGED_END = "damaged end"
"""How a note begins that tells of a file read only up to its last whole row."""

GAP_STEPS = 3.0
"""Longer than so many median steps is a gap: an interpolation would invent more rows than it keeps."""

JITTER = 0.2  # a step this far off the median bends a derivative taken at the median rate by as much
JITTER_SHARE = 0.01  # of the steps; rarer, it is an info, for resampling heals it unnoticed
REPEATED_SHARE = 0.01  # of the rows, as for jitter
SLOWEST_HZ = 1.0  # slower is a row for each posture, or a clock in milliseconds
SHORTEST_S = 2.0  # one swing of a joint; even on a good trajectory the mass is not known to 1 % by then
FEWEST_ROWS = 10  # a smoothed second derivative needs more
_ROUNDING = 1e-6  # relative, of steps that are differences of large times: 12 ms are 20 % more than 10 ms


def damaged_end(recording: Recording) -> Iterator[Finding]:
    """Whether the file was read only up to its last whole row.

    Args:
        recording: as measured
    """
    for note in recording.notes:
        if note.startswith(DAMAGED_END):
            place = Place(row=len(recording), t_s=recording.duration_s)
            yield Finding("damaged_end", "warning", note, place)


def not_finite(recording: Recording) -> Iterator[Finding]:
    """Which signals are NaN or infinite, and where.

    Args:
        recording: as measured
    """
    for channel in recording.channels:
        bad = ~np.isfinite(getattr(recording, channel))
        if bad.any():
            rows = bad.any(axis=1)
            joints = None if channel == "wrench" else bad.any(axis=0)
            place = place_of(recording, int(np.argmax(rows)), channel, joints=joints)
            text = (
                f"{channel} is not a number {many(int(bad.sum()), 'time')} in {many(int(rows.sum()), 'row')},"
                f" first {where(place)}: these rows cannot be fitted"
            )
            yield Finding("nan", "warning", text, place)


def steps(recording: Recording) -> Iterator[Finding]:
    """Rate, length, jitter and gaps.

    Args:
        recording: as measured
    """
    dt = np.diff(recording.t)
    moving = dt[dt > 0]
    if len(recording) < FEWEST_ROWS or moving.size == 0:
        text = f"{many(len(recording), 'row')} in {recording.duration_s:g} s: nothing can be differentiated"
        yield Finding("short", "error", text)
        return
    step, rate_hz = float(np.median(moving)), recording.rate_hz
    length = f"{len(recording)} rows in {recording.duration_s:.4g} s"
    yield Finding("rate", "info", f"{rate_hz:.4g} Hz (median step {1e3 * step:.4g} ms), {length}")
    if recording.duration_s < SHORTEST_S:
        text = f"{length} are too short for a good estimate: record more than {SHORTEST_S:g} s"
        yield Finding("short", "warning", text)
    if rate_hz < SLOWEST_HZ:
        text = f"the median step is {step:.4g} s: single postures, or a clock in milliseconds or finer?"
        yield Finding("clock_unit", "warning", text)
    yield from _jitter(moving, step)
    yield from _gaps(recording, dt, step)


def _jitter(moving: Array, step: float) -> Iterator[Finding]:
    off = np.abs(moving - step) >= JITTER * step * (1 - _ROUNDING)
    if off.any():
        share = float(off.mean())
        text = (
            f"{100 * share:.2g} % of the steps are off the median {1e3 * step:.4g} ms by"
            f" {100 * JITTER:.0f} % or more ({1e3 * moving.min():.4g} to {1e3 * moving.max():.4g} ms):"
            " resample before differentiating"
        )
        yield Finding("jitter", "warning" if share > JITTER_SHARE else "info", text)


def _gaps(recording: Recording, dt: Array, step: float) -> Iterator[Finding]:
    gaps = dt > GAP_STEPS * step * (1 + _ROUNDING)
    if gaps.any():
        longest = int(np.argmax(dt))
        place = place_of(recording, longest)
        text = (
            f"{many(int(gaps.sum()), 'gap')} of more than {GAP_STEPS:.0f} steps, the longest"
            f" {dt[longest]:.4g} s ({dt[longest] / step:.0f} steps) {where(place)}: do not fit across"
        )
        yield Finding("gap", "warning", text, place)


def repeats(recording: Recording) -> Iterator[Finding]:
    """Rows with the time, or with every signal, of the row before.

    Args:
        recording: as measured
    """
    standing = np.diff(recording.t) == 0
    if standing.any():
        place = place_of(recording, int(np.argmax(standing)) + 1)
        text = (
            f"{many(int(standing.sum()), 'row')} with the time of the row before, first {where(place)}:"
            " a coarse clock, or rows written twice"
        )
        yield Finding("repeated_times", "warning", text, place)
    same = same_as_before(recording)[1:] & ~standing
    if same.any():
        place = place_of(recording, int(np.argmax(same)) + 1)
        share = float(same.mean())
        text = (
            f"{many(int(same.sum()), 'row')} ({100 * share:.2g} %) with every signal of the row before at"
            f" a later time, first {where(place)}: the source measures more slowly than it was read,"
            " or the arm rests without noise"
        )
        yield Finding("repeated_rows", "warning" if share > REPEATED_SHARE else "info", text, place)


def same_as_before(recording: Recording) -> Mask:
    """Which rows repeat every signal of the row before, (N,).

    Args:
        recording: as measured
    """
    same = np.ones(len(recording), bool)
    same[0] = False
    for channel in recording.channels:
        now, before = getattr(recording, channel)[1:], getattr(recording, channel)[:-1]
        same[1:] &= ((now == before) | (np.isnan(now) & np.isnan(before))).all(axis=1)
    return same
