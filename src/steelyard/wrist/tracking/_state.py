"""What the online estimator of a wrist sensor is asked for, and all that it knows: values.

The state is a value: it is kept, copied, saved and resumed. Its size does not grow.
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
from steelyard.wrist.tracking._solve import Solution
from steelyard.wrist.tracking._sums import UNKNOWNS, Sums

ROW = 107
"""Numbers of a sample: t, wrench, R_base_sensor, motion, its covariance, speed."""


@dataclass(frozen=True)
class WristTrackerOptions:
    """How the online estimator of a wrist sensor works.

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


class WristTrackerState(NamedTuple):
    """All that the estimator knows.

    Attributes:
        sums: of the samples in motion
        postures: means of rests
        prior: rows [L, L value] of what is known from before this load, (k, 25)
        known: the solution at the last window
        window: samples on trial, a row of 107 numbers each
        rest: means of the windows of the present rest: t, wrench, rotation vector, samples, (k, 11)
        trial: sums of the windows that the load does not explain
        odd_s: since when it does not, [s]; infinite where it does
        stale: whether `known` does not know the last window yet
        origin_s: when the drift begins to count, [s]
        start_s: when this load was first seen, [s]
        last_s: time of the last sample, [s]
        odd: windows since then
        contacts: windows in which the load was touched, before
        counts: of samples
        history: earlier loads
    """

    sums: Sums
    postures: Postures
    prior: Array
    known: Solution
    window: Array
    rest: Array
    trial: Sums
    odd_s: float
    stale: bool
    origin_s: float
    start_s: float
    last_s: float
    odd: int
    contacts: int
    counts: Counts
    history: tuple[Episode, ...]

    def to_dict(self) -> dict[str, Any]:
        """The state as lists, numbers and text, exact, for JSON."""
        p = self.postures
        known = self.known
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: getattr(self, name).tolist() for name in _ARRAYS},
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
            window=np.array(content["window"], dtype=float).reshape(-1, ROW),
            rest=np.array(content["rest"], dtype=float).reshape(-1, 11),
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
    "window": fields.numbers("window", ROW),
    "rest": fields.numbers("rest", 11),
    "postures": fields.row(
        fields.numbers("k"),
        *[fields.numbers("k", 6)] * 2,
        fields.numbers("k", 3, 3),
        fields.numbers("k", low=0.0),
    ),
    "history": HISTORY,
}
"""What may stand where a fresh state has nothing."""

_PLAIN = ("odd_s", "stale", "origin_s", "start_s", "last_s", "odd", "contacts")
_ARRAYS = ("prior", "window", "rest")
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
