"""What can be said of a payload while it is weighed: the numbers, how long until they are sure, what to do.

It takes milliseconds, more than a row has, and needs nothing but what the weigher has `Seen`: so it
may be done in another process (`live.apart`), and as often as somebody looks.

How long until the mass is as sure as asked for? Of the half-width w of its interval drive gains,
their drift and local gravity are a part g that stays; the information 1 / (w^2 - g^2) of the rest
is taken to grow on as in the last second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.identification import DynamicModel
from steelyard.live._source import Event, EventKind, Row
from steelyard.payload import Payload
from steelyard.recording._columns import Requested, find_layout
from steelyard.recording._layout import Layout
from steelyard.robot import RobotModel
from steelyard.signals import OnlineSample
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerOptions, TorqueTrackerState
from steelyard.verdict import Doubt

_LOOK_BACK_S = 1.0
_ADVISED_S = 0.5  # between two pieces of advice, which cost as much as an estimate
_NO_WRENCH = Requested({"wrench": []})  # joint torques are weighed here
_CLEARLY = 20.0  # changed is a mass whose change is so many times its half-width


class Traces(NamedTuple):
    """Curves over time that somebody can choose from.

    Attributes:
        title: of the choice
        choices: among which curves
        curves: names of each choice's curves
        units: of each choice
    """

    title: str
    choices: tuple[str, ...]
    curves: tuple[str, ...]
    units: tuple[str, ...]


class Seen(NamedTuple):
    """What a weigher has seen so far; a value.

    Attributes:
        row: the last one
        state: of the estimator
        sample: the last one that was weighed, filtered; None before the first
        events: since the last time
        rows: that have come in all
        missing: that the sender never sent
        dropped: that came, but were not taken in time
    """

    row: Row
    state: TorqueTrackerState
    sample: OnlineSample | None
    events: tuple[Event, ...]
    rows: int
    missing: int
    dropped: int


@dataclass(frozen=True, eq=False)
class Update:
    """What is known at one moment, for a line, a page or a program.

    Attributes:
        t: the sender's time of the last row, [s]
        values: of the last row, as the stream's columns name them
        waiting: why nothing is weighed now, in words; empty where it is
        payload: the plain estimate, with its verdict; None before the first sample
        state: of the estimator
        sample: the last one that was weighed, filtered; None before the first
        converged: whether the mass is as sure as asked for
        remaining_s: until it is, if the arm goes on as before, [s]; infinite where no motion can
            show it
        predicted: torque of that sample by the estimate, and by the empty arm, (2, n) [Nm or N];
            NaN where friction at rest is not determined
        next_step: what to do to know more, a sentence without a full stop
        events: since the update before
        rows: that have come in all
        missing: that the sender never sent
        dropped: that came, but were not taken in time
    """

    t: float
    values: tuple[float, ...]
    waiting: str
    payload: Payload | None
    state: TorqueTrackerState
    sample: OnlineSample | None
    converged: bool
    remaining_s: float
    predicted: Array | None
    next_step: str
    events: tuple[Event, ...]
    rows: int
    missing: int
    dropped: int

    @property
    def changes(self) -> int:
        """How many payloads there were before this one."""
        return len(self.state.history)


class View:
    """Looks at what a weigher has seen.

    Args:
        model: of the empty arm, as warm as it is now
        columns: names of the rows' values
        name: of the source, for messages
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        doubts: what counts against every answer
    """

    def __init__(
        self,
        model: DynamicModel,
        columns: tuple[str, ...],
        *,
        name: str = "the stream",
        accuracy: float = 0.01,
        doubts: tuple[Doubt, ...] = (),
    ) -> None:
        self.model = model
        self.columns = columns
        self.name = name
        self.accuracy = accuracy
        self.doubts = doubts
        self.estimator = TorqueTracker(
            model, model.kinematics, options=TorqueTrackerOptions(accuracy=accuracy)
        )
        self._advice = ""
        self._advised_s = float("inf")
        self._noted_s = -np.inf  # start of the payload that a pick or a drop was said of, [s]
        self._grown: list[tuple[float, float]] = []  # time [s] and information of the last updates

    @cached_property
    def layout(self) -> Layout:
        """What the columns mean."""
        return find_layout(self.columns, _NO_WRENCH, self.name)

    # --- for a page

    settable = True
    """Whether the payload is all that the arm carries, as a controller wants it."""

    @property
    def robot(self) -> RobotModel:
        """The arm."""
        return self.model.robot

    @property
    def joints(self) -> list[int]:
        """Where the joint positions lie in a row, n."""
        return [self.columns.index(name) for name in self.layout.columns["q"]]

    @property
    def traces(self) -> Traces:
        """What a page can plot over time."""
        names = self.robot.joint_names
        return Traces(
            "Torque of", names, ("measured", "with payload", "empty arm"), ("Nm",) * len(names)
        )

    def trace(self, update: Update) -> Array | None:
        """One instant of all curves, (curves, choices); None where there is none."""
        if update.sample is None or update.predicted is None:
            return None
        return np.vstack([np.asarray(update.sample.tau), update.predicted])

    def to_draw(self, update: Update) -> Payload | None:
        """The payload in the flange frame; None where nothing is known."""
        return update.payload

    @property
    def content(self) -> dict[str, Any]:
        """Everything that makes the view, for another process."""
        names = ("columns", "name", "accuracy", "doubts")
        return {"model": self.model.to_dict()} | {name: getattr(self, name) for name in names}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> View:
        """The view of a content."""
        return cls(**{**content, "model": DynamicModel.from_dict(content["model"])})

    # --- what is known

    def update(self, seen: Seen) -> Update:
        """What is known.

        Args:
            seen: by the weigher so far
        """
        row = seen.row
        sample = seen.sample
        payload = None
        noted: tuple[Event, ...] = ()
        if sample is not None:
            payload = self.estimator.estimate(seen.state, physical=False, advice=False)
            noted = self._changes(seen, payload)
        return Update(
            t=row.t,
            values=row.values,
            waiting=row.waiting or ("the filters fill" if sample is None else ""),
            payload=payload,
            state=seen.state,
            sample=sample,
            converged=payload is not None and _half_width(payload) <= self.accuracy,
            remaining_s=float("inf")
            if payload is None
            else self._remaining_s(seen.state.last_s, payload),
            predicted=None if sample is None else self.estimator.torque(seen.state, sample),
            next_step=f"wait: {row.waiting}" if row.waiting else self._next_step(seen),
            events=(*seen.events, *noted),
            rows=seen.rows,
            missing=seen.missing,
            dropped=seen.dropped,
        )

    def answer(self, seen: Seen | Update) -> Payload | None:
        """The nearest real body, with all doubts; None where there was no sample.

        Another thread may ask while this one looks.

        Args:
            seen: or an update of this view
        """
        if seen.sample is None:
            return None
        own = replace(
            self.model, robot=replace(self.model.robot)
        )  # Pinocchio's workspace is not shared
        found = replace(self.estimator, model=own).estimate(seen.state)
        return replace(found, verdict=found.verdict.doubted(*self.doubts))

    def _changes(self, seen: Seen, payload: Payload) -> tuple[Event, ...]:
        """An event once another payload is known well enough to say whether it is heavier or lighter."""
        history = seen.state.history
        start_s = seen.state.start_s
        if not history or start_s == self._noted_s:
            return ()
        more = payload.mass - float(history[-1].vector[0])
        half_width = NORMAL_95 * payload.std[0]
        if abs(more) < _CLEARLY * half_width:
            return ()
        self._noted_s = start_s
        ago_s = seen.state.last_s - start_s
        if more > 0:
            kind, words = (EventKind.PICK, "picked up")
        else:
            kind, words = (EventKind.DROP, "put down")
        return (
            Event(
                kind,
                f"{words} {abs(more):.3g} +- {half_width:.1g} kg {ago_s:.1f} s ago",
                seen.row.t,
            ),
        )

    def _next_step(self, seen: Seen) -> str:
        if not 0 <= seen.row.t - self._advised_s < _ADVISED_S:
            self._advised_s, self._advice = seen.row.t, self.estimator.next_step(seen.state)
        return self._advice

    def _remaining_s(self, t: float, payload: Payload) -> float:
        width = _half_width(payload)
        stays = (
            sum(payload.shares.get(name, 0.0) for name in ("gains", "drift", "gravity")) * width**2
        )
        if width <= self.accuracy:
            return 0.0
        if not np.isfinite(width) or stays >= self.accuracy**2:
            return float("inf")
        now = 1 / (width**2 - stays)
        asked = 1 / (self.accuracy**2 - stays)
        self._grown = [x for x in self._grown if t - _LOOK_BACK_S <= x[0] < t and x[1] < now]
        self._grown.append((t, now))
        start_s, before = self._grown[0]
        if now > before:
            return float((asked - now) * (t - start_s) / (now - before))
        return float("inf")


def _half_width(payload: Payload) -> float:
    """Of the mass's 95 % interval over the mass."""
    return float(NORMAL_95 * payload.std[0] / max(abs(payload.body.mass), 1e-12))
