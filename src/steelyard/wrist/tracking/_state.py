"""Options and state of the tracker of a wrist sensor.

The state is a value: it can be kept, copied, saved and resumed. Its size does not grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from steelyard import fields
from steelyard._arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.payload._tracking import HISTORY, Counts, Episode
from steelyard.wrist._rest import Postures, RestRule
from steelyard.wrist.tracking._path import WristSample
from steelyard.wrist.tracking._solve import Solution
from steelyard.wrist.tracking._sums import UNKNOWNS, Sums


@dataclass(frozen=True)
class WristTrackerOptions:
    """How the tracker of a wrist sensor works.

    Attributes:
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        alarm: threshold of the test for a contact or another load; None to test for none
        window_s: length of the tested windows, [s]
        longest_gap_s: a longer one is a pause, [s]
        rest: when the sensor is at rest
        level: whether the base is known to be level
    """

    accuracy: float = 0.01
    alarm: float | None = 60.0
    window_s: float = 0.2
    longest_gap_s: float = 0.25
    rest: RestRule = field(default_factory=RestRule)
    level: bool = False

    def __post_init__(self) -> None:
        for name in ("accuracy", "alarm", "window_s", "longest_gap_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidSamples(f"{name} must be positive, got {value}")


class RestWindow(NamedTuple):
    """Means over a window in which the sensor stands still.

    Attributes:
        t: time, [s] on the stream's clock
        wrench: (6,) [N, Nm], in the sensor frame
        turn: orientation R_base_sensor as a rotation vector, (3,) [rad]
        samples: number of samples
    """

    t: float
    wrench: Array
    turn: Array
    samples: int


class WristTrackerState(NamedTuple):
    """The state of the tracker of a wrist sensor.

    Attributes:
        sums: of the samples in motion
        postures: means of rests
        prior: rows [L, L value] that state drift and tilt from before this load, (k, 25)
        known: the solution at the last window
        window: samples of the window that is not complete yet
        rest: the windows of the present rest
        trial: sums of the windows that the load does not explain
        unexplained_s: time since which it does not, [s]; infinite where it does
        stale: whether `known` does not include the last window yet
        origin_s: time at which the drift begins to count, [s]
        start_s: time at which this load was first seen, [s]
        last_s: time of the last sample, [s]
        unexplained: number of windows since `unexplained_s`
        contacts: number of windows in which the load was touched, before
        counts: of samples
        history: earlier loads
    """

    sums: Sums
    postures: Postures
    prior: Array
    known: Solution
    window: tuple[WristSample, ...]
    rest: tuple[RestWindow, ...]
    trial: Sums
    unexplained_s: float
    stale: bool
    origin_s: float
    start_s: float
    last_s: float
    unexplained: int
    contacts: int
    counts: Counts
    history: tuple[Episode, ...]

    @property
    def reduced(self) -> WristTrackerState:
        """A smaller state with the same estimate: this one, which is small."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The state as lists, numbers and text, exact, for JSON."""
        p = self.postures
        known = self.known
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "prior": self.prior.tolist(),
            "window": [_listed(sample) for sample in self.window],
            "rest": [_listed(window) for window in self.rest],
            "sums": _listed(self.sums),
            "trial": _listed(self.trial),
            "postures": [x.tolist() for x in (p.t, p.wrench, p.variance, p.R_base_sensor, p.rows)],
            "known": {name: getattr(known, name).astype(float).tolist() for name in _KNOWN},
            "counts": list(self.counts),
            "history": [_listed(episode) for episode in self.history],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> WristTrackerState:
        """The state that `to_dict` has written."""
        fields.check({name: content[name] for name in _EMPTY_AT_FIRST}, _EMPTY_AT_FIRST, "state")
        known = {name: np.array(content["known"][name], dtype=float) for name in _KNOWN}
        known["unknown"] = known["unknown"].astype(bool)
        return cls(
            prior=np.array(content["prior"], dtype=float).reshape(-1, UNKNOWNS + 1),
            window=tuple(WristSample(*parts).checked() for parts in content["window"]),
            rest=tuple(
                RestWindow(t, np.array(wrench), np.array(turn), int(samples))
                for t, wrench, turn, samples in content["rest"]
            ),
            **{name: content[name] for name in _PLAIN},
            sums=_sums(content["sums"]),
            trial=_sums(content["trial"]),
            postures=postures_of(*content["postures"]),
            known=Solution(**known),
            counts=Counts(*content["counts"]),
            history=tuple(
                Episode(a, b, np.array(x), np.array(C)) for a, b, x, C in content["history"]
            ),
        )


_EMPTY_AT_FIRST = {
    "prior": fields.numbers("prior", UNKNOWNS + 1),
    "window": fields.each(
        fields.row(
            fields.number(),
            fields.numbers(6),
            fields.numbers(3, 3),
            *[fields.numbers(3)] * 3,
            fields.numbers(9, 9),
            fields.number(finite=False),  # the speed is unknown with an inertial unit
        )
    ),
    "rest": fields.each(
        fields.row(fields.number(), fields.numbers(6), fields.numbers(3), fields.number(0.0))
    ),
    "postures": fields.row(
        fields.numbers("k"),
        *[fields.numbers("k", 6)] * 2,
        fields.numbers("k", 3, 3),
        fields.numbers("k", low=0.0),
    ),
    "history": HISTORY,
}
"""Rules for the fields that are empty at first."""

_PLAIN = (
    "unexplained_s", "stale", "origin_s", "start_s", "last_s", "unexplained", "contacts",
)  # fmt: skip
_KNOWN = ("value", "covariance", "unknown", "variance", "long_run", "extra")


def postures_of(t: Any, wrench: Any, variance: Any, R: Any, rows: Any) -> Postures:
    """Postures of lists or arrays of their attributes."""
    six = (-1, 6)
    three = (-1, 3, 3)
    t, wrench, variance, R = (np.array(x, dtype=float) for x in (t, wrench, variance, R))
    return Postures(
        t,
        wrench.reshape(six),
        variance.reshape(six),
        R.reshape(three),
        np.array(rows, dtype=np.int64),
    )


def _listed(values: tuple[Any, ...]) -> list[Any]:
    return [x.tolist() if isinstance(x, np.ndarray) else x for x in values]


def _sums(content: list[Any]) -> Sums:
    triangles, features, blocks, length, filled = content
    arrays = (
        np.array(triangles),
        np.array(features),
        np.array(blocks, dtype=float).reshape(-1, 6, 21),
    )
    return Sums(*arrays, int(length), int(filled))
