"""Contacts from residuals: time, joint, direction, and the most proximal possible link.

A contact begins when a residual, without the unknown part of friction, stays above its threshold
for `debounce_s`, and ends when all residuals stay below the share `release` of their thresholds for
`release_s`. A contact on link i produces no torque at joints beyond i, so the last joint with a
residual above its threshold gives the most proximal link that explains it; the contact may be
further out, on a line through the axes of the next joints.

A motion without contact shows the friction of the day. The tail of the remaining residuals, in
standard deviations of the model's torque, gives the level that is crossed at the requested rate
(`Detector.learned`). To keep the correction of friction from lowering the level, each half of the
motion is evaluated with the friction of the other half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard import _saved
from steelyard._arrays import Array, Mask
from steelyard.control.collision._observer import Observer, ObserverState
from steelyard.control.collision._residuals import Residuals
from steelyard.control.collision._thresholds import Thresholds
from steelyard.drawing import notebook_html
from steelyard.errors import InvalidRecording, InvalidSamples
from steelyard.quality._table import counted
from steelyard.recording import Recording, Sample
from steelyard.robot import DriveModel
from steelyard.verdict import Doubt, DoubtKind, Verdict

_MIN_LEARNING_S = 5.0  # of a motion to learn from
_CLOCK_ROUNDING_S = 1e-6
_VIBRATION_S = 0.5  # after a contact
_MAX_CONTACT_SHARE = 0.5  # of a recording; more contact is an error of the model


@dataclass(frozen=True)
class Contact:
    """One contact.

    Attributes:
        start_s: time at which a residual exceeded its threshold, [s]
        detected_s: time of the detection, [s]
        end_s: time at which the last residual fell below, or of the latest sample, [s]
        joint: with the largest ratio of residual to threshold
        direction: 1 along the joint's axis, -1 against it
        peak: largest residual of that joint, signed [Nm, N or W]
        ratio: of the residual without friction's slack to the threshold, at the peak
        joints: all whose residuals exceeded their thresholds, from the base outwards
        link: the most proximal link that explains it; None if the residual does not tell
    """

    start_s: float
    detected_s: float
    end_s: float
    joint: str
    direction: int
    peak: float
    ratio: float
    joints: tuple[str, ...]
    link: str | None


class DetectorState(NamedTuple):
    """The state of a `Detector`."""

    observer: ObserverState  # state of its observer
    threshold: Array  # at this state, (m,)
    over_since: Array  # time at which each residual exceeded its threshold, (m,) [s], or NaN
    last_over_s: float  # latest time of a residual above its release, [s]
    contact: Contact | None  # the current one; None without contact
    ended: Contact | None  # the one that ended with this sample; None if none did


@dataclass(frozen=True, eq=False)
class Detector:
    """A detector of contacts, one sample at a time.

    Attributes:
        observer: of the arm
        thresholds: of its residuals
        debounce_s: time that a residual must stay above its threshold, [s]
        release: share of the threshold below which a contact ends
        release_s: time that all residuals must stay below, [s]
    """

    observer: Observer
    thresholds: Thresholds
    debounce_s: float = 0.008
    release: float = 0.7
    release_s: float = 0.2

    def __post_init__(self) -> None:
        if not (self.debounce_s >= 0 and 0 < self.release <= 1 and self.release_s >= 0):
            raise InvalidSamples(
                "debounce_s and release_s must not be negative, release between 0 and 1; got"
                f" {self.debounce_s}, {self.release_s}, {self.release}"
            )
        if self.thresholds.level.shape[1] != len(self.observer.names):
            raise InvalidSamples(
                f"there are {self.thresholds.level.shape[1]} thresholds for"
                f" {len(self.observer.names)} residuals: they belong to another observer"
            )

    @classmethod
    def learned(
        cls,
        observer: Observer,
        recording: Recording,
        *,
        drive: DriveModel | None = None,
        false_alarms_per_hour: float = 1.0,
        adapt_friction: bool = True,
    ) -> Detector:
        """A detector with thresholds and the friction of the day, from a motion without contact.

        A motion with a contact raises an error: its largest residual does not belong to the tail of
        the others.

        Args:
            observer: of the arm with its payload in that motion
            recording: of a motion like those to be monitored
            drive: that converts motor currents to torques; required if only currents were recorded
            false_alarms_per_hour: of all residuals together, [1/h]
            adapt_friction: whether to correct friction and offset too
        """
        if not 0 < false_alarms_per_hour < np.inf:
            raise InvalidSamples(
                f"false_alarms_per_hour must be positive, got {false_alarms_per_hour}"
            )
        if recording.duration_s < _MIN_LEARNING_S:
            raise InvalidRecording(
                f"{recording.duration_s:.1f} s are too short to learn from; record at least"
                f" {_MIN_LEARNING_S:g} s"
            )
        free = Residuals.of_recording(observer, recording, drive=drive)
        momentum = observer.of_momentum
        if momentum is observer:
            seen = free
        else:
            seen = Residuals.of(momentum, free.samples)
        if words := seen.missing_friction:
            raise InvalidRecording(words)
        change = np.zeros((3, observer.arm.n))
        parts = [free]
        if adapt_friction:
            first = seen.t < seen.t[-1] / 2
            change, *halves = seen.friction_changes(np.ones_like(first), ~first, first)
            parts = [Residuals.of(_adapted(observer, half), free.samples) for half in halves]
        watching = _adapted(observer, change)
        limits = Thresholds.from_free_motion(watching, free, parts, change, false_alarms_per_hour)
        return cls(watching, limits)

    def detect(self, recording: Recording, *, drive: DriveModel | None = None) -> Detections:
        """The contacts of a whole recording, equal to those sample by sample.

        Args:
            recording: as measured; its steps may vary, a gap raises an error
            drive: that converts motor currents to torques; required if only currents were recorded
        """
        residuals = Residuals.of_recording(self.observer, recording, drive=drive)
        motion = np.stack([residuals.q, residuals.v, residuals.a], axis=1)
        memory = self.observer.arm.friction.init(residuals.q[0], residuals.v[0])
        threshold = self.thresholds.at(self.observer, motion, memory)
        states = [self._free(residuals.states[0], threshold[0])]
        for seen, limit in zip(residuals.states[1:], threshold[1:], strict=True):
            states.append(self._judged(states[-1], seen, limit))
        contacts = [state.ended for state in states if state.ended is not None]
        if states[-1].contact is not None:
            contacts.append(states[-1].contact)
        count = counted(len(contacts), "contact")
        duration_s = residuals.t[-1]
        summary = f"{count} in {duration_s:.1f} s; thresholds {self.thresholds.status}"
        verdict = Verdict(summary, tuple(_doubts(self, contacts, residuals)))
        return Detections(tuple(contacts), residuals, threshold, self, verdict)

    def init(self, sample: Sample[Array]) -> DetectorState:
        """The state at the first sample, without a contact.

        Args:
            sample: as for `Observer.init`
        """
        seen = self.observer.init(sample)
        return self._free(seen, self._threshold(seen, sample))

    def step(self, state: DetectorState, sample: Sample[Array]) -> DetectorState:
        """The state after one more sample."""
        seen = self.observer.step(state.observer, sample)
        return self._judged(state, seen, self._threshold(seen, sample))

    def _free(self, seen: ObserverState, threshold: Array) -> DetectorState:
        never = np.full(len(self.observer.names), np.nan)
        return DetectorState(seen, threshold, never, -np.inf, None, None)

    def _judged(self, state: DetectorState, seen: ObserverState, threshold: Array) -> DetectorState:
        """The next state from the state of the observer and the threshold, (m,)."""
        ratio = seen.beyond_friction / threshold
        size = np.abs(ratio)
        since = np.where(size > 1, np.fmin(state.over_since, seen.t), np.nan)
        if size.max() > self.release:
            last = seen.t
        else:
            last = state.last_over_s
        confirmed = seen.t - since >= self.debounce_s - _CLOCK_ROUNDING_S
        contact = state.contact
        ended = None
        if contact is not None and seen.t - last > self.release_s:
            ended = contact
            contact = None
        if contact is not None or confirmed.any():
            contact = self._grown(contact, seen, ratio, since, confirmed, last)
        return DetectorState(seen, threshold, since, last, contact, ended)

    def _threshold(self, seen: ObserverState, sample: Sample[Array]) -> Array:
        motion = np.array([sample.motion[0], seen.v, seen.a], dtype=float)[None]
        return np.asarray(self.thresholds.at(self.observer, motion, seen.memory)[0])

    def _grown(
        self,
        contact: Contact | None,
        seen: ObserverState,
        ratio: Array,
        since: Array,
        confirmed: Mask,
        last_over_s: float,
    ) -> Contact:
        """The contact including this sample; a new one if there was none."""
        names = self.observer.names
        j = int(np.abs(ratio).argmax())
        if contact is None:
            contact = Contact(float(np.nanmin(since)), seen.t, seen.t, "", 0, 0.0, 0.0, (), None)
        now = [name for name, certain in zip(names, confirmed, strict=True) if certain]
        joints = tuple(name for name in names if name in contact.joints or name in now)
        contact = replace(contact, end_s=last_over_s, joints=joints, link=self._link(joints))
        if abs(ratio[j]) <= contact.ratio:
            return contact
        peak = float(seen.residual[j])
        direction = int(np.sign(ratio[j]))
        return replace(
            contact, joint=names[j], direction=direction, peak=peak, ratio=float(abs(ratio[j]))
        )

    def _link(self, joints: tuple[str, ...]) -> str | None:
        robot = self.observer.arm.robot
        last = [i for i, name in enumerate(robot.joint_names) if name in joints]
        if last:
            return robot.link_names[last[-1]]
        return None


@dataclass(frozen=True, eq=False)
class Detections:
    """The contacts of a recording in the order of time, and the detector that found them.

    Attributes:
        contacts: in the order of time
        residuals: of each row
        threshold: of each row, (N, m)
        detector: that found them
        verdict: number of contacts, thresholds, and doubts
    """

    contacts: tuple[Contact, ...]
    residuals: Residuals
    threshold: Array
    detector: Detector
    verdict: Verdict

    @property
    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Headers and rows of a table with a row for each contact."""
        unit = self.detector.observer.unit
        times = ("from [s]", "to [s]", "joint", "its axis")
        rows: list[tuple[str, ...]] = [
            (
                *(
                    f"{c.start_s:.2f}",
                    f"{c.end_s:.2f}",
                    c.joint,
                    "along" if c.direction > 0 else "against",
                ),
                *(f"{c.peak:.1f}", f"{c.ratio:.1f}", c.link or "-"),
            )
            for c in self.contacts
        ]
        return (*times, f"peak [{unit}]", "times its limit", "link or beyond"), rows

    def __str__(self) -> str:
        headers, rows = self.table
        lines = [
            ", ".join(f"{name} {cell}" for name, cell in zip(headers, row, strict=True))
            for row in rows
        ]
        return "\n".join([*lines, str(self.verdict)])

    def __repr__(self) -> str:
        return f"<Detections: {self.verdict.summary}>"

    def _repr_html_(self) -> str | None:
        return notebook_html(*self.table, words=str(self.verdict))

    def to_dict(self) -> dict[str, Any]:
        """The contacts and how they were found, as texts, numbers and lists, for JSON."""
        learned = self.detector.thresholds.learned
        content = {
            "contacts": [asdict(contact) for contact in self.contacts],
            "residuals": list(self.detector.observer.names),
            "unit": self.detector.observer.unit,
            "typical_threshold": np.median(self.threshold, axis=0),
            "largest_residual": np.abs(self.residuals.residual).max(axis=0),
            "friction_change": None if learned is None else learned.friction_change,
            "false_alarms_per_hour": None if learned is None else learned.false_alarms_per_hour,
            "verdict": self.verdict.to_dict(),
        }
        table: dict[str, Any] = _saved.plain(content, not_finite=float)
        return table

    def save(self, path: str | Path) -> None:
        """Writes the contacts, without residuals, to a JSON file."""
        _saved.save(self.to_dict(), "contacts", path)


