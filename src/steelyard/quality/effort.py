"""Findings about torque, current and wrench: missing, flat, saturated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from steelyard.arrays import Array
from steelyard.quality.clock import FEWEST_ROWS, same_as_before
from steelyard.quality.report import Finding, Place, many, names_of, place_of, where
from steelyard.recording import Recording

SATURATED_ROWS = 5  # a measured torque never repeats to the last digit that often while the arm moves
SATURATED_FACTOR = 3.0  # nor three times longer than the channel repeats itself elsewhere (held samples)
SATURATED_MOTION = 1e-3  # [rad] that some joint moves meanwhile; a simulated arm at rest repeats rightly
AT_LIMIT = 0.999  # of tau_max: the last digits of the published number are rounded
_MEASURED = ("tau", "current", "wrench")
_TARGETS = ("tau_target", "current_target")


def flat_effort(recording: Recording) -> Iterator[Finding]:
    """Which torques, currents and forces are missing or constant.

    Args:
        recording: as measured
    """
    if not set(_MEASURED) & set(recording.channels):
        text = "neither torque nor current nor wrench is recorded: the motion alone weighs nothing"
        yield Finding("no_effort", "warning", text)
    for channel in recording.channels:
        values = getattr(recording, channel)
        if channel not in (*_MEASURED, *_TARGETS) or len(recording) < FEWEST_ROWS:
            continue
        flat = (values == values[0]).all(axis=0)
        if flat.any():
            place = Place(channel, () if channel == "wrench" else names_of(recording, flat))
            who = "every column" if flat.all() else ", ".join(place.joints) or many(int(flat.sum()), "column")
            if channel in _TARGETS:
                yield Finding("flat", "info", f"{channel} is constant ({who})", place)
            else:
                text = f"{channel} is constant ({who}): it was not measured, or not logged"
                useless = flat.all() and channel != "wrench"  # the joint torques may be fine without it
                yield Finding("flat", "error" if useless else "warning", text, place)


def saturation(recording: Recording) -> Iterator[Finding]:
    """Which torques and currents stand at their own extreme while the arm moves.

    Args:
        recording: as measured
    """
    fresh = np.flatnonzero(~same_as_before(recording))
    for channel in ("tau", "current"):
        values = getattr(recording, channel)
        for j in range(0 if values is None else recording.n):
            first, rows = _longest_at_extreme(values[fresh, j])
            q = recording.q[fresh[first : first + max(rows, 1)]]
            if (q.max(axis=0) > q.min(axis=0) + SATURATED_MOTION).any():
                place = place_of(recording, int(fresh[first]), channel, joints=np.arange(recording.n) == j)
                text = (
                    f"{channel} stands at its extreme {values[fresh[first], j]:.5g} for {rows} rows,"
                    f" {where(place)}: saturated, leave these rows out"
                )
                yield Finding("saturation", "warning", text, place)


def _longest_at_extreme(values: Array) -> tuple[int, int]:
    """First row and length of the longest suspicious stand at the largest or smallest value, or (0, 0)."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    lengths = np.diff(np.append(starts, len(values)))
    extreme = np.isin(values[starts], (np.fmax.reduce(values), np.fmin.reduce(values)))
    if extreme.all() or not extreme.any():
        return 0, 0
    need = max(float(SATURATED_ROWS), SATURATED_FACTOR * float(np.percentile(lengths[~extreme], 99)))
    k = int(np.argmax(np.where(extreme, lengths, 0)))
    return (int(starts[k]), int(lengths[k])) if lengths[k] >= need else (0, 0)


def at_torque_limit(recording: Recording, tau_max: ArrayLike | None) -> Iterator[Finding]:
    """Which torques reach the largest that the drive gives.

    Args:
        recording: as measured
        tau_max: largest torque, (n,) [Nm or N]; None when nobody knows
    """
    if tau_max is None or recording.tau is None:
        return
    bound = np.asarray(tau_max, dtype=float)
    beyond = np.abs(recording.tau) >= AT_LIMIT * bound
    for j in np.flatnonzero(beyond.any(axis=0)):
        row = int(np.argmax(beyond[:, j]))
        place = place_of(recording, row, "tau", joints=np.arange(recording.n) == j)
        text = (
            f"tau is at or beyond the limit of {bound[j]:.4g} in {many(int(beyond[:, j].sum()), 'row')},"
            f" first {recording.tau[row, j]:.4g} {where(place)}: saturated, or another unit"
        )
        yield Finding("saturation", "warning", text, place)
