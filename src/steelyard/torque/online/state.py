"""The state of the direct estimate: a value, to be kept, copied, saved and resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from steelyard.arrays import Array
from steelyard.errors import InvalidSamples
from steelyard.torque.online.sample import Counts
from steelyard.torque.online.spread import Spread

_MOVING = 0.75  # of a window's samples
_FORMAT = "steelyard online state 3"


class Episode(NamedTuple):
    """One payload of the past.

    Attributes:
        start_s: end of the payload before, or time of the first sample, [s] on the stream's clock
        end_s: up to when it was this one for sure: the start of the window in which the change was seen, [s];
            the change itself came later in that window (`window_s`), rarely at the end of the one before
        vector: the ten numbers in the order of `PARAMETER_NAMES`, plain estimate, (10,), in the flange frame
        covariance: of them, (10, 10); infinite where unknown
    """

    start_s: float
    end_s: float
    vector: Array
    covariance: Array


class Window(NamedTuple):
    """A short stretch of samples on trial: does the payload still explain them?

    Attributes:
        start_s: [s]
        end_s: time of its last sample, [s]
        payload: sums of W'[H tau] for the first four payload columns W, (4, m + 1)
        joints: sums of the rows of each joint, (n, m + 1)
        friction: what slow friction that the law does not know adds to W'tau, one standard deviation for
            each drive and direction (see `Creep`), (4, 2 n)
        squares: sums of squared residuals over their noise, (n,)
        rows: how many each joint has, (n,)
        samples: how many there were, at rest too
    """

    start_s: float
    end_s: float
    payload: Array
    joints: Array
    friction: Array
    squares: Array
    rows: Array
    samples: float

    @classmethod
    def nothing(cls, n: int, m: int, start_s: float = -np.inf) -> Window:
        """A window without samples.

        Args:
            n: number of joints
            m: number of unknowns
            start_s: when it begins, [s]
        """
        empty = np.zeros((4, m + 1)), np.zeros((n, m + 1)), np.zeros((4, 2 * n)), np.zeros(n), np.zeros(n)
        return cls(start_s, start_s, *empty, 0.0)

    @property
    def moving(self) -> bool:
        """Whether some joint moved nearly all the time; an arm that stops or starts shows odd friction."""
        return bool(self.rows.max() >= _MOVING * self.samples)


class DirectState(NamedTuple):
    """All that the direct estimator knows.

    Attributes:
        R: factor of all samples so far, (m + 1, m + 1)
        base: factor at the start of the window
        safe: factor at the start of the window before
        x: unknowns at the start of the window, (m,)
        pending: rows [t q v a tau] that wait for their block
        prepared: weighted rows, samples, the torque after them and creeping friction of a block that waits
            for its update; or ()
        memory: what friction remembers: direction and position of the drives, (2, n)
        last_s: time of the last sample, [s]
        last_tau: torque of the last sample that was processed, (n,) [Nm or N]
        window: the samples on trial
        information: of payload and friction from each joint, (n, b, b)
        pull: H'tau of each joint, rows over their noise, (n, m)
        spread: of the residuals
        reach: lowest and highest position, highest speed since the payload was taken, (3, n)
        start_s: when this payload was first seen, [s]
        windows: how many windows with motion this payload has
        counts: of samples
        history: earlier payloads
    """

    R: Array
    base: Array
    safe: Array
    x: Array
    pending: tuple[Array, ...]
    prepared: tuple[Array, ...]
    memory: Array
    last_s: float
    last_tau: Array
    window: Window
    information: Array
    pull: Array
    spread: Spread
    reach: Array
    start_s: float
    windows: int
    counts: Counts
    history: tuple[Episode, ...]

    def to_dict(self) -> dict[str, Any]:
        """The state as lists, numbers and text, exact, for JSON."""
        out: dict[str, Any] = {"format": _FORMAT, "n": len(self.last_tau), "m": len(self.x)}
        for name, value in zip(self._fields, self, strict=True):
            out[name] = _plain(value)
        return out

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> DirectState:
        """The state that `to_dict` has written.

        Args:
            content: what it wrote
        """
        if content.get("format") != _FORMAT:
            raise InvalidSamples(f"this is no saved online state: format '{content.get('format')}'")
        array = {name: np.array(content[name], dtype=float) for name in _ARRAYS}
        array |= {name: np.asfortranarray(array[name]) for name in ("R", "base", "safe")}
        return cls(
            **array,
            pending=tuple(np.array(row, dtype=float) for row in content["pending"]),
            prepared=tuple(np.array(item, dtype=float) for item in content["prepared"]),
            last_s=float(content["last_s"]),
            window=Window(*_unplain(content["window"])),
            spread=Spread(*_unplain(content["spread"]))._replace(windows=int(content["spread"][-1])),
            start_s=float(content["start_s"]),
            windows=int(content["windows"]),
            counts=Counts(*content["counts"]),
            history=tuple(Episode(*_unplain(episode)) for episode in content["history"]),
        )


_ARRAYS = ("R", "base", "safe", "x", "memory", "last_tau", "information", "pull", "reach")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _unplain(values: list[Any]) -> list[Any]:
    return [np.array(value, dtype=float) if isinstance(value, list) else float(value) for value in values]
