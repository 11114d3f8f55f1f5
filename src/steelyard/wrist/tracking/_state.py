"""Options and state of the tracker of a wrist sensor.

The state is a value: it can be kept, copied, saved and resumed. Its size does not grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._codec import from_table, to_table
from steelyard._kinds import INFINITE, NOT_NEGATIVE, AsList, Shape
from steelyard.errors import InvalidSamples
from steelyard.payload._tracking import Counts, Episode
from steelyard.recording import Sample
from steelyard.wrist._rest import Postures, RestRule
from steelyard.wrist.tracking._path import SensorMotion
from steelyard.wrist.tracking._solve import WrenchSolution
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
    wrench: Annotated[Array, Shape(6)]
    turn: Annotated[Array, Shape(3)]
    samples: Annotated[int, NOT_NEGATIVE]


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
    postures: Annotated[Postures, AsList("t", "wrench", "variance", "R_base_sensor", "rows")]
    prior: Annotated[Array, Shape("*", UNKNOWNS + 1)]
    known: WrenchSolution
    window: tuple[Sample[SensorMotion], ...]
    rest: tuple[RestWindow, ...]
    trial: Sums
    unexplained_s: Annotated[float, INFINITE]
    stale: bool
    origin_s: Annotated[float, INFINITE]
    start_s: Annotated[float, INFINITE]
    last_s: Annotated[float, INFINITE]
    unexplained: Annotated[int, NOT_NEGATIVE]
    contacts: Annotated[int, NOT_NEGATIVE]
    counts: Counts
    history: tuple[Episode, ...]

    @property
    def reduced(self) -> WristTrackerState:
        """A smaller state with the same estimate: this one, which is small."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """All fields by name as numbers and lists, exact, for JSON."""
        return to_table(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> WristTrackerState:
        """The state that `to_dict` has written."""
        return from_table(cls, content, "state", {"effort": 6})


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