def _doubts(
    detector: Detector, contacts: Sequence[Contact], residuals: Residuals
) -> Iterator[Doubt]:
    """Doubts about the contacts."""
    names = detector.observer.arm.robot.joint_names
    for words in detector.thresholds.beyond_learned(
        residuals, _away_from(contacts, residuals.t), names
    ):
        yield Doubt(DoubtKind.BEYOND_LEARNED, words)
    if missing := residuals.missing_friction:
        yield Doubt(DoubtKind.UNKNOWN_FRICTION, missing)
    duration_s = float(residuals.t[-1] - residuals.t[0])
    settling_s = detector.observer.settling_s
    if duration_s < settling_s:
        yield Doubt(
            DoubtKind.TOO_SHORT,
            f"the recording is {duration_s:.2g} s long, but the observer needs {settling_s:.2g} s"
            " to show the whole torque of a contact: record longer",
        )
    share = sum(contact.end_s - contact.start_s for contact in contacts) / duration_s
    if share > _MAX_CONTACT_SHARE:
        yield Doubt(
            DoubtKind.MOSTLY_CONTACT,
            f"{100 * share:.0f} % of the recording would be contact; check whether the arm carries"
            " another payload, whether model and payload are of this arm, and the sign and unit of"
            " the torques",
        )


def _away_from(contacts: Sequence[Contact], t: Array) -> Mask:
    """Which times are away from contacts, (N,)."""
    free = np.ones(len(t), dtype=bool)
    for contact in contacts:
        free &= (t < contact.start_s - _VIBRATION_S) | (t > contact.end_s + _VIBRATION_S)
    return free


def _adapted(observer: Observer, change: Array) -> Observer:
    return replace(observer, arm=observer.arm.with_friction_change(change))
