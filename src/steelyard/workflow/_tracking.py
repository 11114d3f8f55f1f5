"""A recording tracked sample by sample, as on the running arm, and how its payload became known."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from steelyard import _saved
from steelyard._codec import FileValue
from steelyard.drawing import notebook_html
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.payload import Payload
from steelyard.payload._tracking import (
    ContactWrench,
    Progress,
    Tracker,
    TrackerState,
    convergence_times,
)
from steelyard.recording import DEFAULT_CUTOFF_HZ, Preparation, Sample
from steelyard.verdict import Aspect, Doubt

if TYPE_CHECKING:
    from steelyard.report import Page, Section

OnProgress: TypeAlias = Callable[[Progress], None]
"""Called with each point of the curve as it becomes known."""

DIRECT = "direct"
"""Name of our tracker of joint torques."""

RESUME_S = 1.0
"""Pause between the last sample of a saved state and the first one after it, [s]."""

_MIN_POINT_STEP_S = 0.1  # between two points of the curve
_MAX_POINTS = 600
_DAY_S = 86_400.0
_CURVE = ("t", "mass", "mass_std", "com", "com_std", "number", "converged")


@dataclass(frozen=True)
class TrackingOptions:
    """How samples of joint torques are made and tracked.

    Attributes:
        tracker: 'direct', or the name of one from another package, say 'xu2024'
        preparation: how rows become samples; as those of the model were, by default
    """

    tracker: str = DIRECT
    preparation: Preparation | None = None


@dataclass(frozen=True)
class WristTrackingOptions:
    """How samples of a wrist sensor are made and tracked.

    Attributes:
        cutoff_hz: of the smoother on motion and wrench, [Hz]
        level: whether the base of the arm is known to be level
    """

    cutoff_hz: float = DEFAULT_CUTOFF_HZ
    level: bool = False


class Replay(ABC):
    """A recording that is ready to be tracked.

    Attributes:
        tracker: estimates the payload
        doubts: about the recording
        delay_s: time from the instant of a sample to its output, [s]
        duration_s: of the recording, [s]
    """

    tracker: Tracker[Any, Any]
    doubts: tuple[Doubt, ...]
    delay_s: float
    duration_s: float

    @abstractmethod
    def samples(self) -> Iterator[Sample[Any]]:
        """The samples of the tracker, in the order of time."""

    def doubts_about(self, payload: Payload) -> tuple[Doubt, ...]:
        """Doubts about the recording and about what it says beside the payload.

        Args:
            payload: at the end
        """
        return self.doubts

    @abstractmethod
    def page(self, payload: Payload, curve: Section) -> Page:
        """The page that shows and explains a payload of this recording.

        Args:
            payload: at the end
            curve: section with the curve of how it became known
        """


@dataclass(frozen=True, eq=False, repr=False)
class Tracking:
    """A payload that was tracked sample by sample, and how it became known.

    Attributes:
        payload: at the end, the nearest physical body with its verdict
        tracker: that estimated it
        state: of the tracker at the end
        points: progress along the way
        delay_s: time from the instant of a sample to its output, [s]
        replay: the recording; None for a stream
    """

    payload: Payload
    tracker: Tracker[Any, Any]
    state: TrackerState
    points: tuple[Progress, ...]
    delay_s: float
    replay: Replay | None = None

    @property
    def accuracy(self) -> float:
        """Half-width of the mass's 95 % interval over the mass at which it has converged."""
        return self.tracker.accuracy

    @property
    def contact(self) -> ContactWrench | None:
        """Force and torque of a contact in the last sample; None if they are not measured."""
        return self.points[-1].contact

    @property
    def converged_s(self) -> dict[int, float]:
        """When each payload, counted from 1, became as accurate as requested, [s]."""
        return convergence_times(self.points)

    @property
    def when(self) -> str:
        """Since when the payload was known to the requested accuracy, and the delay of samples."""
        requested = f"{100 * self.accuracy:g} %"
        since_s = self.converged_s.get(len(self.state.history) + 1)
        if not self.tracker.gives_intervals:
            known = f"has no interval: nothing says whether it is known to {requested}"
        elif since_s is None:
            known = f"did not become known to {requested}"
        else:
            known = f"is known to {requested} since {since_s:.1f} s"
        return f"The mass {known}; samples are {self.delay_s:.2f} s late."

    def __str__(self) -> str:
        return f"{self.payload} {self.when}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str | None:
        from steelyard.report._tracking import tracking_plot

        headers = ("", "weighed", "\u00b1 (95 %)", "unit")
        payload = self.payload
        cells = [x.cells for x in payload.table_quantities]
        badge = payload.verdict.fitness(Aspect.MASS), payload.headline
        words = f"{payload.verdict} {self.when}"
        plot = tracking_plot(self.points, accuracy=self.accuracy)
        return notebook_html(headers, cells, badge=badge, words=words, plot=plot)

    def to_dict(self) -> dict[str, Any]:
        """The payload at the end, those before it, the curve and a contact, for JSON."""
        since_s = self.converged_s
        history = self.state.history
        points = self.points
        if self.tracker.gives_intervals:
            points = tuple(point for point in self.points if np.isfinite(point.mass_std))
        content = {
            **self.payload.to_arrays(),
            "converged_s": since_s.get(len(history) + 1),
            "accuracy": self.accuracy,
            "delay_s": self.delay_s,
            "samples": self.state.counts._asdict(),
            "history": [
                {
                    "start_s": episode.start_s,
                    "end_s": episode.end_s,
                    "mass": episode.vector[0],
                    "mass_std": np.sqrt(episode.covariance[0, 0]),
                    "vector": episode.vector,
                    "converged_s": since_s.get(k),
                }
                for k, episode in enumerate(history, start=1)
            ],
            "curve": {name: [getattr(point, name) for point in points] for name in _CURVE},
        }
        if self.contact is not None:
            content["contact"] = self.contact.wrench
            content["contact_std"] = self.contact.std
        table: dict[str, Any] = _saved.plain(content, not_finite=float)
        return table

    def save_state(self, path: str | Path) -> None:
        """Writes the state of the tracker to a JSON file, to continue from later."""
        save_state(path, self.tracker, self.state)

    def page(self) -> Page:
        """The page that shows and explains it, with the curve of how it became known."""
        from steelyard.report import Section
        from steelyard.report._payload import stream_page
        from steelyard.report._tracking import tracking_plot

        plot = tracking_plot(self.points, accuracy=self.accuracy)
        curve = Section("How the answer became known", (), [plot])
        if self.replay is None:
            page = stream_page(self.payload, curve)
        else:
            page = self.replay.page(self.payload, curve)
        return replace(page, picture=[plot])


