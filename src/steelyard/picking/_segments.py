"""Stretches of a log: carries and unloaded stretches, from the signal of a gripper or from rests.

The signal of a gripper is a digital output (two values) or a position (two clusters). The threshold
is the middle between both, with a hysteresis of a quarter of their distance on either side.
Pulses shorter than `min_pulse_s` are chatter and are removed.

Other forces than the payload act while the gripper closes or opens, and until the part has left its
support. The rows of a stretch therefore count only from `margin_s` after both the edge of the
gripper and the beginning of the motion, until `margin_s` before both the next edge and the end of
the motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array, Mask
from steelyard._kinds import Range
from steelyard.errors import InvalidRecording
from steelyard.recording import Samples

MOVING_SPEED = 0.02
"""A joint that is slower is at rest, [rad/s or m/s]."""

_SIGNALS = Range(-1e6, 9.2e18)  # a position in any unit, or a field of 63 digital outputs

_LEAD_IN_S = 0.1  # before the motion, so that friction knows its direction
_HYSTERESIS = 0.25  # of the distance between open and closed, on either side of the middle
_MIN_LEVEL_SHARE = 0.01  # of the rows, on either side of the middle
_MAX_BETWEEN_SHARE = 0.4  # of the rows, between the levels of a signal with two states
_MAX_HOLE_S = 0.5  # without a number; longer ones may hide an edge
_MAX_HOLE_ROWS = 3.0  # the same, in median steps of a signal that comes slowly


class GripperState(NamedTuple):
    """An interval in which the gripper is in one state.

    Attributes:
        high: whether its signal is high
        start_s: beginning [s]
        end_s: end [s]
        whole: whether both ends are edges of the signal, and not ends of the log
    """

    high: bool
    start_s: float
    end_s: float
    whole: bool


class GripperStates(NamedTuple):
    """The states of a gripper along a log.

    Attributes:
        states: in the order of time
        chatter: number of short pulses that were removed
        holes: beginning and end of the times without numbers, in which edges may be hidden [s]
    """

    states: tuple[GripperState, ...]
    chatter: int
    holes: tuple[tuple[float, float], ...] = ()


def gripper_states(
    t: Array, signal: Array, *, min_pulse_s: float, threshold: float | None = None
) -> GripperStates:
    """The states of a gripper, from its signal.

    Args:
        t: time of each row, (N,) [s]
        signal: (N,), in any unit; NaN where it was not received
        min_pulse_s: shorter pulses are chatter [s]
        threshold: value between open and closed; None to find two levels
    """
    known = np.isfinite(signal)
    if not known.any():
        raise InvalidRecording("the gripper column holds no numbers")
    times = t[known]
    high = _is_high(signal[known], threshold)
    steps = np.diff(times)
    longest_s = _MAX_HOLE_S
    if len(steps):
        longest_s = max(_MAX_HOLE_S, _MAX_HOLE_ROWS * float(np.median(steps)))
    cuts = np.flatnonzero(steps > longest_s) + 1
    states: list[GripperState] = []
    chatter = 0
    for piece in np.split(np.arange(len(times)), cuts):
        found, removed = _states_of_piece(times[piece], high[piece], min_pulse_s)
        states += found
        chatter += removed
    within = [(float(times[k - 1]), float(times[k])) for k in cuts]
    ends = [(float(t[0]), float(times[0])), (float(times[-1]), float(t[-1]))]
    missing = [hole for hole in ends if hole[1] - hole[0] > longest_s]
    return GripperStates(tuple(states), chatter, tuple(sorted(within + missing)))


def _is_high(values: Array, threshold: float | None) -> Mask:
    """Whether the values of a gripper are high, (N,)."""
    if threshold is None:
        return _binary(values)
    high = values > threshold
    if high.all() or not high.any():
        raise InvalidRecording(
            f"the gripper column lies between {values.min():g} and {values.max():g}, on one"
            f" side of the `threshold` {threshold:g} throughout"
        )
    return np.asarray(high)


def _states_of_piece(t: Array, high: Mask, min_pulse_s: float) -> tuple[list[GripperState], int]:
    """The states of a piece without holes, and the number of short pulses that were removed."""
    edges = np.flatnonzero(np.diff(high.astype(int))) + 1
    bounds = [float(t[0]), *(0.5 * (t[edges - 1] + t[edges])).tolist(), float(t[-1])]
    begins_high = bool(high[0])
    spans = [
        (begins_high == (k % 2 == 0), start_s, end_s)
        for k, (start_s, end_s) in enumerate(pairwise(bounds))
    ]
    kept = _without_chatter(spans, min_pulse_s)
    last = len(kept) - 1
    states = [
        GripperState(is_high, start_s, end_s, 0 < k < last)
        for k, (is_high, start_s, end_s) in enumerate(kept)
    ]
    return states, (len(spans) - len(kept)) // 2


def require_gripper_signal(signal: ArrayLike) -> None:
    """Refuses a column with numbers that no gripper sends.

    Args:
        signal: of the gripper, () or (N,), in any unit; NaN where it was not received
    """
    values = np.atleast_1d(signal)
    values = values[np.isfinite(values)]
    if _SIGNALS.broken_by(values):
        largest = values[np.abs(values).argmax()]
        raise InvalidRecording(
            f"the gripper column reaches {largest:.3g}, which no gripper sends: is it the right"
            " column?"
        )


def _binary(values: Array) -> Mask:
    """Whether a signal with two levels is high, (N,)."""
    low = float(np.percentile(values, 1))
    top = float(np.percentile(values, 99))
    if values.min() == values.max():
        raise InvalidRecording(
            f"the gripper column is {values[0]:g} throughout: it has no edges, so picks cannot be"
            " found by it; name another column, or leave it out to find picks by rests"
        )
    if low == top:
        low = float(values.min())
        top = float(values.max())
    middle = 0.5 * (low + top)
    band = _HYSTERESIS * (top - low)
    between = float(np.mean(np.abs(values - middle) < band))
    if between > _MAX_BETWEEN_SHARE:
        raise InvalidRecording(
            f"the gripper column has no two levels: {100 * between:.0f} % of its rows lie in the"
            f" middle between {low:g} and {top:g}; is it the column of a gripper?"
        )
    clear = np.abs(values - middle) >= band
    last_clear = np.maximum.accumulate(np.where(clear, np.arange(len(values)), -1))
    first = int(clear.argmax())
    return np.asarray(values[np.maximum(last_clear, first)] > middle)


def _without_chatter(
    spans: Sequence[tuple[bool, float, float]], min_pulse_s: float
) -> list[tuple[bool, float, float]]:
    """The spans without short ones; neighbours of a removed one are joined."""
    kept: list[tuple[bool, float, float]] = []
    for k, (high, start_s, end_s) in enumerate(spans):
        inner = 0 < k < len(spans) - 1
        if kept and (kept[-1][0] == high or (inner and end_s - start_s < min_pulse_s)):
            kept[-1] = (kept[-1][0], kept[-1][1], end_s)
        else:
            kept.append((high, start_s, end_s))
    return kept


@dataclass(frozen=True, eq=False)
class Stretch:
    """A part of a log between two edges of the gripper, or between two rests.

    Attributes:
        samples: of the stretch, in the order of time
        closed: whether the gripper is closed
        start_s: first edge [s]
        end_s: second edge [s]
        counting: rows that count, away from edges and from supports, (N,)
        lift_s: when the arm begins to move [s]
    """

    samples: Samples
    closed: bool
    start_s: float
    end_s: float
    counting: Mask
    lift_s: float

    @classmethod
    def of(
        cls, samples: Samples, *, closed: bool, start_s: float, end_s: float, margin_s: float
    ) -> Stretch:
        """The stretch between two edges.

        Args:
            samples: between them
            closed: whether the gripper is closed
            start_s: first edge [s]
            end_s: second edge [s]
            margin_s: time that does not count after and before edges [s]
        """
        t = samples.t
        moving = np.flatnonzero((np.abs(samples.v) > MOVING_SPEED).any(axis=1))
        lift_s = end_s
        down_s = start_s
        if moving.size:
            lift_s = float(t[moving[0]])
            down_s = float(t[moving[-1]])
        begin_s = max(start_s, lift_s) + margin_s
        until_s = min(end_s, down_s) - margin_s
        kept = np.flatnonzero((t >= lift_s - _LEAD_IN_S) & (t <= max(until_s, lift_s)))
        if kept.size:
            samples = samples.rows(slice(int(kept[0]), int(kept[-1]) + 1))
            t = samples.t
        return cls(samples, closed, start_s, end_s, (t >= begin_s) & (t <= until_s), lift_s)

    @classmethod
    def begun(cls, samples: Samples, *, start_s: float, lift_s: float, margin_s: float) -> Stretch:
        """The beginning of a carry that has not ended yet.

        Args:
            samples: since the gripper closed
            start_s: when it closed [s]
            lift_s: when the arm began to move [s]
            margin_s: time that does not count after the edge [s]
        """
        kept = np.flatnonzero(samples.t >= lift_s - _LEAD_IN_S)
        samples = samples.rows(slice(int(kept[0]), len(samples)))
        t = samples.t
        begin_s = max(start_s, lift_s) + margin_s
        return cls(samples, True, start_s, float(t[-1]), t >= begin_s, lift_s)

    @property
    def counting_s(self) -> float:
        """The duration of the rows that count [s]."""
        return float(self.counting.sum() / self.samples.rate_hz)

    @property
    def weighed_s(self) -> float:
        """The middle of the time that counts [s]."""
        t = self.samples.t[self.counting]
        if t.size:
            return float(0.5 * (t[0] + t[-1]))
        return 0.5 * (self.start_s + self.end_s)


def rests(samples: Samples, *, min_rest_s: float) -> list[tuple[float, float]]:
    """The times in which no joint moves, [s], of at least `min_rest_s`.

    Args:
        samples: in the order of time
    """
    still = ~(np.abs(samples.v) > MOVING_SPEED).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]])))
    t = samples.t
    spans = [(float(t[i]), float(t[j - 1])) for i, j in edges.reshape(-1, 2).tolist()]
    return [(start, end) for start, end in spans if end - start >= min_rest_s]
