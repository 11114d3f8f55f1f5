"""Stretches of a log: carries and empty ways, from the signal of a gripper or from rests.

The signal of a gripper is a digital output (two values) or a position (two clusters). The threshold
is the middle between both, with a hysteresis of a quarter of their distance on either side.
Pulses shorter than `min_pulse_s` are chatter and are removed.

While the gripper closes and opens, and until a part has left its support, forces act that are no
payload. A stretch therefore counts from `margin_s` after the later of the edge of the gripper and
the beginning of the motion, until `margin_s` before the earlier of the next edge and the end of
the motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array, Mask
from steelyard.errors import InvalidRecording
from steelyard.recording import Samples

_MOVING_SPEED = 0.02  # [rad/s or m/s], of a joint
_LEAD_IN_S = 0.1  # before the motion, so that friction knows its direction
_HYSTERESIS = 0.25  # of the distance between open and closed, on either side of the middle
_MIN_LEVEL_SHARE = 0.01  # of the rows, on either side of the middle
_MAX_BETWEEN_SHARE = 0.4  # of the rows, between the levels of a signal with two states


class GripperState(NamedTuple):
    """A time in which the gripper is in one state.

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
    """

    states: tuple[GripperState, ...]
    chatter: int


def gripper_states(t: Array, signal: Array, *, min_pulse_s: float) -> GripperStates:
    """The states of a gripper, from its signal.

    Args:
        t: time of each row, (N,) [s]
        signal: (N,), in any unit; NaN where it was not received
        min_pulse_s: shorter pulses are chatter [s]
    """
    known = np.isfinite(signal)
    if not known.any():
        raise InvalidRecording("the gripper column holds no numbers")
    t = t[known]
    values = signal[known]
    high = _binary(values)
    edges = np.flatnonzero(np.diff(high.astype(int))) + 1
    bounds = [float(t[0]), *(0.5 * (t[edges - 1] + t[edges])).tolist(), float(t[-1])]
    begins_high = bool(high[0])
    spans = [
        (begins_high == (k % 2 == 0), start_s, end_s)
        for k, (start_s, end_s) in enumerate(pairwise(bounds))
    ]
    kept = _without_chatter(spans, min_pulse_s)
    last = len(kept) - 1
    states = tuple(
        GripperState(is_high, start_s, end_s, 0 < k < last)
        for k, (is_high, start_s, end_s) in enumerate(kept)
    )
    return GripperStates(states, (len(spans) - len(kept)) // 2)


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
            margin_s: see above [s]
        """
        t = samples.t
        moving = np.flatnonzero((np.abs(samples.v) > _MOVING_SPEED).any(axis=1))
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

    @property
    def counting_s(self) -> float:
        """How long rows count [s]."""
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
    still = ~(np.abs(samples.v) > _MOVING_SPEED).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]])))
    t = samples.t
    spans = [(float(t[i]), float(t[j - 1])) for i, j in edges.reshape(-1, 2).tolist()]
    return [(start, end) for start, end in spans if end - start >= min_rest_s]