def tracked(
    replay: Replay,
    *,
    resume: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Tracking:
    """A recording tracked to its end.

    Args:
        replay: the recording
        resume: file of a saved state to continue from
        on_progress: called with each point of the curve as it becomes known
    """
    tracker = replay.tracker
    offset_s = 0.0
    if resume is None:
        state = tracker.init()
    else:
        state = load_state(resume, tracker)
        offset_s = state.last_s + RESUME_S
    step_s = max(_MIN_POINT_STEP_S, replay.duration_s / _MAX_POINTS)
    points: list[Progress] = []

    def add_point() -> None:
        points.append(tracker.progress(state))
        if on_progress is not None:
            on_progress(points[-1])

    due_s = -np.inf
    for sample in replay.samples():
        state = tracker.step(state, sample._replace(t=sample.t + offset_s))
        if state.last_s >= due_s:
            add_point()
            due_s = max(due_s + step_s, state.last_s + step_s / 2)
    if not points:
        raise InvalidRecording(
            "the recording is too short to replay: no sample came out of the filters"
        )
    if state.last_s > points[-1].t:
        add_point()
    payload = tracker.estimate(state)
    payload = replace(payload, verdict=payload.verdict.doubted(*replay.doubts_about(payload)))
    return Tracking(payload, tracker, state, tuple(points), replay.delay_s, replay)


@dataclass(frozen=True, eq=False)
class _SavedState(FileValue, error=InvalidSamples, kind="tracker state", version=4, sealed=True):
    """The content of a file with the state of a tracker.

    Attributes:
        tracker: fingerprint of the tracker
        state: its state, as `to_dict` writes it
    """

    tracker: str
    state: Mapping[str, Any]


def save_state(path: str | Path, tracker: Tracker[Any, Any], state: TrackerState) -> None:
    """Writes the state of a tracker to a JSON file.

    Args:
        tracker: that the state belongs to
        state: to save
    """
    _SavedState(tracker.fingerprint, state.to_dict()).save(path)


def load_state(path: str | Path, tracker: Tracker[Any, Any]) -> Any:
    """The state that `save_state` wrote, with the same model or sensor.

    Args:
        tracker: that is to continue
    """
    found = _SavedState.load(path)
    if found.tracker != tracker.fingerprint:
        raise InvalidSamples(
            f"{path} was saved with another model or sensor; start without `resume`"
        )
    with _saved.reading(path, "tracker state"):
        state = tracker.state_from_dict(found.state)
    if state.last_s > time.time() + _DAY_S:
        raise InvalidSamples(
            f"{path} ends in the future ({state.last_s:.4g} s); start without `resume`"
        )
    return state
